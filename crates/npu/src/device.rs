//! Device and profile sheets: what a core has, and how many cycles things take.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::program::Space;

const DEVICES: &[&str] = &[
    include_str!("../devices/ascend-910b.toml"),
    include_str!("../devices/ascend-910b1.toml"),
    include_str!("../devices/ascend-910b4.toml"),
    include_str!("../devices/ascend-950.toml"),
    include_str!("../devices/ascend-950pr.toml"),
];

/// An NPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its name, as a user gives it.
    pub name: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Core generation: `c220` or `c310`; picks the calibrated profile.
    pub family: String,
    /// Cores: one cube lane each.
    pub cores: u32,
    /// Vector lanes per core.
    pub vector_lanes: u32,
    /// Clock of the cores.
    pub clock_mhz: f64,
    /// Layout of the matrix unit's left operand where an instruction leaves it open.
    pub left_operand_layout: LeftLayout,
    /// Tokens that a flag between lanes holds.
    pub flag_tokens: usize,
    /// Event ids per ordered pair of pipes.
    pub events_per_pair: usize,
    /// Where each number comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Sizes of the memories in KiB.
    pub capacity_kib: PerSpace,
    /// Alignment of tensors in each memory in bytes.
    pub alignment: PerSpace,
    /// Largest parameters of instructions.
    pub limits: Limits,
}

/// Fractal layout of the left operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftLayout {
    #[serde(rename = "NZ")]
    Nz,
    #[serde(rename = "ZZ")]
    Zz,
}

/// A number per memory of a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerSpace {
    pub l1: u64,
    pub l0a: u64,
    pub l0b: u64,
    pub l0c: u64,
    pub ub: u64,
}

impl PerSpace {
    /// The number of `space`; global memory has 32.
    #[must_use]
    pub const fn of(&self, space: Space) -> u64 {
        match space {
            Space::Gm => 32,
            Space::L1 => self.l1,
            Space::L0a => self.l0a,
            Space::L0b => self.l0b,
            Space::L0c => self.l0c,
            Space::Ub => self.ub,
        }
    }
}

/// Largest parameters of instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bursts of one data move.
    pub bursts: u64,
    /// Repeats of one vector instruction.
    pub repeat: u64,
    /// Gap between bursts, in the instruction's unit.
    pub stride: u64,
}

impl Device {
    /// The device of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self, LoadError> {
        let all = Self::all();
        let found = all.iter().find(|device| {
            device.name.eq_ignore_ascii_case(name)
                || device.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        });
        found.cloned().ok_or_else(|| LoadError::UnknownDevice {
            name: name.to_owned(),
            known: all.iter().map(|device| format!("`{}`", device.name)).collect::<Vec<_>>().join(", "),
        })
    }

    /// A device from the text of a TOML sheet called `name`.
    ///
    /// # Errors
    /// When the sheet is incomplete or not TOML.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, LoadError> {
        sheet(name, text)
    }

    /// Every built-in device.
    #[must_use]
    pub fn all() -> Vec<Self> {
        DEVICES.iter().map(|text| toml::from_str(text).expect("built-in sheets are valid")).collect()
    }
}

fn sheet<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, LoadError> {
    toml::from_str(text)
        .map_err(|error| LoadError::Sheet { name: name.to_owned(), problem: error.message().to_owned() })
}

/// How many cycles things take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// Bytes of one vector instruction where an instruction gives no repeats.
    pub largest_vector_bytes: u64,
    /// Data moves.
    pub paths: Paths,
    /// The matrix unit.
    pub mmad: MatrixRate,
    /// The vector unit.
    pub vector: VectorRate,
    /// Micro programs.
    pub micro: MicroRate,
    /// Flags and events.
    pub sync: SyncRate,
}

/// A data move: `overhead + max(1, ceil(bytes / bytes_per_cycle))`, and nothing for no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Cycles before the first byte.
    #[serde(default)]
    pub overhead: u64,
    /// Rate.
    pub bytes_per_cycle: f64,
}

impl Path {
    /// Cycles of `bytes`.
    #[must_use]
    pub fn cycles(self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        self.overhead + ((bytes as f64 / self.bytes_per_cycle).ceil() as u64).max(1)
    }
}

