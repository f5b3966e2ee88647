//! Variants of a kernel side by side, ranked by makespan.
//!
//! What is tried next is a [`Strategy`]'s choice: [`Grid`] tries everything at once, [`Coordinate`] walks. A search of
//! another crate is one more implementation.

use crate::device::{Device, Profile};
use crate::error::RunError;
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
    pub result: Result<u64, RunError>,
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

/// One parameter after the other, the others at the best values so far, until a round changes nothing: for grids too
/// large to try. Finds the best of the grid only where parameters do not depend on each other.
#[derive(Clone, Debug)]
pub struct Coordinate {
    parameters: Vec<(String, Vec<i64>)>,
    at: usize,
    /// Parameters in a row that changed nothing.
    settled: usize,
    best: Option<u64>,
}

impl Coordinate {
    /// Begins at the first value of each parameter.
    #[must_use]
    pub const fn new(parameters: Vec<(String, Vec<i64>)>) -> Self {
        Self { parameters, at: 0, settled: 0, best: None }
    }
}

impl Strategy for Coordinate {
    fn next(&mut self, known: &[Variant]) -> Vec<Choice> {
        let best = fastest(known);
        if !known.is_empty() {
            let makespan = best.and_then(|variant| variant.result.as_ref().ok().copied());
            self.settled = if makespan == self.best { self.settled + 1 } else { 1 };
            self.best = makespan;
        }
        while self.settled < self.parameters.len() {
            let first = || {
                self.parameters
                    .iter()
                    .filter_map(|(name, values)| Some((name.clone(), *values.first()?)))
                    .collect::<Choice>()
            };
            let base = best.map_or_else(first, |variant| variant.choice.clone());
            let (name, values) = &self.parameters[self.at];
            self.at = (self.at + 1) % self.parameters.len();
            let with = |value: &i64| {
                let set =
                    |(other, old): &(String, i64)| (other.clone(), if other == name { *value } else { *old });
                base.iter().map(set).collect::<Choice>()
            };
            let fresh: Vec<Choice> = values
                .iter()
                .map(with)
                .filter(|choice| known.iter().all(|variant| variant.choice != *choice))
                .collect();
            if !fresh.is_empty() {
                return fresh;
            }
            self.settled += 1;
        }
        Vec::new()
    }
}

fn fastest(known: &[Variant]) -> Option<&Variant> {
    known
        .iter()
        .filter(|variant| variant.result.is_ok())
        .min_by_key(|variant| variant.result.as_ref().map_or(u64::MAX, |makespan| *makespan))
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

/// Runs what `strategy` wants to see, timing-only and on `threads` threads, and puts the fastest first; those that do
/// not run come last. The order does not depend on the threads.
///
/// # Errors
/// Whatever `load` says about a choice.
pub fn search<E>(
    strategy: &mut dyn Strategy,
    mut load: impl FnMut(&Choice) -> Result<Program, E>,
    (device, profile): (&Device, &Profile),
    threads: usize,
) -> Result<Vec<Variant>, E> {
    let mut known = Vec::new();
    loop {
        let choices = strategy.next(&known);
        if choices.is_empty() {
            break;
        }
        let mut variants = Vec::new();
        for choice in choices {
            let program = load(&choice)?;
            variants.push((choice, program));
        }
        known.extend(side_by_side(&variants, (device, profile), threads));
    }
    // The sort is stable: what is equally fast stays in the order of the strategy.
    known.sort_by_key(|variant| variant.result.as_ref().map_or(u64::MAX, |makespan| *makespan));
    Ok(known)
}

fn side_by_side(
    variants: &[(Choice, Program)],
    (device, profile): (&Device, &Profile),
    threads: usize,
) -> Vec<Variant> {
    let options = Options { timing_only: true, ..Options::default() };
    let one = |(choice, program): &(Choice, Program)| {
        let result = run(program, device, profile, &std::collections::BTreeMap::new(), &options);
        Variant { choice: choice.clone(), result: result.map(|outcome| outcome.makespan) }
    };
    let part = variants.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = variants
            .chunks(part)
            .map(|variants| scope.spawn(move || variants.iter().map(one).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a run does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Matmul, matmul};

    fn parameters() -> Vec<(String, Vec<i64>)> {
        [("tile", vec![32, 64, 128]), ("slots", vec![1, 2]), ("parts", vec![1, 2, 4])]
            .map(|(name, values)| (name.to_owned(), values))
            .to_vec()
    }

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

    fn ranked(strategy: &mut dyn Strategy, threads: usize) -> Vec<(Choice, u64)> {
        let device = Device::named("ascend-950").unwrap();
        let profile = Profile::named("calibrated", &device).unwrap();
        let variants = search(strategy, product, (&device, &profile), threads).unwrap();
        variants.into_iter().map(|variant| (variant.choice, variant.result.unwrap())).collect()
    }

    #[test]
    fn a_grid_is_ranked_alike_with_any_number_of_threads() {
        let alone = ranked(&mut Grid(parameters()), 1);
        assert_eq!(alone.len(), 18);
        assert!(alone.is_sorted_by_key(|variant| variant.1));
        assert_eq!(alone, ranked(&mut Grid(parameters()), 3));
    }

    #[test]
    fn a_walk_finds_the_best_with_fewer_runs() {
        let all = ranked(&mut Grid(parameters()), 2);
        let some = ranked(&mut Coordinate::new(parameters()), 2);
        assert_eq!(some[0].1, all[0].1);
        assert!(some.len() < all.len(), "{} of {}", some.len(), all.len());
    }

    #[test]
    fn what_cannot_be_loaded_ends_the_search() {
        let device = Device::named("ascend-950").unwrap();
        let profile = Profile::named("reference", &device).unwrap();
        let only_tiles = parameters()[..1].to_vec();
        let error = search(&mut Grid(only_tiles), product, (&device, &profile), 1).unwrap_err();
        assert_eq!(error, "no parts");
    }
}
