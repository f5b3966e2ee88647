//! Fitted constants: what each algorithm and protocol really costs, per kind of fabric.
//!
//! The built-in ones (`constants/fitted.toml`) name the measurements they come from; the example `collectives` makes
//! them anew. A user's own may be laid beside them ([`Constants::parse`]).

use serde::{Deserialize, Serialize};
use trompe_hardware::Architecture;

use crate::operation::Operation;
use crate::tuner::{Algorithm, Protocol};

/// All constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Inside nodes, one entry per kind of fabric.
    #[serde(rename = "fabric")]
    pub fabrics: Vec<FabricConstants>,
    /// Between nodes.
    pub network: NetworkConstants,
}

/// How devices of a node are joined, as far as constants differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// NVLink through switches.
    Switched,
    /// NVLink from device to device.
    Linked,
    /// PCIe.
    Pcie,
}

/// Constants of one kind of fabric inside a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricConstants {
    /// Generation of the devices.
    pub architecture: Architecture,
    /// How they are joined.
    pub carrier: Carrier,
    /// Nominal ring rate of the measured machines in GB/s; other rates scale the bytes' share of a time.
    pub nominal: f64,
    /// Where the numbers come from.
    pub source: String,
    /// Rate at a number of ranks over that of two, where a tree of switches shares links: `[ranks, share]`, ascending.
    #[serde(default)]
    pub shares: Vec<(u32, f64)>,
    /// The terms.
    #[serde(rename = "term")]
    pub terms: Vec<Term>,
}

/// Cost of one operation by one algorithm and protocol:
/// `base + step · steps + wire · bytes + own · own bytes + ramp · √bytes` with the counts of [`crate::Features`].
///
/// The root is what a pipeline costs whose chunks are as long as is best: filling it takes one chunk, and each chunk a
/// start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Operation.
    pub operation: Operation,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// Microseconds per operation.
    pub base: f64,
    /// Microseconds per step inside a node.
    pub step: f64,
    /// Microseconds per GB on the links of a device.
    pub wire: f64,
    /// Microseconds per GB of a rank's own part.
    pub own: f64,
    /// Microseconds per root of a GB on the links of a device.
    pub ramp: f64,
    /// Measured over predicted time at the 5th percentile of rows of sizes that were left out of a fit.
    pub low: f64,
    /// The same at the 95th.
    pub high: f64,
    /// Fitted rows.
    pub rows: u32,
    /// What the sum leaves, by number of ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bends: Vec<Bend>,
}

/// Measured time over the sum of a [`Term`], at the sizes that were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bend {
    /// Ranks that took part.
    pub ranks: u32,
    /// Binary logarithm of the bytes, ascending, and the factor.
    pub points: Vec<(f64, f64)>,
}

impl Bend {
    /// The bend for a number of ranks: its own, else that of the nearest number.
    #[must_use]
    pub fn nearest(bends: &[Self], ranks: u32) -> Option<&Self> {
        let apart = |bend: &&Self| {
            let (a, b) = (u64::from(bend.ranks.max(1)), u64::from(ranks.max(1)));
            // Ordered like the ratio of the two, in whole numbers.
            1_000_000 * a.max(b) / a.min(b)
        };
        bends.iter().filter(|bend| !bend.points.is_empty()).min_by_key(apart)
    }

    /// The factor at `bytes`: interpolated in the logarithms, kept beyond the ends.
    #[must_use]
    pub fn factor(&self, bytes: f64) -> f64 {
        let x = bytes.max(1.0).log2();
        let above = self.points.partition_point(|point| point.0 < x);
        match (above.checked_sub(1).map(|below| self.points[below]), self.points.get(above)) {
            (Some((x0, y0)), Some(&(x1, y1))) => (y0.ln() + (x - x0) / (x1 - x0) * (y1.ln() - y0.ln())).exp(),
            (Some((_, y)), None) | (None, Some(&(_, y))) => y,
            (None, None) => 1.0,
        }
    }
}

