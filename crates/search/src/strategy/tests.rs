//! One contract for every strategy, and what each must find.

use super::*;
use crate::space::MachineFacts;
use crate::{Machines, Point};

fn setting(seed: u64) -> (Space, Setting) {
    let text = "command = 'x'\nconstraints = ['tp * pp <= 16']\n[knobs]\ntp = [1, 2, 4, 8]\npp = [1, 2, 4, 8]\n\
                micro = [1, 2, 4, 6, 8]\nvpp = [1, 2, 4]\nrecompute = 'boolean'\nmode = ['a', 'b', 'c']\n";
    let space = Space::read(text).unwrap();
    let machines =
        Machines::look_up(&space, Some("x"), || (), |_| Ok::<_, ()>(MachineFacts::default())).unwrap();
    let feasible = Arc::new(Feasible::of(&space, &machines).unwrap());
    let setting = Setting { encoding: Encoding::of(&space), feasible, seed };
    (space, setting)
}

/// A made-up step time with interactions and a region that is out of memory.
fn loss(point: &Point) -> f64 {
    let [tp, pp, micro, vpp, recompute, mode] = [0, 1, 2, 3, 4, 5].map(|knob| f64::from(point.0[knob]));
    if tp + pp + recompute < micro - 1.0 {
        return 50.0 + micro - tp - pp;
    }
    let bubble = pp / (1.0 + vpp + (4.0 - micro));
    (1.0 + 0.3 * tp * tp
        + 0.4 * bubble
        + 0.5 / (1.0 + micro)
        + 0.25 * recompute
        + [0.2, 0.0, 0.1][mode as usize])
        .ln()
}

/// Asks and tells `count` times, answering `lag` asks late and out of order.
fn run(choice: &Choice, seed: u64, count: usize, lag: usize) -> Vec<(Point, f64)> {
    let (space, setting) = setting(seed);
    let mut strategy = make(choice, &space, &setting).unwrap();
    let mut waiting: Vec<Ask> = Vec::new();
    let mut seen = Vec::new();
    while seen.len() < count {
        match strategy.ask() {
            Some(ask) => {
                assert_eq!(ask.vector.len(), setting.encoding.dimensions());
                assert!(ask.vector.iter().all(|x| (0.0..=1.0).contains(x)), "{choice}: {:?}", ask.vector);
                waiting.push(ask);
            }
            None if waiting.is_empty() => break,
            None => {}
        }
        if waiting.len() > lag || seen.len() + waiting.len() >= count {
            // The newest first, then the oldest, and so on.
            let ask = if seen.len() % 2 == 0 { waiting.remove(0) } else { waiting.pop().unwrap() };
            let point = setting.encoding.nearest(&ask.vector, &setting.feasible, |_| true).unwrap();
            strategy.tell(ask.id, loss(&point));
            seen.push((point.clone(), loss(&point)));
        }
    }
    seen
}

#[test]
fn names_are_read_as_they_are_written() {
    for (name, choice) in Choice::OWN {
        assert_eq!(name.parse(), Ok(choice.clone()));
        assert_eq!(choice.to_string(), name);
    }
    assert_eq!("TwoPointsDE".parse(), Ok(Choice::TwoPointsDe));
    assert_eq!("nevergrad:NGOpt".parse::<Choice>().unwrap().to_string(), "nevergrad:NGOpt");
    assert!("simplex".parse::<Choice>().unwrap_err().to_string().contains("choose auto, cma"));
}

#[test]
fn the_same_seed_asks_the_same() {
    for (_, choice) in Choice::OWN {
        let (first, second) = (run(&choice, 3, 60, 4), run(&choice, 3, 60, 4));
        assert_eq!(first, second, "{choice}");
        if choice != Choice::Grid {
            assert_ne!(first, run(&choice, 4, 60, 4), "{choice}");
        }
    }
}

#[test]
fn answers_may_come_late_and_out_of_order() {
    for (_, choice) in Choice::OWN {
        assert_eq!(run(&choice, 1, 80, 9).len(), 80, "{choice}");
    }
}

#[test]
fn grid_and_random_ask_every_point_once() {
    let count = setting(0).1.feasible.points.len();
    for choice in [Choice::Grid, Choice::Random] {
        let mut points: Vec<Point> =
            run(&choice, 0, usize::MAX, 0).into_iter().map(|(point, _)| point).collect();
        points.sort();
        points.dedup();
        assert_eq!(points.len(), count);
    }
}

/// How far above the optimum the best of so many asks is, in percent, on average over some seeds.
fn regret(choice: &Choice, asks: usize, seeds: u64) -> f64 {
    let best = setting(0).1.feasible.points.iter().map(loss).fold(f64::INFINITY, f64::min);
    let one = |seed| run(choice, seed, asks, 3).iter().map(|(_, loss)| *loss).fold(f64::INFINITY, f64::min);
    let all = (1..=seeds).map(|seed| ((one(seed) - best).exp() - 1.0) * 100.0);
    all.sum::<f64>() / seeds as f64
}

#[test]
fn strategies_that_learn_come_close_to_the_optimum() {
    for choice in [Choice::Auto, Choice::Cma, Choice::OnePlusOne, Choice::Pso, Choice::TwoPointsDe] {
        let (asks, seeds, most) = if choice == Choice::Auto { (70, 2, 0.5) } else { (150, 5, 6.0) };
        let regret = regret(&choice, asks, seeds);
        assert!(regret <= most, "{choice}: {regret:.2} % above the optimum");
    }
}
