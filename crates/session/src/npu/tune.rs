//! Variants of a kernel: every combination where they are few, else those that a strategy of the search crate asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use trompe_npu::Program;
use trompe_npu::tune::{self, Choice, Grid, Strategy, Variant};
use trompe_results::study::{Metrics, TrialOrigin};
use trompe_search::encoding::Encoding;
use trompe_search::space::MachineFacts;
use trompe_search::strategy::{self, Setting};
use trompe_search::study::Asked;
use trompe_search::{Feasible, Machines, Outcome, Point, Space, Study};

use super::{Target, files, refused};
use crate::SessionError;

/// Combinations of which all are run when nothing else is said.
const FEW: usize = 512;
/// Variants that are run of more when nothing else is said.
const BUDGET: usize = 64;
/// Variants that a strategy chooses at once. A constant, so that processors do not decide what is tried.
const AT_ONCE: usize = 8;

/// A search among the variants of a kernel.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// The kernel.
    pub target: Target,
    /// Values of each parameter.
    pub parameters: Vec<(String, Vec<i64>)>,
    /// Name of a strategy; `None` for every combination where they are few, else `auto`.
    pub strategy: Option<String>,
    /// The most variants that are run.
    pub budget: Option<usize>,
    /// Seed of the strategy.
    pub seed: u64,
}

/// Runs variants timing-only; gives a table, fastest first.
///
/// # Errors
/// When a sheet cannot be read, there is no such strategy, or no variant runs.
pub fn tune(request: &TuneRequest) -> Result<String, SessionError> {
    let TuneRequest { target, strategy, budget, seed, .. } = request;
    let parameters = distinct(&request.parameters)?;
    let (device, profile) = files::sheets(target)?;
    let all = parameters.iter().map(|(_, values)| values.len()).try_fold(1_usize, usize::checked_mul);
    let all = all.ok_or_else(|| refused("there are more combinations than can be counted"))?;
    let choice = match strategy {
        Some(name) => name.parse().map_err(refused)?,
        None if all <= FEW && budget.is_none_or(|most| most >= all) => strategy::Choice::Grid,
        None => strategy::Choice::Auto,
    };
    let whole = choice == strategy::Choice::Grid;
    let budget = budget.unwrap_or(if whole { all } else { BUDGET }).min(all);
    let mut chooser: Box<dyn Strategy> = if whole && budget == all {
        Box::new(Grid(parameters))
    } else {
        Box::new(Searched::new(parameters, &choice, *seed, budget)?)
    };
    let load = |choice: &Choice| -> Result<Program, SessionError> {
        let values: Choice = target.values.iter().chain(choice).cloned().collect();
        files::load(&target.program, &values)
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let ranked = tune::search(chooser.as_mut(), load, (&device, &profile), threads);
    let mut text = table(&ranked, device.clock_mhz)?;
    if ranked.len() < all {
        let ran = ranked.len();
        text.push_str(&format!("{ran} of {all} combinations, chosen by `{choice}` with seed {seed}\n"));
    }
    Ok(text)
}

/// The parameters with each value once.
fn distinct(parameters: &[(String, Vec<i64>)]) -> Result<Vec<(String, Vec<i64>)>, SessionError> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (name, values) in parameters {
        if !known.insert(name.as_str()) {
            return Err(refused(format!("parameter `{name}` is given twice")));
        }
        let mut once: Vec<i64> = Vec::new();
        values.iter().for_each(|value| {
            if !once.contains(value) {
                once.push(*value);
            }
        });
        all.push((name.clone(), once));
    }
    Ok(all)
}

fn table(ranked: &[Variant], clock_mhz: f64) -> Result<String, SessionError> {
    let best = match ranked.first().map(|variant| &variant.result) {
        Some(Ok(makespan)) => *makespan,
        Some(Err(error)) if ranked.len() == 1 => return Err(refused(error)),
        Some(Err(error)) => {
            return Err(refused(format!("none of {} variants runs; the first: {error}", ranked.len())));
        }
        None => return Err(refused("there is no variant to run; raise the budget")),
    };
    let mut text = String::new();
    for (place, variant) in ranked.iter().enumerate() {
        let names: Vec<String> =
            variant.choice.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let result = match &variant.result {
            Ok(makespan) => {
                let micros = *makespan as f64 / clock_mhz;
                format!("{makespan:>12} cycles {micros:>12.3} µs  {:>6.2} x", *makespan as f64 / best as f64)
            }
            Err(error) => format!("does not run: {error}"),
        };
        text.push_str(&format!("{:>3}  {result}  {}\n", place + 1, names.join(" ")));
    }
    Ok(text)
}

/// A study of the search crate as a strategy for kernels.
struct Searched {
    study: Study,
    parameters: Vec<(String, Vec<i64>)>,
    /// Trials under way, in the order of their variants.
    waiting: Vec<u32>,
    /// Variants whose outcome the study knows.
    told: usize,
    /// Trials that may still be run.
    left: usize,
}

