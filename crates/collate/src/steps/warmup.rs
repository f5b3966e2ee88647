//! How many steps at the start differ from the later ones.

use std::collections::BTreeMap;

use trompe_trace::job::CallClass;

use super::{Evidence, sequence_hash};

/// Steps at the start whose sequence of operations is not the usual one: at least the first, never all of them.
pub(super) fn count(evidence: Evidence<'_, '_>, boundaries: &[usize]) -> usize {
    let ranges: Vec<(usize, usize)> = boundaries.windows(2).map(|w| (w[0], w[1])).collect();
    if ranges.len() < 2 {
        return 0;
    }
    let hashes: Vec<u64> = ranges.iter().map(|(begin, end)| sequence_hash(evidence, *begin, *end)).collect();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for hash in &hashes {
        *counts.entry(*hash).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let usual = |hash: &u64| counts[hash] == most;
    let differing = if most > 1 {
        hashes.iter().position(usual).unwrap_or(0)
    } else {
        // Every step is different (sequence lengths vary): warm-up is while memory still comes from the driver.
        let grows = |(begin, end): &(usize, usize)| {
            evidence.events[*begin..*end].iter().any(|event| event.call == CallClass::Memory)
        };
        ranges.iter().take_while(|range| grows(range)).count().min(ranges.len() / 2)
    };
    differing.max(1).min(ranges.len() - 1)
}
