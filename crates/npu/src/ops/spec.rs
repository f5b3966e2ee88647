//! Reads the rows of the table.

use std::sync::LazyLock;

use crate::program::Pipe;

use super::table::{Op, ROWS};

/// A row, read.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// The instruction.
    pub(crate) op: Op,
    /// Its name in programs.
    pub(crate) name: &'static str,
    /// Where it runs.
    pub(crate) place: Place,
    /// Its operands in order.
    pub(crate) operands: Vec<OperandSpec>,
    /// The operands as the table writes them.
    pub(crate) text: &'static str,
    /// What it does.
    pub(crate) meaning: &'static str,
}

/// Where an instruction runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the control actor.
    Control,
    /// On the control actor and inside micro programs.
    Both,
    /// On one of these pipes, the first unless the program says otherwise.
    Pipes(Vec<Pipe>),
    /// Inside a micro program.
    Micro,
}

/// An operand of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct OperandSpec {
    /// Its name in programs.
    pub(crate) name: &'static str,
    /// What it may be.
    pub(crate) kind: Kind,
    /// Its value when left out.
    pub(crate) default: Default,
}

/// What an operand may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Float,
    Number,
    Tensor,
    View,
    Output,
    Event,
    Pipe,
    List,
    Register,
    Mask,
    Word(Vec<&'static str>),
    Element,
    Any,
}

/// What an operand is when left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Default {
    /// It cannot be left out.
    Required,
    /// It may be left out and is then nothing.
    Absent,
    /// This number.
    Value(f64),
    /// The value of that earlier operand.
    Like(&'static str),
    /// This word.
    Word(&'static str),
}

pub(super) fn all() -> &'static [Spec] {
    static SPECS: LazyLock<Vec<Spec>> = LazyLock::new(|| ROWS.iter().map(|row| read(*row)).collect());
    &SPECS
}

type Row = (Op, &'static str, &'static str, &'static str, &'static str);

fn read((op, name, place, text, meaning): Row) -> Spec {
    let place = match place {
        "control" => Place::Control,
        "both" => Place::Both,
        "micro" => Place::Micro,
        pipes => Place::Pipes(pipes.split(' ').map(pipe).collect()),
    };
    let operands = text.split_whitespace().map(operand).collect();
    Spec { op, name, place, operands, text, meaning }
}

fn pipe(name: &str) -> Pipe {
    let found = Pipe::ALL.into_iter().find(|pipe| pipe.name() == name);
    found.unwrap_or_else(|| panic!("the table names the pipe {name}"))
}

fn operand(text: &'static str) -> OperandSpec {
    let (head, default) = text.split_once('=').map_or((text, None), |(head, default)| (head, Some(default)));
    let (name, kind) = head.split_once(':').unwrap_or((head, ""));
    let kind = match kind {
        "" => Kind::Integer,
        "f" => Kind::Float,
        "x" => Kind::Number,
        "t" => Kind::Tensor,
        "w" => Kind::View,
        "o" => Kind::Output,
        "e" => Kind::Event,
        "p" => Kind::Pipe,
        "l" => Kind::List,
        "r" => Kind::Register,
        "m" => Kind::Mask,
        "d" => Kind::Element,
        "n" => Kind::Any,
        words => {
            let words = words.strip_prefix("c(").and_then(|words| words.strip_suffix(')'));
            let words = words.unwrap_or_else(|| panic!("the table has the operand {text}"));
            Kind::Word(words.split('|').collect())
        }
    };
    let default = match (default, &kind) {
        (None, _) => Default::Required,
        (Some(""), _) => Default::Absent,
        (Some(word), Kind::Word(_) | Kind::Element | Kind::Pipe) => Default::Word(word),
        (Some(other), _) => other.parse().map_or(Default::Like(other), Default::Value),
    };
    OperandSpec { name, kind, default }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enumeration_and_reads() {
        for (index, spec) in all().iter().enumerate() {
            assert_eq!(spec.op as usize, index, "{}", spec.name);
            for (at, operand) in spec.operands.iter().enumerate() {
                if let Default::Like(other) = operand.default {
                    assert!(spec.operands[..at].iter().any(|earlier| earlier.name == other), "{}", spec.name);
                }
            }
        }
    }

    #[test]
    fn names_are_unique_for_lanes_and_for_micro_programs() {
        for micro in [false, true] {
            let mut names: Vec<_> = all()
                .iter()
                .filter(|spec| spec.place == Place::Both || (spec.place == Place::Micro) == micro)
                .map(|spec| spec.name)
                .collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
    }
}
