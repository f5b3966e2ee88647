//! Device attributes: one list, from which runtime and driver attributes and the properties structure are all filled, so
//! that they agree.
//!
//! Numbers are those of `CUdevice_attribute` (CUDA 13.2); the runtime's `cudaDeviceAttr` shares them.

use trompe_hardware::{DeviceSheet, EmulatedNode};

/// Largest 32-bit value, the documented limit of several attributes.
const UNLIMITED: i32 = i32::MAX;

/// The value of attribute `number` of the device at place `device` in the node; `None` for a number that CUDA 13.2 does not have.
#[must_use]
pub fn attribute(node: &EmulatedNode, device: u32, number: i32) -> Option<i32> {
    let sheet = &node.device;
    let compute = &sheet.compute;
    let capability = (compute.capability_major, compute.capability_minor);
    let pci = node.pci(device);
    let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let bytes = |n: trompe_base::Bytes| i32::try_from(n.0).unwrap_or(i32::MAX);
    let since = |major: u32| i32::from(capability.0 >= major);
    Some(match number {
        1 => count(compute.max_threads_per_block),
        2 | 3 => 1024,
        4 => 64,
        5 => UNLIMITED,
        6 | 7 => 65_535,
        8 => bytes(compute.shared_per_block),
        9 => 65_536,
        10 => count(compute.warp_size),
        11 => UNLIMITED,
        12 => count(compute.registers_per_block),
        13 => (compute.boost_clock.0 / 1e3) as i32,
        14 => 512,
        15 => i32::from(compute.copy_engines > 0),
        16 => count(compute.sm_count),
        17 | 18 => 0,
        19 => 1,
        20 => 0,
        21 | 22 => 131_072,
        23 => 65_536,
        24..=26 => 16_384,
        27 | 28 => 32_768,
        29 => 2048,
        30 => 512,
        31 => 1,
        32 => i32::from(sheet.memory.ecc),
        33 => i32::from(pci.bus),
        34 => i32::from(pci.device),
        35 => 0,
        36 => (sheet.memory.clock.0 / 1e3) as i32,
        37 => count(sheet.memory.bus_width),
        38 => bytes(sheet.memory.l2),
        39 => count(compute.max_threads_per_sm),
        40 => count(compute.copy_engines),
        41 => 1,
        42 => 32_768,
        43 => 2048,
        44 => 1,
        45 | 46 => 32_768,
        47 | 48 => 8192,
        49 => 32_768,
        50 => count(pci.domain),
        51 => 32,
        52 | 53 => 32_768,
        54 => 2046,
        55 => 32_768,
        56 => 131_072,
        57 => 65_536,
        58..=60 => 16_384,
        61 | 63 | 64 | 66 | 67 => 32_768,
        62 | 65 => 2048,
        68 => 2046,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65_000,
        72 => 2_097_120,
        73 | 74 | 77 => 32_768,
        75 => count(capability.0),
        76 => count(capability.1),
        78..=80 => 1,
        81 => bytes(compute.shared_per_sm),
        82 => count(compute.registers_per_sm),
        83 => 1,
        84 => 0,
        85 => count(device),
        86 => 0,
        87 => double_precision_ratio(sheet),
        88 => 0,
        89..=91 => 1,
        92..=94 => 0,
        95 => 1,
        96 => 0,
        97 => bytes(compute.shared_per_block_optin),
        98 => 1,
        99 => 1,
        100 | 101 => 0,
        102 | 103 => 1,
        104 | 105 => 0,
        106 => count(compute.max_blocks_per_sm),
        107 => since(8),
        108 => persisting_l2(sheet),
        109 => {
            if capability.0 >= 8 {
                134_213_632
            } else {
                0
            }
        }
        110 => 0,
        111 => bytes(compute.shared_reserved_per_block),
        112..=115 => 1,
        116 => 0,
        117 => 1,
        118 => 100,
        119 => 1,
        120 => since(9),
        121 => 1,
        122 | 123 => 1,
        124 => 0,
        125 => 1,
        126 => {
            if capability.0 >= 9 {
                4
            } else {
                1
            }
        }
        127 => since(9),
        // Fabric handles and multicast need a fabric manager, which a pretended node has not.
        128 => 0,
        129 => 1,
        130 => 0,
        131 => -1,
        132 | 133 => 0,
        134 => 0,
        135..=138 => 0,
        139 | 140 => 0,
        141 | 142 => 1,
        143 => 0,
        144 | 145 => 1,
        146..=148 => 0,
        _ => return None,
    })
}

/// Largest part of the level-2 cache that accesses may be kept in: three quarters in whole mebibytes, as A100 reports it
/// (30 of 40 MiB); other devices report values near that.
fn persisting_l2(sheet: &DeviceSheet) -> i32 {
    if sheet.compute.capability_major < 8 {
        return 0;
    }
    i32::try_from((sheet.memory.l2.0 * 3 / 4) >> 20 << 20).unwrap_or(i32::MAX)
}

/// Single- over double-precision throughput of the ordinary lanes.
fn double_precision_ratio(sheet: &DeviceSheet) -> i32 {
    match (sheet.peaks.vector.fp32, sheet.peaks.vector.fp64) {
        (Some(single), Some(double)) if double.0 > 0.0 => (single.0 / double.0).round() as i32,
        _ => 32,
    }
}
