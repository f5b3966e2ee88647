//! How far measurements lie from a model's predictions: its intervals.
//!
//! They are conformal: quantiles of `ln(measurement / prediction)` of training rows whose group (products with one weight,
//! attention with one set of heads, …) the model was trained without, so that eight of ten times of *another* shape lie
//! inside. Devices and kinds of operation differ (a clock that counts whole microseconds, a board at its power limit, a
//! library that chooses between algorithms), so each device, and each kind on it, has quantiles of its own where enough
//! rows were left out; sparse ones take those of the device, then those of all. A device that was never measured takes the
//! residuals of devices that were left out whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An interval reaches at least so far to either side (as a logarithm): rows of one table were measured in one go, on one
/// board; the same product in another table of the same GPU is 2 % off at best (A100, half precision).
const REPEAT: f64 = 0.03;

/// How far measurements lie from predictions on rows that were left out, by the size of the operation: 10 and 90 %
/// quantiles of `ln(measurement / prediction)` by doublings of the physics time, from one microsecond on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spreads {
    /// For shapes that were left out, over all devices.
    pub shapes: Vec<[f32; 2]>,
    /// The same for devices that were left out; empty where the model is not carried over to other devices.
    pub devices: Vec<[f32; 2]>,
    /// As `shapes`, of single devices (`SHEET`) and of single kinds of operation on them (`SHEET/KIND`, the number of
    /// the family's first class).
    #[serde(default)]
    pub known: BTreeMap<String, Vec<[f32; 2]>>,
}

impl Spreads {
    /// Factors to the low and the high end for an operation of `kind` that physics gives `microseconds`, on `device` if
    /// that was measured.
    pub(crate) fn of(&self, device: Option<&str>, kind: i64, microseconds: f64) -> [f64; 2] {
        let own = |device: &str| {
            self.known
                .get(&format!("{device}/{kind}"))
                .or_else(|| self.known.get(device))
                .unwrap_or(&self.shapes)
        };
        let buckets = match device {
            Some(device) => own(device),
            None if self.devices.is_empty() => &self.shapes,
            None => &self.devices,
        };
        let at = microseconds.max(1.0).log2().floor() as usize;
        match buckets.get(at.min(buckets.len().saturating_sub(1))) {
            Some([low, high]) => [(-f64::from(-low).max(REPEAT)).exp(), f64::from(*high).max(REPEAT).exp()],
            None => [0.8, 1.25],
        }
    }

    /// The widest and the narrowest interval of each device, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        if self.known.is_empty() {
            return String::new();
        }
        let mut text = "\n| intervals of | narrowest | widest |\n|---|---|---|\n".to_owned();
        for (device, buckets) in &self.known {
            let width = |bucket: &&[f32; 2]| f64::from(bucket[1] - bucket[0]);
            let narrow = buckets.iter().min_by(|a, b| width(a).total_cmp(&width(b)));
            let wide = buckets.iter().max_by(|a, b| width(a).total_cmp(&width(b)));
            let show = |bucket: Option<&[f32; 2]>| {
                bucket.map_or_else(String::new, |[low, high]| {
                    let percent = |x: f32| (f64::from(x).exp() - 1.0) * 100.0;
                    format!("{:+.1} … {:+.1} %", percent(*low), percent(*high))
                })
            };
            text.push_str(&format!("| {device} | {} | {} |\n", show(narrow), show(wide)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_special_interval_that_is_known_counts() {
        let known = [("a", -0.1), ("a/2", -0.4)].map(|(key, low)| (key.to_owned(), vec![[low, 0.0]]));
        let spreads = Spreads {
            shapes: vec![[-0.2, 0.0], [-0.3, 0.0]],
            devices: vec![[-0.5, 0.0]],
            known: known.into_iter().collect(),
        };
        let check = |device: Option<&str>, kind: i64, microseconds: f64, expect: f64| {
            let [low, high] = spreads.of(device, kind, microseconds);
            assert!((low.ln() - expect).abs() < 1e-6, "{device:?} {kind} {microseconds}: {low}");
            assert!((high.ln() - REPEAT).abs() < 1e-9);
        };
        check(Some("a"), 1, 1.0, -0.1);
        check(Some("a"), 2, 1e9, -0.4);
        check(Some("b"), 2, 0.1, -0.2);
        check(Some("b"), 2, 3.0, -0.3);
        check(None, 2, 3.0, -0.5);
        assert!(spreads.markdown().contains("| a/2 | -33.0 … +0.0 %"), "{}", spreads.markdown());
    }
}
