//! The instruction set as one table: name, where it runs, operands, meaning.
//!
//! The compiler, the validator, the builders' tests and `docs/npu/instructions.md` read this table and nothing else;
//! an instruction that is not in it is refused. Operands are written as `name:kind=default`; a default may name an
//! earlier operand. Kinds (an integer where none is given): `f` number, `x` number of any type, `t` tensor or view,
//! `w` name of a view that the instruction makes, `o` variable that it sets, `e` event, `p` pipe, `l` list of up to four
//! integers, `r` register, `m` mask register, `c(A|B)` one of these words, `d` element type, `n` anything (not read).

use std::collections::BTreeMap;

mod spec;
mod table;

pub(crate) use spec::{Default as OperandDefault, Kind, OperandSpec, Place, Spec};
pub(crate) use table::Op;

/// The row of the instruction called `name`, as a lane executes it.
#[must_use]
pub(crate) fn lane_spec(name: &str) -> Option<&'static Spec> {
    spec::all().iter().find(|spec| spec.name == name && spec.place != Place::Micro)
}

/// The row of the micro instruction called `name`.
#[must_use]
pub(crate) fn micro_spec(name: &str) -> Option<&'static Spec> {
    spec::all().iter().find(|spec| spec.name == name && matches!(spec.place, Place::Micro | Place::Both))
}

/// The row of `op`.
#[must_use]
pub(crate) fn spec_of(op: Op) -> &'static Spec {
    &spec::all()[op as usize]
}

/// The table as the page `docs/npu/instructions.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Instructions\n\nMade from the table in `crates/npu/src/ops/table.rs` (a test keeps the two alike). An operand \
         with `=` may be left out.\nKinds: `f` number, `x` number of any type, `t` tensor or view, `w` new view, `o` \
         variable to set, `e` event, `p` pipe,\n`l` list of up to four integers, `r` register, `m` mask register, `d` \
         element type, `n` not read; integers have none.\n",
    );
    for (title, wanted) in [
        ("Control (executed by the lane's control actor)", 0),
        ("Pipes", 1),
        ("Micro instructions (inside `call_micro`)", 2),
    ] {
        text.push_str(&format!(
            "\n## {title}\n\n| instruction | pipes | operands | meaning |\n|---|---|---|---|\n"
        ));
        for spec in spec::all() {
            let here = match spec.place {
                Place::Control => wanted == 0,
                Place::Both => wanted != 1,
                Place::Pipes(_) => wanted == 1,
                Place::Micro => wanted == 2,
            };
            if here {
                let pipes = match &spec.place {
                    Place::Pipes(pipes) => pipes.iter().map(|pipe| pipe.name()).collect::<Vec<_>>().join(" "),
                    _ => "–".to_owned(),
                };
                let operands = spec.text.replace('|', "\\|");
                let operands = if operands.is_empty() { "–".to_owned() } else { format!("`{operands}`") };
                text.push_str(&format!("| `{}` | {pipes} | {operands} | {} |\n", spec.name, spec.meaning));
            }
        }
    }
    text
}

/// Operands of each instruction in order, for lanes and for micro programs: what the Python builder reads.
#[must_use]
pub fn python_table() -> String {
    let list = |micro: bool| -> BTreeMap<&str, Vec<&str>> {
        let here = |spec: &&Spec| spec.place == Place::Both || (spec.place == Place::Micro) == micro;
        let operands = |spec: &'static Spec| spec.operands.iter().map(|operand| operand.name).collect();
        spec::all().iter().filter(here).map(|spec| (spec.name, operands(spec))).collect()
    };
    let table = BTreeMap::from([("lane", list(false)), ("micro", list(true))]);
    serde_json::to_string_pretty(&table).expect("names are JSON") + "\n"
}
