//! Host times that do not depend on one step's luck.
//!
//! The gap before each event is the framework's and the program's own time in this run, on a machine that may have
//! been interrupted. The steady steps are laid side by side along the usual one, and each event gets the median gap of
//! its position, the lower one where two are in the middle: interruptions only lengthen, and of two steps on a machine
//! with more processes than processors one was not interrupted at most positions. What a step does beyond the usual one
//! (logging, say) keeps its own gaps, or has the median of the steps that do exactly the same.
//!
//! Polls come as they like, more of them when the machine is slow: the time before them is counted to what follows
//! them, and in every step only as many count as calls as in the step with the fewest.
//!
//! Calls that the library only counts (`cudaGetDevice` and its like, 10 to 30 ns each) have no record: their time
//! stays in the gaps, where it stands for the real calls, which cost about as much.

use std::collections::BTreeMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use trompe_base::Duration;
use trompe_trace::job::{CallClass, HostEvent, Steps};
use trompe_trace::queues::DispatchQueues;

/// Pairs of positions above which what differs between two steps is not searched for what they share: 5000 events of
/// each, where the search takes tens of milliseconds.
const SEARCHED: usize = 25_000_000;

/// Replaces gaps by medians over equal positions, for each dispatch queue by itself. `keys[i]` says what event `i` does;
/// zero is a poll.
pub(crate) fn settle(events: &mut [HostEvent], keys: &[u64], steps: &Steps) {
    let boundaries = steps.boundaries.get(steps.warmup..).unwrap_or_default();
    let queues = DispatchQueues::of(events);
    if queues.is_single() {
        return settle_queue(events, keys, boundaries);
    }
    let mut programs: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (row, event) in events.iter().enumerate() {
        programs.entry(queues.queue(event.thread)).or_default().push(row);
    }
    for rows in programs.into_values() {
        let mut own: Vec<HostEvent> = rows.iter().map(|row| events[*row].clone()).collect();
        let own_keys: Vec<u64> = rows.iter().map(|row| keys[*row]).collect();
        let own_boundaries: Vec<usize> =
            boundaries.iter().map(|boundary| rows.partition_point(|row| row < boundary)).collect();
        settle_queue(&mut own, &own_keys, &own_boundaries);
        for (row, event) in rows.into_iter().zip(own) {
            events[row] = event;
        }
    }
}

/// The same for the events of one queue.
fn settle_queue(events: &mut [HostEvent], keys: &[u64], boundaries: &[usize]) {
    let ranges: Vec<_> = boundaries.windows(2).map(|w| w[0]..w[1]).collect();
    let mut groups: BTreeMap<Vec<u64>, Vec<Vec<usize>>> = BTreeMap::new();
    for range in &ranges {
        // The events of the step that are not polls.
        let rows: Vec<usize> = range.clone().filter(|row| keys[*row] != 0).collect();
        pass_over_polls(events, keys, &rows);
        let sequence = rows.iter().map(|row| keys[*row]).collect();
        groups.entry(sequence).or_default().push(rows);
    }
    // The usual step is what most steps do, the later one when there is no majority.
    let Some((usual, _)) = groups.iter().max_by_key(|(_, steps)| (steps.len(), steps.last().cloned())) else {
        return;
    };
    let mut positions: Vec<Vec<usize>> = vec![Vec::new(); usual.len()];
    for (sequence, steps) in &groups {
        for (own, of_usual) in aligned(sequence, usual) {
            positions[of_usual].extend(steps.iter().map(|rows| rows[own]));
        }
    }
    for rows in positions {
        share(events, rows);
    }
    // What they share is equal by now; this is about the rest.
    for steps in groups.values() {
        for position in 0..steps[0].len() {
            share(events, steps.iter().map(|rows| rows[position]).collect());
        }
    }
    let polls = |range: &std::ops::Range<usize>| range.clone().filter(|row| keys[*row] == 0);
    let fewest = ranges.iter().map(|range| polls(range).count()).min().unwrap_or(0);
    for row in ranges.iter().flat_map(|range| polls(range).skip(fewest)) {
        events[row].call = CallClass::None;
    }
}

/// Gives these events the median of their gaps.
fn share(events: &mut [HostEvent], rows: Vec<usize>) {
    let mut gaps: Vec<_> = rows.iter().map(|row| events[*row].gap).collect();
    let median = median(&mut gaps);
    rows.into_iter().for_each(|row| events[row].gap = median);
}