/// One rate per data move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    pub gm_to_l1: Path,
    pub gm_to_ub: Path,
    pub ub_to_gm: Path,
    pub set_constant: Path,
    pub l1_to_l0: Path,
    pub l0c_to_gm: Path,
    pub l0c_to_l1: Path,
    pub l0c_to_ub: Path,
    pub ub_to_l1_nd: Path,
    pub ub_to_l1_nz: Path,
    pub shared: Path,
    /// Whether moves of a window between global memory and the cube's memories are charged for the bytes between its
    /// rows too, as the reference does, or only for what they move.
    #[serde(default)]
    pub charge_gaps: bool,
    /// Without it, as any vector instruction.
    #[serde(default)]
    pub ub_to_ub: Option<Path>,
    /// `sort32`, in elements; without it, as any vector instruction.
    #[serde(default)]
    pub sort: Option<Path>,
    /// Merges, in elements; without it, as any vector instruction.
    #[serde(default)]
    pub merge: Option<Path>,
}

/// `overhead + ceil(M x N x K / rate)`; padded: M and N to 16, K to 256 bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRate {
    #[serde(default)]
    pub overhead: u64,
    pub padded: bool,
    pub macs_per_cycle_8: u64,
    pub macs_per_cycle_16: u64,
    pub macs_per_cycle_32: u64,
}

/// `overhead + repeats x cycles_per_instruction`, or what `operations` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VectorRate {
    /// Cycles before the first repeat.
    #[serde(default)]
    pub overhead: u64,
    /// Cycles of a repeat.
    pub cycles_per_instruction: u64,
    /// `name:type` with its own line.
    #[serde(default)]
    pub operations: BTreeMap<String, Path>,
}

/// How long a micro program takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum MicroRate {
    /// So many cycles for each counted instruction (all but declarations, loops, scalars and moves).
    Counted {
        /// Cycles of one.
        cycles_per_instruction: u64,
    },
    /// `start + max(busiest unit, raw x longest chain of dependent registers) + end`.
    Units(MicroUnits),
}

/// Cycles per instruction of each unit, see [`MicroRate::Units`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MicroUnits {
    pub start: f64,
    pub load: f64,
    pub store: f64,
    pub scalar: f64,
    pub execute: f64,
    pub raw: f64,
    pub end: f64,
    pub conflict_load: Conflict,
    pub conflict_store: Conflict,
}

/// What a strided access costs on top: `base + per_way x (blocks in the fullest bank - 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    pub banks: u64,
    pub base: f64,
    pub per_way: f64,
}

/// Flags and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncRate {
    /// Cycles of a synchronising instruction on a pipe.
    pub marker: u64,
    /// Cycles that an event's set or wait occupies in the timeline's end.
    pub instant: u64,
    /// Cycles until another lane or core sees a flag.
    pub cross_lane_latency: u64,
}

impl Profile {
    /// The built-in profile of this name for `device`.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str, device: &Device) -> Result<Self, LoadError> {
        let text = match (name, device.family.as_str()) {
            ("reference", _) => include_str!("../profiles/reference.toml"),
            ("calibrated", "c220") => include_str!("../profiles/calibrated-c220.toml"),
            ("calibrated", _) => include_str!("../profiles/calibrated-c310.toml"),
            _ => return Err(LoadError::UnknownProfile { name: name.to_owned() }),
        };
        Ok(toml::from_str(text).expect("built-in profiles are valid"))
    }

    /// A profile from the text of a TOML file called `name`.
    ///
    /// # Errors
    /// When it is incomplete or not TOML.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, LoadError> {
        sheet(name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_sheets_read_and_have_distinct_names() {
        let mut names: Vec<String> = Device::all()
            .into_iter()
            .flat_map(|device| device.aliases.into_iter().chain([device.name]))
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        for device in Device::all() {
            for profile in ["reference", "calibrated"] {
                assert_eq!(Profile::named(profile, &device).unwrap().name, profile);
            }
        }
    }

    #[test]
    fn errors_say_what_is_known() {
        let error = Device::named("ascend-1000").unwrap_err().to_string();
        assert!(error.contains("`ascend-1000`") && error.contains("`ascend-950`"), "{error}");
        let device = Device::named("950").unwrap();
        assert!(Profile::named("fast", &device).unwrap_err().to_string().contains("`reference`"));
        assert!(Profile::from_toml("mine.toml", "name = 1").unwrap_err().to_string().contains("mine.toml"));
    }
}
