//! Variants of a kernel side by side, ranked by makespan.

use crate::device::{Device, Profile};
use crate::error::RunError;
use crate::program::{Argument, Program};
use crate::run::{Options, run};

/// One choice of values for the parameters of a kernel.
pub type Choice = Vec<(String, i64)>;

/// What a variant came to.
#[derive(Debug)]
pub struct Variant {
    /// Its values.
    pub choice: Choice,
    /// Makespan in cycles, or why it does not run.
    pub result: Result<u64, RunError>,
}

/// Every combination of the values of each parameter, the last one changing fastest.
#[must_use]
pub fn grid(parameters: &[(String, Vec<i64>)]) -> Vec<Choice> {
    let mut choices = vec![Choice::new()];
    for (name, values) in parameters {
        choices = choices
            .iter()
            .flat_map(|choice| {
                values.iter().map(move |value| {
                    let mut choice = choice.clone();
                    choice.push((name.clone(), *value));
                    choice
                })
            })
            .collect();
    }
    choices
}

/// The program with the first values of variables replaced: each parameter names a `create_var`.
///
/// # Errors
/// The name of a parameter that no `create_var` of the program has.
pub fn with_values(program: &Program, choice: &Choice) -> Result<Program, String> {
    let mut program = program.clone();
    for (name, value) in choice {
        let mut found = false;
        for instruction in program.lanes.iter_mut().flat_map(|lane| &mut lane.instructions) {
            let named =
                matches!(instruction.args.get("var_name"), Some(Argument::Text(text)) if text == name);
            if instruction.op == "create_var" && named {
                instruction.args.insert("value".to_owned(), Argument::Int(*value));
                found = true;
            }
        }
        if !found {
            return Err(name.clone());
        }
    }
    Ok(program)
}

/// Runs every variant timing-only and puts the fastest first; those that do not run come last.
#[must_use]
pub fn rank(variants: Vec<(Choice, Program)>, device: &Device, profile: &Profile) -> Vec<Variant> {
    let options = Options { timing_only: true, ..Options::default() };
    let mut ranked: Vec<Variant> = variants
        .into_iter()
        .map(|(choice, program)| {
            let result = run(&program, device, profile, &std::collections::BTreeMap::new(), &options);
            Variant { choice, result: result.map(|outcome| outcome.makespan) }
        })
        .collect();
    ranked.sort_by_key(|variant| variant.result.as_ref().map_or(u64::MAX, |makespan| *makespan));
    ranked
}