impl Searched {
    fn new(
        mut parameters: Vec<(String, Vec<i64>)>,
        choice: &strategy::Choice,
        seed: u64,
        budget: usize,
    ) -> Result<Self, SessionError> {
        // Neighbours are alike.
        parameters.iter_mut().for_each(|(_, values)| values.sort_unstable());
        let space = Arc::new(Space::read(&space_file(&parameters)).map_err(refused)?);
        let machine = |_: &str| Ok::<_, ()>(MachineFacts::default());
        let machines = Machines::look_up(&space, Some("-"), || (), machine).expect("a machine is named");
        let feasible = Arc::new(Feasible::of(&space, &machines).map_err(refused)?);
        let setting = Setting { encoding: Encoding::of(&space), feasible: Arc::clone(&feasible), seed };
        let strategy = strategy::make(choice, &space, &setting).ok_or_else(|| {
            refused(format!("`{choice}` runs in Python, as in `trompe search`; choose one of trompe's own"))
        })?;
        let study = Study::new(space, machines, feasible, strategy, AT_ONCE as u32);
        Ok(Self { study, parameters, waiting: Vec::new(), told: 0, left: budget })
    }

    fn values(&self, point: &Point) -> Choice {
        let pairs = self.parameters.iter().zip(&point.0);
        pairs.map(|((name, values), at)| (name.clone(), values[usize::from(*at)])).collect()
    }
}

impl Strategy for Searched {
    fn next(&mut self, known: &[Variant]) -> Vec<Choice> {
        for (number, variant) in self.waiting.drain(..).zip(&known[self.told..]) {
            let outcome = match &variant.result {
                Ok(makespan) => {
                    Outcome::fits(Metrics { step_seconds: *makespan as f64, ..Metrics::default() })
                }
                Err(error) => Outcome::failed(vec![error.clone()]),
            };
            self.study.tell(number, outcome, TrialOrigin::Executed).expect("the trial is under way");
        }
        self.told = known.len();
        let mut choices = Vec::new();
        while self.left > 0 && choices.len() < AT_ONCE {
            let asked = self.study.ask().expect("the command has no places that could lack a value");
            let Asked::Run(proposal) = asked else { break };
            choices.push(self.values(&proposal.point));
            self.waiting.push(proposal.number);
            self.left -= 1;
        }
        choices
    }
}

/// The space of the parameters, by their numbers: their names may mean something in a space file.
fn space_file(parameters: &[(String, Vec<i64>)]) -> String {
    let knobs = parameters.iter().enumerate().map(|(at, (_, values))| format!("k{at:04} = {values:?}\n"));
    format!("command = 'kernel'\n[knobs]\n{}", knobs.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Vec<(String, Vec<i64>)> {
        let axis = |name: &str| (name.to_owned(), (0..12).collect::<Vec<i64>>());
        vec![axis("x"), axis("y"), axis("z")]
    }

    /// A made-up makespan, with variants that do not run.
    fn makespan(choice: &Choice) -> Result<u64, String> {
        let [x, y, z] = [0, 1, 2].map(|at| choice[at].1);
        if x + y > 18 {
            return Err("too large".to_owned());
        }
        Ok(1000 + 7 * ((x - 8) * (x - 8) + (y - 3) * (y - 3)) as u64 + 3 * ((z - x) * (z - x)) as u64)
    }

    /// Choices of a strategy and their makespans.
    fn run(name: &str, seed: u64, budget: usize) -> Vec<Variant> {
        let mut strategy = Searched::new(parameters(), &name.parse().unwrap(), seed, budget).unwrap();
        let mut known = Vec::new();
        loop {
            let choices = strategy.next(&known);
            if choices.is_empty() {
                return known;
            }
            known.extend(choices.into_iter().map(|choice| Variant { result: makespan(&choice), choice }));
        }
    }

    fn best(variants: &[Variant]) -> u64 {
        variants.iter().filter_map(|variant| variant.result.clone().ok()).min().unwrap()
    }

    #[test]
    fn strategies_come_near_the_best_of_1728_in_48_runs() {
        for (name, at_most) in [("auto", 1020), ("cma", 1150), ("random", 1200)] {
            let variants = run(name, 1, 48);
            assert_eq!(variants.len(), 48, "{name}");
            assert!(best(&variants) <= at_most, "{name}: {}", best(&variants));
        }
    }

    #[test]
    fn the_same_seed_runs_the_same_and_nothing_twice() {
        let choices = |variants: Vec<Variant>| variants.into_iter().map(|v| v.choice).collect::<Vec<_>>();
        let (first, second) = (choices(run("auto", 3, 24)), choices(run("auto", 3, 24)));
        assert_eq!(first, second);
        let mut distinct = first.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 24);
        assert_ne!(first, choices(run("auto", 4, 24)));
    }

    #[test]
    fn a_grid_ends_when_everything_ran() {
        let mut small = parameters();
        let values = small[0].1.len();
        small.truncate(1);
        let mut strategy = Searched::new(small, &strategy::Choice::Grid, 0, 1000).unwrap();
        let (mut known, mut rounds) = (Vec::new(), 0);
        loop {
            let choices = strategy.next(&known);
            if choices.is_empty() {
                break;
            }
            rounds += 1;
            known.extend(choices.into_iter().map(|choice| Variant { result: Ok(1), choice }));
        }
        assert_eq!((known.len(), rounds), (values, values.div_ceil(AT_ONCE)));
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        let twice = [("x".to_owned(), vec![1]), ("x".to_owned(), vec![2])];
        assert!(distinct(&twice).unwrap_err().to_string().contains("`x` is given twice"));
        assert_eq!(distinct(&[("x".to_owned(), vec![2, 1, 2])]).unwrap()[0].1, [2, 1]);
        let python = "nevergrad:CMA".parse().unwrap();
        let error = Searched::new(parameters(), &python, 0, 1).err().unwrap().to_string();
        assert!(error.contains("runs in Python"), "{error}");
    }
}
