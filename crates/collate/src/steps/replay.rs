//! Steps beyond the optimizer steps that the program ran one operator at a time.
//!
//! PyTorch's recipe for CUDA graphs runs a few steps without a graph, captures one and launches it from then on. The
//! optimizer's ranges are seen during the warm-up and the capture, never at a launch; a launch of a graph that holds
//! such a range ends a step all the same. A compiled optimizer may have no range at all: what repeats behind the last
//! one and holds backward passes is training too, provided that it is more than a step left unfinished (gradient
//! accumulation that the end of the data cuts short) and more than evaluation (which has no backward pass).

use trompe_trace::job::{Action, Phase, StepSource};

use super::{Evidence, period};

/// The first of the optimizer's steps that count when at least two are launched as graphs.
pub(super) fn first_end(evidence: Evidence<'_, '_>) -> Option<usize> {
    let mut replayed = evidence.optimizer_ends.iter().enumerate().filter(|(_, end)| end.replayed);
    let (first, _) = replayed.next()?;
    replayed.next().map(|_| first)
}

/// Training that goes on behind the steps `found` and outweighs one of them twice.
pub(super) fn behind(evidence: Evidence<'_, '_>, found: &[usize]) -> Option<(Vec<usize>, StepSource)> {
    let from = *found.last()?;
    let mut steps: Vec<usize> = found.windows(2).map(|w| work(evidence, w[0], w[1])).collect();
    steps.sort_unstable();
    let usual = steps.get(steps.len() / 2)?;
    if work(evidence, from, evidence.events.len()) < 2 * usual {
        return None;
    }
    repeated(evidence, from)
}

/// Steps of a program without optimizer ranges that launches its backward pass as a graph.
pub(super) fn without_optimizer(evidence: Evidence<'_, '_>) -> Option<(Vec<usize>, StepSource)> {
    let mut launches = evidence.replays.iter().filter(|(_, replay)| replay.backward);
    let (first, _) = launches.next()?;
    launches.next()?;
    repeated(evidence, *first)
}

/// Two steps or more from `from` on that all hold a backward pass.
fn repeated(evidence: Evidence<'_, '_>, from: usize) -> Option<(Vec<usize>, StepSource)> {
    let boundaries = period::boundaries(evidence, from, None)?;
    let mut steps = boundaries.windows(2);
    let trains = boundaries.len() > 2 && steps.all(|w| (w[0]..w[1]).any(|row| is_backward(evidence, row)));
    let launched = evidence.replays.range(from..).any(|(_, replay)| replay.backward);
    let source = if launched { StepSource::Replay } else { StepSource::Period };
    trains.then_some((boundaries, source))
}

fn is_backward(evidence: Evidence<'_, '_>, row: usize) -> bool {
    let phase = evidence.sites[evidence.events[row].site as usize].phase;
    phase == Phase::Backward || evidence.replays.get(&row).is_some_and(|replay| replay.backward)
}

/// Device operations of a range of events.
fn work(evidence: Evidence<'_, '_>, begin: usize, end: usize) -> usize {
    let operations = evidence.events[begin..end].iter().map(|event| match &event.action {
        Action::Enqueue { .. } | Action::Collective { .. } => 1,
        Action::Graph { operations, .. } => operations.len(),
        _ => 0,
    });
    operations.sum()
}
