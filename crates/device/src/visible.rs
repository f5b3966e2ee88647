//! Which devices of the node a process sees: `CUDA_VISIBLE_DEVICES`.
//!
//! Source: CUDA C++ Programming Guide, "CUDA Environment Variables": a list of indices or UUIDs (or unique beginnings of
//! them) in the order in which the process numbers them; the list ends before the first entry that names no device, and
//! a device that is named twice makes the list empty.

use trompe_hardware::EmulatedNode;

/// Indices in the node of the visible devices, in the process's order. Without a list all are visible.
#[must_use]
pub fn visible_devices(node: &EmulatedNode, list: Option<&str>) -> Vec<u32> {
    let all = 0..node.device_count;
    let Some(list) = list else { return all.collect() };
    let mut visible = Vec::new();
    for entry in list.split(',') {
        let Some(index) = device_named(node, entry.trim()) else { break };
        if visible.contains(&index) {
            return Vec::new();
        }
        visible.push(index);
    }
    visible
}

fn device_named(node: &EmulatedNode, entry: &str) -> Option<u32> {
    let mut all = 0..node.device_count;
    if entry.starts_with("GPU-") {
        let mut found = all.filter(|&index| node.uuid_text(index).starts_with(entry));
        let only = found.next();
        return if found.next().is_some() { None } else { only };
    }
    let digits = entry.len() - entry.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let wanted: u32 = entry[..digits].parse().ok()?;
    all.find(|&index| index == wanted)
}

#[cfg(test)]
mod tests {
    use trompe_hardware::resolve;

    use super::*;

    fn check(list: Option<&str>, expect: &[u32]) {
        let node = EmulatedNode::new(&resolve("dgx-h100").expect("a built-in name").node);
        assert_eq!(visible_devices(&node, list), expect, "{list:?}");
    }

    #[test]
    fn lists() {
        check(None, &[0, 1, 2, 3, 4, 5, 6, 7]);
        check(Some(""), &[]);
        check(Some("-1"), &[]);
        check(Some("NoDevFiles"), &[]);
        check(Some("3"), &[3]);
        check(Some("7, 0"), &[7, 0]);
        check(Some("1,9,2"), &[1]);
        check(Some("1,1"), &[]);
    }

    #[test]
    fn devices_can_be_named_by_uuid() {
        let node = EmulatedNode::new(&resolve("dgx-h100").expect("a built-in name").node);
        let uuid = node.uuid_text(5);
        check(Some(&uuid), &[5]);
        check(Some(&uuid[..12]), &[5]);
        check(Some("GPU-"), &[]);
        check(Some(&format!("2,{uuid}")), &[2, 5]);
    }
}
