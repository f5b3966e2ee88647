//! Studies over made-up jobs.

use trompe_results::study::Metrics;

use super::*;
use crate::space::MachineFacts;
use crate::strategy::{self, Choice, Setting};

const SPACE: &str = "command = 'x --tp {tp} --micro {micro}'\nconstraints = ['tp * pp <= gpus']\n[knobs]\n\
    tp = [1, 2, 4, 8]\npp = [1, 2, 4, 8]\nmicro = [1, 2, 4, 8]\n\
    recompute = { values = [false, true], memory = 'decreases' }\ndist = [false, true]\n\
    [[prune]]\nname = 'dist'\nknob = 'dist'\ntried = false\nthen = true\nwhen = 'fits'\neffect = 'same'\n\
    [[prune]]\nname = 'micro'\nknob = 'micro'\nothers = 'earlier'\nwhen = 'fits'\neffect = 'no_better'\nif = 'pp == 1'\n";

fn study(choice: &Choice, seed: u64, lag: u32) -> Study {
    let space = Arc::new(Space::read(SPACE).unwrap());
    let facts = MachineFacts { gpus: 16, ..MachineFacts::default() };
    let machines = Machines::look_up(&space, Some("x"), || (), |_| Ok::<_, ()>(facts.clone())).unwrap();
    let feasible = Arc::new(Feasible::of(&space, &machines).unwrap());
    let setting = Setting { encoding: Encoding::of(&space), feasible: Arc::clone(&feasible), seed };
    let strategy = strategy::make(choice, &space, &setting).unwrap();
    Study::new(space, machines, feasible, strategy, lag)
}

/// A made-up job for which the rules of the space are true.
fn job(point: &Point) -> Outcome {
    let [tp, pp, micro, recompute, dist] = [0, 1, 2, 3, 4].map(|knob| f64::from(point.0[knob]));
    let needs = 2.0_f64.powf(micro - tp) * if recompute > 0.0 { 3.0 } else { 8.0 }
        + 30.0 / 2.0_f64.powf(tp + pp)
        - 4.0 * dist;
    if needs > 20.0 {
        return Outcome::out_of_memory(Some((needs * 1e9) as u64), 20_000_000_000);
    }
    let seconds = 1.0 + 0.2 * tp + 0.15 * pp * (1.0 + micro / 4.0) + 0.3 / (1.0 + micro) + 0.3 * recompute;
    Outcome::fits(Metrics { step_seconds: seconds, ..Metrics::default() })
}

/// Runs a study to its end or budget; `shuffle` decides in which order trials that are under way finish.
fn run(study: &mut Study, budget: usize, shuffle: u64) -> Vec<Point> {
    let mut rng = trompe_base::Rng::new(shuffle);
    let mut under_way: Vec<Proposal> = Vec::new();
    loop {
        let asked = if study.proposals() < budget { study.ask().unwrap() } else { Asked::Done };
        match asked {
            Asked::Run(proposal) => {
                under_way.push(*proposal);
                continue;
            }
            Asked::Done if under_way.is_empty() => break,
            Asked::Done | Asked::Wait => {}
        }
        let proposal = under_way.swap_remove(rng.below(under_way.len() as u64) as usize);
        study.tell(proposal.number, job(&proposal.point), TrialOrigin::Executed).unwrap();
    }
    study.trials().iter().map(|trial| trial.point.clone()).collect()
}

#[test]
fn the_order_of_answers_changes_nothing() {
    for (_, choice) in Choice::OWN {
        let [first, second] = [1, 2].map(|shuffle| run(&mut study(&choice, 5, 4), 40, shuffle));
        assert_eq!(first, second, "{choice}");
        let mut unique = first.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), first.len(), "{choice} proposed a point twice");
    }
}

#[test]
fn pruning_keeps_the_answer_and_runs_fewer() {
    let best = |study: &Study| {
        let trial = &study.trials()[study.best().unwrap() as usize];
        trial.outcome.clone().unwrap().metrics.unwrap().step_seconds
    };
    let mut all = study(&Choice::Grid, 0, 1);
    all.without_pruning();
    let points = run(&mut all, usize::MAX, 0).len();
    assert_eq!(points, all.feasible().points.len());
    let mut pruned = study(&Choice::Grid, 0, 4);
    assert_eq!(run(&mut pruned, usize::MAX, 0).len(), points, "every point is in the table");
    assert_eq!(best(&all), best(&pruned));
    assert!(pruned.proposals() * 2 <= points, "{} of {points} ran", pruned.proposals());
    for trial in pruned.trials().iter().filter(|trial| trial.origin == TrialOrigin::Pruned) {
        let (outcome, real) = (trial.outcome.as_ref().unwrap(), job(&trial.point));
        let because = &pruned.trials()[trial.because_of.unwrap() as usize];
        assert!(trial.rule.is_some() && because.number < trial.number);
        match outcome.status {
            TrialStatus::OutOfMemory => assert_eq!(real.status, TrialStatus::OutOfMemory),
            TrialStatus::Fits => assert_eq!(real.metrics, outcome.metrics),
            TrialStatus::NoBetter => {
                let better = real.metrics.map_or(f64::INFINITY, |metrics| metrics.step_seconds);
                assert!(better >= outcome.at_least_seconds.unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_strategy_finds_the_optimum_of_a_small_space() {
    let mut all = study(&Choice::Grid, 0, 1);
    run(&mut all, usize::MAX, 0);
    let loss = |study: &Study| study.trials()[study.best().unwrap() as usize].outcome.clone().unwrap();
    let optimum = loss(&all).metrics.unwrap().step_seconds;
    for (_, choice) in Choice::OWN {
        let mut study = study(&choice, 1, 4);
        run(&mut study, usize::MAX, 0);
        assert_eq!(loss(&study).metrics.unwrap().step_seconds, optimum, "{choice}");
    }
}

#[test]
fn misuse_is_an_error() {
    let mut study = study(&Choice::Random, 1, 1);
    assert_eq!(
        study.tell(0, Outcome::default(), TrialOrigin::Told),
        Err(StudyError::NotUnderWay { number: 0 })
    );
    assert!(matches!(study.enqueue(Point(vec![3, 3, 0, 0, 0])), Err(StudyError::NotFeasible { .. })));
    let proposal = study.enqueue(Point(vec![0, 0, 0, 0, 0])).unwrap().unwrap();
    assert_eq!(proposal.job.command, ["x", "--tp", "1", "--micro", "1"]);
    assert!(matches!(study.ask().unwrap(), Asked::Wait), "the point from outside is under way");
}
