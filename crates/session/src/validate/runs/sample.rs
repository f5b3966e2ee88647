//! A sample in which every kind of row occurs: strata take turns.

use std::collections::BTreeMap;

use trompe_base::Rng;

/// Keeps `limit` of `rows` in their order: every stratum gives one at random in turn until there are enough.
pub(super) fn choose<T>(rows: &mut Vec<T>, limit: Option<usize>, seed: u64, stratum: impl Fn(&T) -> String) {
    let Some(limit) = limit.filter(|limit| *limit < rows.len()) else { return };
    let mut random = Rng::new(seed);
    let mut strata = BTreeMap::<String, Vec<usize>>::new();
    for (at, row) in rows.iter().enumerate() {
        strata.entry(stratum(row)).or_default().push(at);
    }
    let mut strata: Vec<Vec<usize>> = strata.into_values().collect();
    for stratum in &mut strata {
        random.shuffle(stratum);
    }
    random.shuffle(&mut strata);
    let longest = strata.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| strata.iter().filter_map(move |stratum| stratum.get(turn)));
    let mut chosen: Vec<usize> = turns.copied().take(limit).collect();
    chosen.sort_unstable();
    let mut at = 0;
    rows.retain(|_| {
        at += 1;
        chosen.binary_search(&(at - 1)).is_ok()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_kinds_are_in_a_small_sample_too() {
        let mut rows: Vec<u32> = (0..100).collect();
        // 90 rows of one kind, nine of another, one of a third.
        let kind = |row: &u32| {
            if *row < 90 {
                "a"
            } else if *row < 99 {
                "b"
            } else {
                "c"
            }
            .to_owned()
        };
        choose(&mut rows, Some(9), 4, kind);
        assert_eq!(rows.len(), 9);
        assert!(rows.is_sorted());
        assert!(rows.contains(&99));
        assert_eq!(rows.iter().filter(|row| **row < 90).count(), 4);
    }

    #[test]
    fn the_same_seed_gives_the_same_sample() {
        let sample = |seed: u64| {
            let mut rows: Vec<u32> = (0..50).collect();
            choose(&mut rows, Some(10), seed, |_| String::new());
            rows
        };
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
    }
}
