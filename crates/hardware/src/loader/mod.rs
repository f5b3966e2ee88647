//! From names and TOML files to complete sheets.
//!
//! Parse, then resolve: [`cited`] turns a TOML table whose numbers carry unit and source into a plain one, checked
//! against [`schema`]; [`catalogue`] follows `base`, `device` and `host` references; [`resolve`] reads what a user
//! writes after `--cluster`. This is the only place of the crate that reads files.

mod catalogue;
mod cited;
mod error;
mod schema;

use std::path::Path;

pub use catalogue::Catalogue;
pub use cited::{Cited, Provenance};
pub use error::HardwareError;

use crate::{ClusterSheet, HostSheet};

/// The cluster that `spec` names.
///
/// | `spec` | meaning |
/// |---|---|
/// | `dgx-h100` | one node |
/// | `dgx-h100:4` | four such nodes |
/// | `h100-sxm` | one node with one such device |
/// | `h100-sxm:8` | one node with eight such devices |
/// | `h100-sxm:8x4` | four nodes of eight such devices |
/// | `superpod-h100` | a cluster with its cabling |
/// | `superpod-h100:128` | the same with 128 nodes |
/// | `my.toml`, `my.toml:2`, … | the device, node or cluster of that file, counted in the same way |
///
/// A file is recognised by its ending `.toml`. A device's host, links and adapters are those of its `home` node.
///
/// # Errors
/// An unknown name (with the nearest known one), a count that makes no sense, an unreadable or incomplete file.
pub fn resolve(spec: &str) -> Result<ClusterSheet, HardwareError> {
    let catalogue = Catalogue::builtin();
    let (name, counts) = split_counts(spec)?;
    let found = if Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        catalogue.read_file(Path::new(name))?
    } else {
        catalogue.find(name)?
    };
    catalogue.cluster(found, counts, spec)
}

/// The host that `spec` names: a built-in sheet, or a `.toml` file.
///
/// # Errors
/// An unknown name, an unreadable or incomplete file.
pub fn resolve_host(spec: &str) -> Result<HostSheet, HardwareError> {
    let catalogue = Catalogue::builtin();
    if Path::new(spec).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        return catalogue.host_of(&catalogue.read_file(Path::new(spec))?);
    }
    catalogue.host(spec)
}

/// The counts after the colon of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    None,
    /// `:4`
    One(u32),
    /// `:8x4`
    Two(u32, u32),
}

fn split_counts(spec: &str) -> Result<(&str, Counts), HardwareError> {
    let spec = spec.trim();
    let Some((name, counts)) = spec.rsplit_once(':') else { return Ok((spec, Counts::None)) };
    // `C:\cluster.toml` and the like: what follows the colon is no count.
    if counts.contains(['/', '\\']) {
        return Ok((spec, Counts::None));
    }
    let number = |text: &str| match text.parse::<u32>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(HardwareError::Count { spec: spec.to_owned(), count: text.to_owned() }),
    };
    let counts = match counts.split_once(['x', 'X']) {
        Some((devices, nodes)) => Counts::Two(number(devices)?, number(nodes)?),
        None => Counts::One(number(counts)?),
    };
    Ok((name, counts))
}
