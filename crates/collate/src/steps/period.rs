//! Steps from repetition alone, for traces without operators and marks.
//!
//! An event that happens once per step is an anchor. Of all kinds of events, those that happen equally often the most
//! usual number of times are candidates; the one whose occurrences are the most evenly spaced is taken, and the
//! boundary is then moved behind the last parameter update of each period, where a step naturally ends.

use std::collections::BTreeMap;

use super::{Evidence, updates_parameters};

/// Boundaries of `count` steps, or of as many as the trace suggests, among the events from `from` on.
pub(super) fn boundaries(
    evidence: Evidence<'_, '_>,
    from: usize,
    count: Option<usize>,
) -> Option<Vec<usize>> {
    if count == Some(0) {
        return None;
    }
    let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (row, key) in evidence.keys.iter().enumerate().skip(from).filter(|(_, key)| **key != 0) {
        places.entry(*key).or_default().push(row);
    }
    let times = match count {
        Some(count) => count,
        None => usual_count(&places, evidence.keys.len() - from)?,
    };
    let candidates = places.values().filter(|rows| rows.len() == times);
    let anchor = candidates.min_by_key(|rows| (unevenness(rows), rows[0]))?;
    let mut starts = anchor.clone();
    let end = evidence.events.len();
    // Move every boundary behind the last update before the next anchor, when each period has one.
    let periods = starts.iter().copied().zip(starts.iter().copied().skip(1).chain([end]));
    let updates: Option<Vec<usize>> =
        periods.map(|(from, to)| (from..to).rev().find(|row| updates_parameters(evidence, *row))).collect();
    if let Some(updates) = updates {
        let mut moved = vec![from];
        moved.extend(updates.into_iter().map(|row| row + 1));
        // When the anchor lies within the update, the end of the run cuts the last step short: it is no whole one.
        if let [.., a, b, c] = moved[..]
            && count.is_none()
            && c - b < b - a
            && moved.len() > 3
        {
            moved.pop();
        }
        return Some(moved);
    }
    // Without updates: from anchor to anchor; the last step is as long as the one before.
    let length = starts.windows(2).last().map_or(end - starts[0], |w| w[1] - w[0]);
    starts.push((starts[starts.len() - 1] + length).min(end));
    Some(starts)
}

/// The number of occurrences, at least two, that explains the most events when each kind occurs once per step.
fn usual_count(places: &BTreeMap<u64, Vec<usize>>, events: usize) -> Option<usize> {
    let mut kinds: BTreeMap<usize, usize> = BTreeMap::new();
    for rows in places.values().filter(|rows| rows.len() > 1) {
        *kinds.entry(rows.len()).or_default() += 1;
    }
    // Steps: a number such that many kinds occur that often, or a multiple of it.
    let score = |times: usize| -> usize {
        let multiples = places.values().filter(|rows| rows.len() % times == 0 && spread(rows, times));
        multiples.map(Vec::len).sum()
    };
    let scores: Vec<(usize, usize)> = kinds.keys().map(|times| (*times, score(*times))).collect();
    let best = scores.iter().map(|(_, score)| *score).max()?;
    // What fits ten steps fits two of five as well, and a little more by chance: of those that explain nearly as much
    // as the best, the largest number.
    let (times, score) = scores.into_iter().rev().find(|(_, score)| score * 10 >= best * 9)?;
    // A run whose kinds do not repeat together has no steps.
    (score * 2 > events).then_some(times)
}

/// Whether the occurrences fall into `times` groups of equal length: evenly over the run, not all at its start.
fn spread(rows: &[usize], times: usize) -> bool {
    let group = rows.len() / times;
    let firsts: Vec<usize> = rows.iter().step_by(group).copied().collect();
    // The first step does more than the others.
    let skip = usize::from(times > 3);
    let distances: Vec<usize> = firsts.windows(2).map(|w| w[1] - w[0]).skip(skip).collect();
    let (least, most) =
        (distances.iter().min().copied().unwrap_or(0), distances.iter().max().copied().unwrap_or(0));
    most <= least + least / 4 + 4
}

/// The difference of the longest and the shortest distance between occurrences, the first left out.
fn unevenness(rows: &[usize]) -> usize {
    let distances = || rows.windows(2).map(|w| w[1] - w[0]).skip(usize::from(rows.len() > 3));
    distances().max().unwrap_or(0) - distances().min().unwrap_or(0)
}