/// Positions of `own` and of `usual` that do the same, in order.
fn aligned(own: &[u64], usual: &[u64]) -> Vec<(usize, usize)> {
    let begin = own.iter().zip(usual).take_while(|(a, b)| a == b).count();
    let (own_rest, usual_rest) = (&own[begin..], &usual[begin..]);
    let end = own_rest.iter().rev().zip(usual_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (own_middle, usual_middle) =
        (&own_rest[..own_rest.len() - end], &usual_rest[..usual_rest.len() - end]);
    let mut pairs: Vec<_> = (0..begin).map(|position| (position, position)).collect();
    if own_middle.len().saturating_mul(usual_middle.len()) <= SEARCHED {
        for operation in capture_diff_slices(Algorithm::Myers, own_middle, usual_middle) {
            if let DiffOp::Equal { old_index, new_index, len } = operation {
                pairs.extend((0..len).map(|i| (begin + old_index + i, begin + new_index + i)));
            }
        }
    }
    pairs.extend((1..=end).rev().map(|back| (own.len() - back, usual.len() - back)));
    pairs
}

/// Moves the gaps of polls to the next of `rows`, the events of a step that are not polls.
fn pass_over_polls(events: &mut [HostEvent], keys: &[u64], rows: &[usize]) {
    let Some((first, last)) = rows.first().zip(rows.last()) else { return };
    // Polls at the begin of the step come before its first other event.
    let begin = (0..*first).rev().take_while(|row| keys[*row] == 0).last().unwrap_or(*first);
    let mut carried = Duration::ZERO;
    for row in begin..=*last {
        let gap = std::mem::take(&mut events[row].gap);
        if keys[row] == 0 {
            carried += gap;
        } else {
            events[row].gap = gap + std::mem::take(&mut carried);
        }
    }
}

/// The middle value, the lower one of two; zero of nothing.
fn median(values: &mut [Duration]) -> Duration {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use trompe_base::ThreadIndex;
    use trompe_trace::job::Action;

    use super::*;

    fn check(gaps: &[u64], keys: &[u64], boundaries: &[usize], warmup: usize, expect: &[u64]) {
        let event = |us: &u64| HostEvent {
            thread: ThreadIndex(0),
            gap: Duration::from_micros(*us),
            call: CallClass::Launch,
            site: 0,
            action: Action::Host,
        };
        let mut events: Vec<_> = gaps.iter().map(event).collect();
        let steps = Steps { boundaries: boundaries.to_vec(), warmup, ..Steps::default() };
        settle(&mut events, keys, &steps);
        let settled: Vec<_> = events.iter().map(|e| e.gap.as_picos() / 1_000_000).collect();
        assert_eq!(settled, expect);
    }

    #[test]
    fn equal_steps_share_their_medians() {
        // A warm-up step, three equal ones of which one was interrupted, and one that differs.
        check(
            &[90, 90, 10, 20, 10, 500, 12, 22, 7, 8],
            &[1, 2, 1, 2, 1, 2, 1, 2, 1, 3],
            &[0, 2, 4, 6, 8, 10],
            1,
            &[90, 90, 10, 22, 10, 22, 10, 22, 10, 8],
        );
    }

    #[test]
    fn of_two_steps_the_one_that_was_not_interrupted_counts() {
        check(&[10, 900, 12, 800, 20, 30], &[1, 2, 3, 1, 2, 3], &[0, 3, 6], 0, &[10, 20, 12, 10, 20, 12]);
    }

    #[test]
    fn a_step_with_something_more_takes_the_medians_around_it() {
        check(
            &[10, 20, 30, 10, 20, 30, 900, 5, 800, 700],
            &[1, 2, 3, 1, 2, 3, 1, 9, 2, 3],
            &[0, 3, 6, 10],
            0,
            &[10, 20, 30, 10, 20, 30, 10, 5, 20, 30],
        );
    }

    #[test]
    fn a_step_that_differs_in_several_places_takes_the_medians_of_what_it_shares() {
        // 7 and 8 are its own, 2 is what it leaves out.
        check(
            &[10, 20, 30, 40, 12, 22, 32, 42, 600, 5, 700, 6, 900],
            &[1, 2, 3, 4, 1, 2, 3, 4, 1, 7, 3, 8, 4],
            &[0, 4, 8, 13],
            0,
            &[12, 20, 32, 42, 12, 20, 32, 42, 12, 5, 32, 6, 42],
        );
    }

    #[test]
    fn steps_that_are_all_different_share_what_they_can() {
        check(
            &[10, 20, 30, 50, 70, 8, 90],
            &[1, 2, 1, 3, 1, 4, 3],
            &[0, 2, 4, 7],
            0,
            &[30, 20, 30, 50, 30, 8, 50],
        );
    }

    #[test]
    fn steps_of_one_kind_cost_the_same_however_often_they_poll() {
        let keys = [1, 2, 0, 1, 0, 2, 1, 0, 0, 2];
        let event = |row: usize| HostEvent {
            thread: ThreadIndex(0),
            gap: Duration::from_micros(10 + row as u64),
            call: if keys[row] == 0 { CallClass::Synchronize } else { CallClass::Launch },
            site: 0,
            action: Action::Host,
        };
        let check = |fewest: usize, boundaries: &[usize]| {
            let mut events: Vec<_> = (0..keys.len()).map(event).collect();
            let steps = Steps { boundaries: boundaries.to_vec(), ..Steps::default() };
            settle(&mut events, &keys, &steps);
            for step in boundaries.windows(2) {
                let step = &events[step[0]..step[1]];
                let gaps: Duration = step.iter().map(|event| event.gap).sum();
                let polls = step.iter().filter(|event| event.call == CallClass::Synchronize).count();
                let first = &events[boundaries[0]..boundaries[1]];
                assert_eq!((gaps, polls), (first.iter().map(|event| event.gap).sum(), fewest));
            }
        };
        check(0, &[0, 2, 6, 10]);
        check(2, &[2, 6, 10]);
    }

    #[test]
    fn polls_do_not_break_the_alignment() {
        // The poll's 3 go to the event behind it: 10 and 23 against 30 and 40.
        check(&[10, 3, 20, 30, 40], &[1, 0, 2, 1, 2], &[0, 3, 5], 0, &[10, 0, 23, 10, 23]);
    }
}
