//! Studies over made-up jobs.

use trompe_results::study::Metrics;

use super::*;
use crate::space::{MachineFacts, Objective};
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

#[test]
fn the_best_of_what_rules_told_runs_after_all() {
    // A distributed optimizer is a little faster than the rule of the space says.
    let truth = |point: &Point| {
        let mut outcome = job(&point.with(4, 1));
        if let (Some(metrics), 1) = (&mut outcome.metrics, point.0[4]) {
            metrics.step_seconds *= 0.99;
        }
        outcome
    };
    let mut study = study(&Choice::Grid, 0, 1);
    while let Asked::Run(proposal) = study.ask().unwrap() {
        study.tell(proposal.number, truth(&proposal.point), TrialOrigin::Executed).unwrap();
    }
    let step = |study: &Study| {
        let best = &study.trials()[study.best().unwrap() as usize];
        best.outcome.as_ref().unwrap().metrics.as_ref().unwrap().step_seconds
    };
    let exact = study.feasible().points.iter().map(|point| truth(point).logarithm(&[Objective::StepTime]));
    let exact = exact.fold(f64::INFINITY, f64::min).exp();
    assert!(step(&study) > exact * 1.005, "the rule's error shows");
    let told = study.trials().iter().filter(|trial| trial.rule.is_some()).count();
    let proposals = study.verify(4).unwrap();
    let ran = proposals.len();
    assert!((1..=4).contains(&ran), "{ran}");
    for proposal in proposals {
        study.tell(proposal.number, truth(&proposal.point), TrialOrigin::Executed).unwrap();
    }
    assert!((step(&study) / exact - 1.0).abs() < 1e-12);
    assert_eq!(study.trials().iter().filter(|trial| trial.rule.is_some()).count(), told - ran);
    let first = &study.verified()[0];
    let error = first.error(&study.trials()[first.number as usize]).unwrap();
    assert!((error + 0.01).abs() < 1e-12, "{error}");
    let texts: Vec<String> =
        crate::summary::report(&study, &Default::default()).notes.into_iter().map(|note| note.text).collect();
    assert!(texts.iter().any(|text| text.contains("have the numbers of another one")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("is the best")), "{texts:?}");
}

#[test]
fn nothing_is_verified_where_nothing_fits_or_nothing_was_told() {
    let mut study = study(&Choice::Grid, 0, 1);
    assert!(study.verify(4).unwrap().is_empty());
    let Asked::Run(proposal) = study.ask().unwrap() else { panic!("a first trial") };
    study.tell(proposal.number, job(&proposal.point), TrialOrigin::Executed).unwrap();
    assert!(study.verify(4).unwrap().is_empty());
}
