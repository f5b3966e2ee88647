//! A knob and its values.

use crate::Value;

/// How the memory that a job needs changes from one value of a knob to a later one, all else equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryTrend {
    /// Later values never need less.
    Increases,
    /// Later values never need more.
    Decreases,
}

/// Something that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Its name in templates and expressions.
    pub name: String,
    /// What can be chosen, in order.
    pub values: Vec<Value>,
    /// Whether neighbours in `values` are alike (numbers, sizes); otherwise they are just names.
    pub ordered: bool,
    /// What is known of its memory; gives a pruning rule.
    pub memory: Option<MemoryTrend>,
    /// Whether it changes the simulated cluster and not the script.
    pub hardware: bool,
}

/// A range of numbers in a space file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Distance of neighbours, or their ratio.
    pub(super) step: f64,
    pub(super) geometric: bool,
}

/// The most values of one knob.
const MOST_VALUES: usize = 10_000;

impl Range {
    /// The numbers of the range, `to` included where a step ends on it.
    pub(super) fn values(&self) -> Result<Vec<Value>, String> {
        let Self { from, to, step, geometric } = *self;
        if from > to {
            return Err(format!("`from` ({from}) is above `to` ({to})"));
        }
        if geometric && (step <= 1.0 || from <= 0.0) {
            return Err("`times` must be above 1 and `from` above 0".to_owned());
        }
        if !geometric && step <= 0.0 {
            return Err("`step` must be above 0".to_owned());
        }
        let slack = (to - from).abs().max(to.abs()) * 1e-9;
        let mut values = Vec::new();
        for index in 0..=MOST_VALUES {
            let number =
                if geometric { from * step.powi(index as i32) } else { step.mul_add(index as f64, from) };
            if number > to + slack {
                return Ok(values);
            }
            values.push(Value::of_number((number * 1e12).round() / 1e12));
        }
        Err(format!("it has more than {MOST_VALUES} values"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: f64, to: f64, step: f64, geometric: bool, expect: &str) {
        let text = match (Range { from, to, step, geometric }).values() {
            Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error,
        };
        assert!(text.contains(expect), "{text}");
    }

    #[test]
    fn ranges_hold_both_ends() {
        check(1.0, 8.0, 2.0, true, "1 2 4 8");
        check(1.0, 4.0, 1.0, false, "1 2 3 4");
        check(0.0, 0.3, 0.1, false, "0 0.1 0.2 0.3");
        check(1.0, 6.0, 2.0, true, "1 2 4");
        check(2.0, 1.0, 1.0, false, "above `to`");
        check(0.0, 1.0, 2.0, true, "above 0");
        check(0.0, 1.0, 0.0, false, "`step`");
        check(0.0, 1e9, 1.0, false, "more than");
    }
}
