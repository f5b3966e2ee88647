//! The framework's own memory statistics, as the Python side recorded them at exit.

use serde_json::Value;
use trompe_trace::reader::Names;

/// Peak allocated and reserved bytes of one device; of the only one where it has another number.
pub(super) fn peaks(names: &Names<'_>, device: u32) -> Option<(u64, u64)> {
    let read = |key: &str, allocated: &str, reserved: &str| {
        let value: Value = serde_json::from_str(names.meta.get(key)?).ok()?;
        let devices = value.as_object()?;
        let only = if devices.len() == 1 { devices.values().next() } else { None };
        let found = devices.get(&device.to_string()).or(only)?;
        Some((found.get(allocated)?.as_u64()?, found.get(reserved)?.as_u64()?))
    };
    read("torch.memory_peaks", "max_memory_allocated", "max_memory_reserved")
        .or_else(|| read("torch.memory_stats", "allocated_bytes.all.peak", "reserved_bytes.all.peak"))
}

/// Bytes of the emulated device, from the description of the node that the process ran on.
pub(super) fn capacity(names: &Names<'_>) -> Option<u64> {
    let node: Value = serde_json::from_str(names.meta.get("node")?).ok()?;
    node.pointer("/device/memory/total")?.as_u64()
}
