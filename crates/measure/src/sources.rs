//! What is known about public sources and about the names of devices in their tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use trompe_estimate::features::{Clocks, Library};
use trompe_hardware::{Catalogue, DeviceSheet};

/// Settings of one source.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// How its name begins.
    #[serde(default)]
    pub prefix: String,
    /// Kinds of table that this entry is for; all when absent.
    #[serde(default)]
    pub only: Vec<String>,
    /// Who launched the kernels.
    #[serde(default)]
    pub library: Library,
    /// The device's clocks.
    #[serde(default)]
    pub clocks: Clocks,
    /// Launch cost inside a time, in microseconds.
    #[serde(default)]
    pub launch_us: f64,
    /// Times below say little about the kernel, in microseconds.
    #[serde(default)]
    pub shortest_us: f64,
    /// Whether nothing is learned from them, whatever their length.
    #[serde(default)]
    pub only_compared: bool,
    /// Licence and attribution.
    #[serde(default)]
    pub licence: String,
}

#[derive(Deserialize)]
struct File {
    source: Vec<Source>,
    gpus: BTreeMap<String, String>,
}

/// All sources and devices.
#[derive(Debug)]
pub struct Sources {
    sources: Vec<Source>,
    devices: BTreeMap<String, Arc<DeviceSheet>>,
}

impl Sources {
    /// The built-in list, and the devices of the catalogue.
    ///
    /// # Panics
    /// When the built-in list contradicts the catalogue, which a test rules out.
    #[must_use]
    pub fn builtin() -> Self {
        let file: File =
            toml::from_str(include_str!("../sources.toml")).expect("sources.toml is well formed");
        let catalogue = Catalogue::builtin();
        let mut devices = BTreeMap::new();
        for name in catalogue.devices() {
            let sheet = Arc::new(catalogue.device(name).expect("built-in sheets load"));
            for alias in &sheet.aliases {
                devices.insert(key(alias), Arc::clone(&sheet));
            }
            devices.insert(key(&sheet.marketing_name), Arc::clone(&sheet));
            devices.insert(key(name), sheet);
        }
        for (gpu, name) in file.gpus {
            let sheet = Arc::clone(&devices[&key(&name)]);
            devices.insert(key(&gpu), sheet);
        }
        Self { sources: file.source, devices }
    }

    /// What is known about `source` as far as tables of `kind` are concerned.
    #[must_use]
    pub fn source(&self, source: &str, kind: &str) -> Source {
        let fits = |entry: &&Source| {
            source.starts_with(&entry.prefix)
                && (entry.only.is_empty() || entry.only.iter().any(|only| only == kind))
        };
        self.sources.iter().find(fits).cloned().unwrap_or_default()
    }

    /// The device that a table calls `gpu`.
    #[must_use]
    pub fn device(&self, gpu: &str) -> Option<Arc<DeviceSheet>> {
        self.devices.get(&key(gpu)).cloned()
    }

    /// Makes the device of `sheet` known under its names, before the built-in ones.
    pub fn add(&mut self, sheet: DeviceSheet) {
        let sheet = Arc::new(sheet);
        self.devices.insert(key(&sheet.marketing_name), Arc::clone(&sheet));
        self.devices.insert(key(&sheet.name), sheet);
    }
}

/// Names are compared without case and punctuation.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_matches_counts() {
        let sources = Sources::builtin();
        let check = |source: &str, kind: &str, library: Library, clocks: Clocks| {
            let found = sources.source(source, kind);
            assert_eq!((found.library, found.clocks), (library, clocks), "{source} {kind}");
        };
        check("aiconfigurator/trtllm-1.0.0", "attention", Library::TensorRt, Clocks::Locked);
        check("aiconfigurator/trtllm-1.0.0", "gemm", Library::PyTorch, Clocks::Locked);
        check("aiconfigurator/sglang-0.5.14", "gemm", Library::PyTorch, Clocks::Free);
        check("aiconfigurator/vllm-0.24.0", "gemm", Library::PyTorch, Clocks::Locked);
        check("aiconfigurator/vllm-0.24.0", "attention", Library::Serving, Clocks::Locked);
        check("vidur/mlp-phi-2", "gemm", Library::PyTorch, Clocks::Free);
        check("mine", "gemm", Library::PyTorch, Clocks::Locked);
    }

    #[test]
    fn devices_are_found_by_the_names_that_people_use() {
        let sources = Sources::builtin();
        for (gpu, sheet) in [
            ("H100-SXM5-80GB", "h100-sxm5-80"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm5-80"),
            ("h100_sxm", "h100-sxm5-80"),
            ("V100-PCIe-32GB", "v100-pcie-32"),
            ("V100-SXM3-32GB", "v100-sxm3-32"),
        ] {
            assert_eq!(sources.device(gpu).map(|sheet| sheet.name.clone()).as_deref(), Some(sheet), "{gpu}");
        }
        assert!(sources.device("H9000").is_none());
    }
}
