//! Host times that do not depend on one step's luck.
//!
//! The gap before each event is the framework's and the program's own time in this run, on a machine that may have
//! been interrupted. Steps that do the same things in the same order are laid side by side, and each event gets the
//! median gap of its position. A step that differs from the usual one in one place takes the medians before and behind
//! that place; what differs keeps its own gaps. Polls come as they like: the time before them
//! is counted to what follows them.
//!
//! Calls that the library only counts (`cudaGetDevice` and its like, 10 to 30 ns each) have no record: their time
//! stays in the gaps, where it stands for the real calls, which cost about as much.

use std::collections::BTreeMap;

use trompe_base::Duration;
use trompe_trace::job::{HostEvent, Steps};

/// The events of one step that are not polls.
type Rows = Vec<usize>;

/// Replaces gaps by medians over equal steps. `keys[i]` says what event `i` does; zero is a poll.
pub(crate) fn settle(events: &mut [HostEvent], keys: &[u64], steps: &Steps) {
    let mut groups: BTreeMap<Vec<u64>, Vec<Rows>> = BTreeMap::new();
    for range in steps.boundaries.windows(2).skip(steps.warmup) {
        let rows: Rows = (range[0]..range[1]).filter(|row| keys[*row] != 0).collect();
        pass_over_polls(events, keys, &rows);
        let sequence = rows.iter().map(|row| keys[*row]).collect();
        groups.entry(sequence).or_default().push(rows);
    }
    for steps in groups.values().filter(|steps| steps.len() > 1) {
        for position in 0..steps[0].len() {
            let mut gaps: Vec<_> = steps.iter().map(|rows| events[rows[position]].gap).collect();
            let median = median(&mut gaps);
            for rows in steps {
                events[rows[position]].gap = median;
            }
        }
    }
    // The usual step lends its medians to those that differ from it in one place.
    let usual = groups.iter().max_by_key(|(_, steps)| steps.len()).filter(|(_, steps)| steps.len() > 1);
    let Some((usual, reference)) = usual.map(|(sequence, steps)| (sequence, &steps[0])) else { return };
    for (sequence, steps) in groups.iter().filter(|(_, steps)| steps.len() == 1) {
        let begin = sequence.iter().zip(usual).take_while(|(a, b)| a == b).count();
        let end = sequence.iter().rev().zip(usual.iter().rev()).take_while(|(a, b)| a == b).count();
        let end = end.min(sequence.len().min(usual.len()) - begin);
        let (own, rows) = (sequence.len(), &steps[0]);
        for position in 0..begin {
            events[rows[position]].gap = events[reference[position]].gap;
        }
        for back in 1..=end {
            events[rows[own - back]].gap = events[reference[usual.len() - back]].gap;
        }
    }
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

/// The middle value, or the mean of the two.
fn median(values: &mut [Duration]) -> Duration {
    values.sort_unstable();
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return values[middle];
    }
    let sum = values[middle - 1].as_picos().saturating_add(values[middle].as_picos());
    Duration::from_picos(sum / 2)
}

#[cfg(test)]
mod tests {
    use trompe_base::ThreadIndex;
    use trompe_trace::job::{Action, CallClass};

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
    fn polls_do_not_break_the_alignment() {
        // The poll's 3 go to the event behind it: 10 and 23 against 30 and 40.
        check(&[10, 3, 20, 30, 40], &[1, 0, 2, 1, 2], &[0, 3, 5], 0, &[20, 0, 31, 20, 31]);
    }
}
