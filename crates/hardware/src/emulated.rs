//! The JSON file through which a launcher tells the preloaded library which node to pretend.

use serde::{Deserialize, Serialize};

use crate::{DeviceSheet, NodeSheet};

/// A pretended node: its devices and the versions that the libraries report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatedNode {
    /// Version of this format; [`EmulatedNode::FORMAT`].
    pub format: u32,
    /// How many devices.
    pub device_count: u32,
    /// The devices, all alike.
    pub device: DeviceSheet,
    /// Whether two devices can read each other's memory (`cudaDeviceCanAccessPeer`).
    pub peer_access: bool,
    /// Versions that the libraries report.
    pub software: SoftwareVersions,
    /// Told into device UUIDs, so that two pretended nodes differ.
    pub identity: u64,
}

/// Versions that the emulated libraries report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwareVersions {
    /// NVIDIA kernel driver, as NVML reports it.
    pub driver: String,
    /// `cuDriverGetVersion`: 1000 × major + 10 × minor.
    pub cuda_driver: u32,
    /// `cudaRuntimeGetVersion`: 1000 × major + 10 × minor.
    pub cuda_runtime: u32,
    /// `cudnnGetVersion`: 10000 × major + 100 × minor + patch.
    pub cudnn: u32,
    /// `ncclGetVersion`: 10000 × major + 100 × minor + patch.
    pub nccl: u32,
}

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// PCI bus.
    pub bus: u8,
    /// PCI device (slot).
    pub device: u8,
}

/// Why an emulated node's JSON cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedNodeError {
    /// Not the JSON of an emulated node.
    #[error("cannot read the emulated node: {0}; let `trompe` write the file again")]
    Json(#[from] serde_json::Error),
    /// Written by another version of trompe.
    #[error(
        "the emulated node has format {found}, this library reads {expected}; use one version of `trompe`"
    )]
    Format {
        /// Format of the file.
        found: u32,
        /// Format that this build reads.
        expected: u32,
    },
}

impl Default for SoftwareVersions {
    /// CUDA 13.2 with the libraries that the PyTorch wheels built for it ask for.
    fn default() -> Self {
        Self {
            driver: "595.71.05".to_owned(),
            cuda_driver: 13_020,
            cuda_runtime: 13_020,
            cudnn: 92_600,
            nccl: 23_007,
        }
    }
}

impl SoftwareVersions {
    /// CUDA's major versions whose libraries are emulated.
    pub const CUDA_MAJORS: &[u32] = &[12, 13];

    /// The libraries that a program built for CUDA `cuda` (`12.4`) with this cuDNN (`9.1.0.70`) and NCCL (`2.21.5`)
    /// finds beside it, under the newest driver. What is not known is as new as the default; `None` for a CUDA that is
    /// not emulated.
    #[must_use]
    pub fn built_for(cuda: &str, cudnn: Option<&str>, nccl: Option<&str>) -> Option<Self> {
        let [major, minor, _] = numbers(cuda)?;
        if !Self::CUDA_MAJORS.contains(&major) {
            return None;
        }
        let joined = |text| numbers(text).map(|[major, minor, patch]| 10_000 * major + 100 * minor + patch);
        let default = Self::default();
        Some(Self {
            cuda_runtime: 1000 * major + 10 * minor,
            cudnn: cudnn.and_then(joined).unwrap_or(default.cudnn),
            nccl: nccl.and_then(joined).unwrap_or(default.nccl),
            ..default
        })
    }

    /// CUDA's major version of the runtime.
    #[must_use]
    pub const fn cuda_major(&self) -> u32 {
        self.cuda_runtime / 1000
    }
}

/// The first three numbers of a dotted version; absent ones are 0.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    for (number, text) in numbers.iter_mut().zip(version.split('.')) {
        *number = text.parse().ok()?;
    }
    Some(numbers)
}

impl EmulatedNode {
    /// The format that this build writes and reads.
    pub const FORMAT: u32 = 1;

    /// The node of `sheet`, with default versions.
    #[must_use]
    pub fn new(sheet: &NodeSheet) -> Self {
        Self {
            format: Self::FORMAT,
            device_count: sheet.device_count,
            device: sheet.device.clone(),
            peer_access: sheet.device_count > 1,
            software: SoftwareVersions::default(),
            identity: 0,
        }
    }

    /// Reads the JSON text that [`EmulatedNode::to_json`] wrote.
    ///
    /// # Errors
    /// When the text is not such JSON or was written in another format.
    pub fn from_json(text: &str) -> Result<Self, EmulatedNodeError> {
        let node: Self = serde_json::from_str(text)?;
        if node.format != Self::FORMAT {
            return Err(EmulatedNodeError::Format { found: node.format, expected: Self::FORMAT });
        }
        Ok(node)
    }

    /// The node as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with string keys serialises")
    }

    /// The PCI address of device `index`: one bus each, ascending, as in a node with switches between them.
    #[must_use]
    pub const fn pci(&self, index: u32) -> PciAddress {
        PciAddress { domain: index / 14, bus: (0x1b + 16 * (index % 14)) as u8, device: 0 }
    }

    /// The UUID of device `index`: stable for the same sheet, identity and index, different otherwise.
    #[must_use]
    pub fn uuid(&self, index: u32) -> [u8; 16] {
        // FNV-1a over the name, continued per half by SplitMix64: not for security, only for distinctness.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.device.name.bytes().chain(self.identity.to_le_bytes()).chain(index.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut rng = trompe_base::Rng::new(hash);
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
        uuid[8..].copy_from_slice(&rng.next_u64().to_be_bytes());
        uuid[6] = (uuid[6] & 0x0f) | 0x40;
        uuid[8] = (uuid[8] & 0x3f) | 0x80;
        uuid
    }

    /// The UUID of device `index` as NVML and `nvidia-smi` write it.
    #[must_use]
    pub fn uuid_text(&self, index: u32) -> String {
        let hex: String = self.uuid(index).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_what_a_program_was_built_for() {
        let check = |cuda, cudnn, nccl, expect: Option<(u32, u32, u32)>| {
            let versions = SoftwareVersions::built_for(cuda, cudnn, nccl);
            assert_eq!(versions.map(|v| (v.cuda_runtime, v.cudnn, v.nccl)), expect, "{cuda}");
        };
        check("12.4", Some("9.1.0.70"), Some("2.21.5"), Some((12_040, 90_100, 22_105)));
        check("13.2", None, None, Some((13_020, 92_600, 23_007)));
        check("12.8", Some("unknown"), None, Some((12_080, 92_600, 23_007)));
        check("11.8", None, None, None);
        check("", None, None, None);
    }
}
