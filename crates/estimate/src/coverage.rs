//! Where training data lie, and how far an operation is from them.
//!
//! A shape is a cell: its classes (element type, kind of pass, …), which must agree, and its sizes as whole doublings.
//! The distance of an operation is the Euclidean distance, in doublings, to the nearest cell with the same classes;
//! zero inside a cell that holds training rows, `None` where no row has these classes. A rough measure on purpose: it
//! answers "was something like this measured?" in well under a microsecond and a few kilobytes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::features::Family;

/// Cells that hold training rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coverage {
    classes: BTreeMap<Vec<i16>, Class>,
}

/// The rows with the same classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Class {
    /// Sizes, ascending.
    cells: Vec<Vec<i16>>,
    /// Sheets of the devices they were measured on, ascending.
    devices: Vec<String>,
}

/// Where an operation is among training rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Doublings to the nearest cell.
    pub distance: f64,
    /// Whether operations of its classes were measured on its device.
    pub device_seen: bool,
}

/// The positions of a family's axes among its features.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    classes: Vec<usize>,
    sizes: Vec<usize>,
}

impl Place {
    pub(crate) fn new(family: Family) -> Self {
        let names = family.names();
        let find = |axis: &&str| names.iter().position(|name| name == axis).expect("axes are features");
        let axes = family.axes();
        Self {
            classes: axes.classes.iter().map(find).collect(),
            sizes: axes.sizes.iter().map(find).collect(),
        }
    }

    fn class(&self, features: &[f32]) -> Vec<i16> {
        self.classes.iter().map(|at| (features[*at] * 8.0).round() as i16).collect()
    }

    /// The first class, as a whole number.
    pub(crate) fn kind(&self, features: &[f32]) -> i64 {
        self.classes.first().map_or(0, |at| features[*at].round() as i64)
    }

    fn sizes<'a>(&'a self, features: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        self.sizes.iter().map(|at| features[*at])
    }
}

impl Coverage {
    /// The cells of `rows`: the features of each, and the sheet of its device.
    #[must_use]
    pub(crate) fn of<'a>(family: Family, rows: impl IntoIterator<Item = (&'a [f32], &'a str)>) -> Self {
        let place = Place::new(family);
        let mut classes = BTreeMap::<Vec<i16>, Class>::new();
        for (row, device) in rows {
            let cell: Vec<i16> = place.sizes(row).map(|size| size.round() as i16).collect();
            let class = classes.entry(place.class(row)).or_default();
            if let Err(at) = class.cells.binary_search(&cell) {
                class.cells.insert(at, cell);
            }
            if let Err(at) = class.devices.binary_search_by(|known| known.as_str().cmp(device)) {
                class.devices.insert(at, device.to_owned());
            }
        }
        Self { classes }
    }

    /// Cells.
    #[must_use]
    pub(crate) fn cells(&self) -> usize {
        self.classes.values().map(|class| class.cells.len()).sum()
    }

    /// Sheets of all devices, ascending.
    #[must_use]
    pub(crate) fn devices(&self) -> BTreeSet<&str> {
        self.classes.values().flat_map(|class| class.devices.iter().map(String::as_str)).collect()
    }

    /// Where `features` on `device` are; `None` where nothing of their classes was measured.
    pub(crate) fn near(&self, place: &Place, features: &[f32], device: &str) -> Option<Near> {
        let class = self.classes.get(&place.class(features))?;
        let device_seen = class.devices.binary_search_by(|known| known.as_str().cmp(device)).is_ok();
        let own: Vec<f32> = place.sizes(features).collect();
        let rounded: Vec<i16> = own.iter().map(|size| size.round() as i16).collect();
        if class.cells.binary_search(&rounded).is_ok() {
            return Some(Near { distance: 0.0, device_seen });
        }
        // A cell reaches half a doubling to each side.
        let apart = |cell: &Vec<i16>| -> f32 {
            cell.iter().zip(&own).map(|(c, x)| ((f32::from(*c) - x).abs() - 0.5).max(0.0).powi(2)).sum()
        };
        let nearest = class.cells.iter().map(apart).fold(f32::INFINITY, f32::min);
        nearest.is_finite().then(|| Near { distance: f64::from(nearest).sqrt(), device_seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_doublings_and_classes_must_agree() {
        let family = Family::Streaming;
        let place = Place::new(family);
        let names = family.names();
        let row = |pass: f32, rows: f32, cols: f32| -> Vec<f32> {
            let value = |name: &&str| match *name {
                "pass" => pass,
                "rows" => rows,
                "cols" => cols,
                _ => 0.0,
            };
            names.iter().map(value).collect()
        };
        let known = [row(2.0, 10.0, 12.0), row(2.0, 14.0, 12.0)];
        let coverage = Coverage::of(family, known.iter().map(|row| (row.as_slice(), "a")));
        assert_eq!(coverage.cells(), 2);
        let check = |features: Vec<f32>, expect: Option<f64>| {
            let near = coverage.near(&place, &features, "a");
            assert_eq!(near.map(|near| near.distance), expect, "{features:?}");
            assert!(near.is_none_or(|near| near.device_seen));
            assert!(coverage.near(&place, &features, "b").is_none_or(|near| !near.device_seen));
        };
        check(row(2.0, 10.4, 11.6), Some(0.0));
        check(row(2.0, 12.0, 12.0), Some(1.5));
        check(row(2.0, 18.5, 12.0), Some(4.0));
        check(row(3.0, 10.0, 12.0), None);
    }
}
