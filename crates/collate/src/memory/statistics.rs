//! The framework's own memory statistics, as the Python side recorded them at exit.

use serde_json::Value;
use trompe_trace::reader::Names;

/// Peak allocated and reserved bytes of all devices together.
pub(super) fn peaks(names: &Names<'_>) -> Option<(u64, u64)> {
    let per_device = |key: &str, allocated: &str, reserved: &str| {
        let value: Value = serde_json::from_str(names.meta.get(key)?).ok()?;
        let devices = value.as_object()?;
        let sum =
            |field: &str| devices.values().map(|d| d.get(field).and_then(Value::as_u64)).sum::<Option<u64>>();
        (!devices.is_empty()).then_some(())?;
        Some((sum(allocated)?, sum(reserved)?))
    };
    per_device("torch.memory_peaks", "max_memory_allocated", "max_memory_reserved")
        .or_else(|| per_device("torch.memory_stats", "allocated_bytes.all.peak", "reserved_bytes.all.peak"))
}

/// Bytes of the emulated device, from the description of the node that the process ran on.
pub(super) fn capacity(names: &Names<'_>) -> Option<u64> {
    let node: Value = serde_json::from_str(names.meta.get("node")?).ok()?;
    node.pointer("/device/memory/total")?.as_u64()
}