/// Constants of the network between nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConstants {
    /// Where the numbers come from.
    pub source: String,
    /// Share of the adapters' rate that rings reach.
    pub ring: f64,
    /// The same for trees.
    pub tree: f64,
    /// The same for all-to-all.
    pub all_to_all: f64,
    /// The same for a single message.
    pub message: f64,
    /// What a pipeline between nodes costs whose chunks are as long as is best, over the root of its steps' latency times
    /// its bytes' time.
    #[serde(default)]
    pub ramp: f64,
    /// Microseconds that the adapters add to a step, where that was measured; the sheet's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    /// Whether these were fitted to the very network that is priced, so that `low` and `high` are its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// How the times of the bytes inside and between nodes add up: the `p` of a p-norm. 1 is one after the other, large
    /// numbers are the longer of the two.
    pub overlap: f64,
    /// Measured over predicted time at the 5th percentile of rows across nodes.
    pub low: f64,
    /// The same at the 95th.
    pub high: f64,
}

/// Why constants cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConstantsError {
    /// Not such a file.
    #[error("cannot read the constants: {0}; compare with `constants/fitted.toml`")]
    Syntax(#[from] toml::de::Error),
    /// Not the exponent of a norm.
    #[error("`overlap` of the network is {value}; it must be 1 or more")]
    Overlap {
        /// The number.
        value: f64,
    },
    /// A number that no machine has.
    #[error(
        "{name} of {operation:?} by {algorithm:?} with {protocol:?} is {value}; it must be finite and not negative"
    )]
    Value {
        /// Which.
        name: &'static str,
        /// The number.
        value: f64,
        /// Operation of the term.
        operation: Operation,
        /// Algorithm of the term.
        algorithm: Algorithm,
        /// Protocol of the term.
        protocol: Protocol,
    },
}

impl Constants {
    /// The constants that are part of this build.
    ///
    /// # Panics
    /// When the built-in file is damaged, which the crate's tests rule out.
    #[must_use]
    pub fn builtin() -> Self {
        Self::parse(include_str!("../constants/fitted.toml")).expect("the built-in constants are tested")
    }

    /// Reads constants from the text of a TOML file.
    ///
    /// # Errors
    /// When the text is not of this form or has impossible numbers.
    pub fn parse(text: &str) -> Result<Self, ConstantsError> {
        let constants: Self = toml::from_str(text)?;
        for term in constants.fabrics.iter().flat_map(|fabric| &fabric.terms) {
            let numbers = [
                ("base", term.base),
                ("step", term.step),
                ("wire", term.wire),
                ("own", term.own),
                ("ramp", term.ramp),
                ("low", term.low),
                ("high", term.high),
            ];
            let factors = term.bends.iter().flat_map(|bend| &bend.points).map(|point| ("bends", point.1));
            for (name, value) in numbers.into_iter().chain(factors) {
                if !value.is_finite() || value < 0.0 {
                    let Term { operation, algorithm, protocol, .. } = *term;
                    return Err(ConstantsError::Value { name, value, operation, algorithm, protocol });
                }
            }
        }
        if constants.network.overlap < 1.0 {
            return Err(ConstantsError::Overlap { value: constants.network.overlap });
        }
        Ok(constants)
    }

    /// The constants as the text of a TOML file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain data has a TOML form")
    }

    /// The constants for a kind of fabric: its own, else those of the nearest generation joined in the same way.
    #[must_use]
    pub fn find(&self, architecture: Architecture, carrier: Carrier) -> Option<&FabricConstants> {
        let distance = |fabric: &&FabricConstants| (fabric.architecture as i32 - architecture as i32).abs();
        self.fabrics.iter().filter(|fabric| fabric.carrier == carrier).min_by_key(distance)
    }
}

impl FabricConstants {
    /// The term of a choice.
    #[must_use]
    pub fn term(&self, operation: Operation, algorithm: Algorithm, protocol: Protocol) -> Option<&Term> {
        let wanted = |term: &&Term| {
            term.operation == operation && term.algorithm == algorithm && term.protocol == protocol
        };
        self.terms.iter().find(wanted)
    }

    /// Rate at `ranks` ranks over that of two: interpolated in the logarithms, kept beyond the ends.
    #[must_use]
    pub fn share(&self, ranks: u32) -> f64 {
        let (Some(first), Some(last)) = (self.shares.first(), self.shares.last()) else { return 1.0 };
        if ranks <= first.0 {
            return first.1;
        }
        if ranks >= last.0 {
            return last.1;
        }
        let above = self.shares.iter().position(|&(at, _)| at >= ranks).expect("the last is above");
        let ((x0, y0), (x1, y1)) = (self.shares[above - 1], self.shares[above]);
        let log = |x: u32| f64::from(x).ln();
        let along = (log(ranks) - log(x0)) / (log(x1) - log(x0));
        (y0.ln() + along * (y1.ln() - y0.ln())).exp()
    }
}
