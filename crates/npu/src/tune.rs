//! Variants of a kernel side by side, ranked by makespan.
//!
//! What is tried next is a [`Strategy`]'s choice: [`Grid`] tries everything at once; the strategies of the search crate
//! are put behind the same trait by whoever depends on both.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::device::{Device, Profile};
use crate::program::{Argument, Program};
use crate::run::{Options, run};

/// One choice of values for the parameters of a kernel.
pub type Choice = Vec<(String, i64)>;

/// What a variant came to.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its values.
    pub choice: Choice,
    /// Makespan in cycles, or why it does not run.
    pub result: Result<u64, String>,
}

/// Decides which variants are run.
pub trait Strategy {
    /// The variants to run next, side by side, given those that ran already; none ends the search.
    fn next(&mut self, known: &[Variant]) -> Vec<Choice>;
}

/// Every combination at once.
#[derive(Clone, Debug)]
pub struct Grid(pub Vec<(String, Vec<i64>)>);

impl Strategy for Grid {
    fn next(&mut self, known: &[Variant]) -> Vec<Choice> {
        if known.is_empty() { grid(&self.0) } else { Vec::new() }
    }
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

/// Runs what `strategy` wants to see, timing-only and on `threads` threads, and puts the fastest first; those that
/// `load` refuses or that do not run come last. The order does not depend on the threads.
pub fn search<E: Display>(
    strategy: &mut dyn Strategy,
    load: impl Fn(&Choice) -> Result<Program, E> + Sync,
    (device, profile): (&Device, &Profile),
    threads: usize,
) -> Vec<Variant> {
    let options = Options { timing_only: true, ..Options::default() };
    let makespan = |choice: &Choice| {
        let program = load(choice).map_err(|error| error.to_string())?;
        let outcome = run(&program, device, profile, &BTreeMap::new(), &options);
        outcome.map(|outcome| outcome.makespan).map_err(|error| error.to_string())
    };
    let mut known = Vec::new();
    loop {
        let choices = strategy.next(&known);
        if choices.is_empty() {
            break;
        }
        known.extend(side_by_side(choices, makespan, threads));
    }
    // The sort is stable: what is equally fast stays in the order of the strategy.
    known.sort_by_key(|variant| variant.result.as_ref().map_or(u64::MAX, |makespan| *makespan));
    known
}

fn side_by_side(
    choices: Vec<Choice>,
    makespan: impl Fn(&Choice) -> Result<u64, String> + Sync,
    threads: usize,
) -> Vec<Variant> {
    let one = |choice: &Choice| Variant { choice: choice.clone(), result: makespan(choice) };
    let part = choices.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = choices
            .chunks(part)
            .map(|choices| scope.spawn(|| choices.iter().map(one).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Matmul, matmul};

    fn product(choice: &Choice) -> Result<Program, String> {
        let of = |name: &str| choice.iter().find(|(other, _)| other == name).map(|(_, value)| *value as u64);
        let tile = of("tile").ok_or("no tile")?;
        Ok(matmul(&Matmul {
            m: 128,
            n: 128,
            k: 512,
            tile: [tile; 3],
            split_k: of("parts").ok_or("no parts")?,
            cores: 1,
            dtype: crate::ElementType::F16,
            slots: of("slots").ok_or("no slots")? as usize,
        }))
    }

    fn ranked(parameters: &[(&str, &[i64])], threads: usize) -> Vec<(Choice, Result<u64, String>)> {
        let device = Device::named("ascend-950").unwrap();
        let profile = Profile::named("calibrated", &device).unwrap();
        let parameters = parameters.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec()));
        let variants = search(&mut Grid(parameters.collect()), product, (&device, &profile), threads);
        variants.into_iter().map(|variant| (variant.choice, variant.result)).collect()
    }

    const ALL: [(&str, &[i64]); 3] = [("tile", &[32, 64, 128]), ("slots", &[1, 2]), ("parts", &[1, 2, 4])];

    #[test]
    fn a_grid_is_ranked_alike_with_any_number_of_threads() {
        let alone = ranked(&ALL, 1);
        assert_eq!(alone.len(), 18);
        assert!(alone.iter().map(|variant| variant.1.as_ref().unwrap()).is_sorted());
        assert_eq!(alone, ranked(&ALL, 3));
    }

    #[test]
    fn what_does_not_run_comes_last_and_says_why() {
        // Four slots of 128 x 128 are more than L0A holds.
        let some = ranked(&[("tile", &[128]), ("slots", &[4, 1]), ("parts", &[1])], 1);
        assert_eq!(some[0].0[1], ("slots".to_owned(), 1));
        assert!(some[1].1.as_ref().unwrap_err().contains("exceeds l0a"), "{:?}", some[1].1);
        let bad = ranked(&ALL[..1], 1);
        assert!(bad.iter().all(|variant| variant.1 == Err("no parts".to_owned())));
    }
}
