//! Fewer memory samples for the page, such that the curve looks the same.

use trompe_results::MemorySample;

/// The most samples of one rank that the page keeps, about two for each pixel of a wide screen.
const MOST: usize = 6_000;

/// At most about [`MOST`] of `samples`: of each of many equal stretches of the axis, its first, lowest, highest and
/// last.
pub(super) fn samples(samples: &[MemorySample]) -> Vec<MemorySample> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    if samples.len() <= MOST {
        return samples.to_vec();
    }
    let stretches = MOST / 4;
    let stretch = |sample: &MemorySample| {
        let place = (sample.at - first.at) / (last.at - first.at).max(f64::MIN_POSITIVE);
        ((place * stretches as f64) as usize).min(stretches - 1)
    };
    let mut kept = Vec::with_capacity(MOST);
    for group in samples.chunk_by(|a, b| stretch(a) == stretch(b)) {
        let by = |index: &usize| group[*index].allocated_bytes;
        let lowest = (0..group.len()).min_by_key(by).unwrap_or(0);
        let highest = (0..group.len()).max_by_key(by).unwrap_or(0);
        let fullest = (0..group.len()).max_by_key(|index| group[*index].reserved_bytes).unwrap_or(0);
        let mut chosen = [0, lowest, highest, fullest, group.len() - 1];
        chosen.sort_unstable();
        let mut previous = None;
        for index in chosen {
            if previous != Some(index) {
                kept.push(group[index]);
            }
            previous = Some(index);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_ends_stay() {
        let many: Vec<_> = (0..100_000_u64)
            .map(|n| MemorySample {
                at: n as f64,
                allocated_bytes: if n == 77_777 { 1 << 40 } else { n % 1000 },
                reserved_bytes: if n == 33_333 { 1 << 41 } else { 1000 },
            })
            .collect();
        let few = samples(&many);
        assert!(few.len() <= MOST * 5 / 4, "{}", few.len());
        assert_eq!(few.iter().map(|s| s.allocated_bytes).max(), Some(1 << 40));
        assert_eq!(few.iter().map(|s| s.reserved_bytes).max(), Some(1 << 41));
        assert_eq!((few[0].at, few[few.len() - 1].at), (0.0, 99_999.0));
        assert!(few.is_sorted_by(|a, b| a.at < b.at));
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        let one = [MemorySample { at: 1.0, allocated_bytes: 2, reserved_bytes: 3 }];
        assert_eq!(samples(&one), one);
        assert!(samples(&[]).is_empty());
        let same_moment = vec![one[0]; MOST + 1];
        assert!(!samples(&same_moment).is_empty());
    }
}
