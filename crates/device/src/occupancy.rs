//! How many blocks of a kernel a multiprocessor holds at once.
//!
//! Source: NVIDIA, "CUDA Occupancy Calculator" and the allocation rules in the CUDA C++ Programming Guide, "Compute
//! Capabilities": registers are given to warps in units of 256 per sub-partition, warps to blocks in multiples of the
//! four sub-partitions, shared memory in units of 128 bytes (256 before compute capability 8).

use trompe_hardware::Compute;

/// What a kernel asks of a multiprocessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread; 0 when unknown.
    pub registers: u32,
    /// Static and dynamic shared memory per block in bytes.
    pub shared: u64,
}

/// Registers assumed for a kernel whose binary does not say.
const UNKNOWN_REGISTERS: u32 = 32;
const SUB_PARTITIONS: u32 = 4;
const REGISTER_UNIT: u32 = 256;

/// Blocks resident on one multiprocessor; 0 when a single block does not fit.
#[must_use]
pub fn blocks_per_multiprocessor(compute: &Compute, demand: Demand) -> u32 {
    let Demand { threads, registers, shared } = demand;
    if threads == 0 || threads > compute.max_threads_per_block || shared > compute.shared_per_block_optin.0 {
        return 0;
    }
    let warps = threads.div_ceil(compute.warp_size);
    let by_warps = compute.max_threads_per_sm / compute.warp_size / warps;
    by_warps
        .min(compute.max_blocks_per_sm)
        .min(by_registers(compute, warps, registers))
        .min(by_shared(compute, shared))
}

fn by_registers(compute: &Compute, warps: u32, registers: u32) -> u32 {
    let registers = if registers == 0 { UNKNOWN_REGISTERS } else { registers };
    let per_warp = (registers * compute.warp_size).next_multiple_of(REGISTER_UNIT);
    let warps = warps.next_multiple_of(SUB_PARTITIONS);
    if per_warp * warps > compute.registers_per_block {
        return 0;
    }
    let resident = compute.registers_per_sm / SUB_PARTITIONS / per_warp * SUB_PARTITIONS;
    resident / warps
}

fn by_shared(compute: &Compute, shared: u64) -> u32 {
    let unit = if compute.capability_major >= 8 { 128 } else { 256 };
    let per_block = (shared + compute.shared_reserved_per_block.0).next_multiple_of(unit);
    if per_block == 0 {
        return compute.max_blocks_per_sm;
    }
    u32::try_from(compute.shared_per_sm.0 / per_block).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use trompe_base::Bytes;
    use trompe_hardware::Hertz;

    use super::*;

    fn h100() -> Compute {
        Compute {
            capability_major: 9,
            capability_minor: 0,
            sm_count: 132,
            fp32_lanes_per_sm: 128,
            warp_size: 32,
            max_threads_per_block: 1024,
            max_threads_per_sm: 2048,
            max_blocks_per_sm: 32,
            registers_per_block: 65_536,
            registers_per_sm: 65_536,
            shared_per_block: Bytes(49_152),
            shared_per_block_optin: Bytes(232_448),
            shared_per_sm: Bytes(233_472),
            shared_reserved_per_block: Bytes(1024),
            copy_engines: 3,
            base_clock: None,
            sustained_clock: None,
            boost_clock: Hertz(1.98e9),
            tensor_clock: Hertz(1.83e9),
        }
    }

    fn check(threads: u32, registers: u32, shared: u64, expect: u32) {
        let demand = Demand { threads, registers, shared };
        assert_eq!(blocks_per_multiprocessor(&h100(), demand), expect, "{demand:?}");
    }

    /// Expected values worked out by hand from the rules for compute capability 9.0.
    #[test]
    fn limits() {
        check(1024, 32, 0, 2);
        check(1024, 33, 0, 1);
        check(1024, 65, 0, 0);
        check(256, 32, 0, 8);
        check(256, 40, 0, 6);
        check(128, 168, 0, 3);
        check(128, 255, 0, 2);
        check(32, 16, 0, 32);
        check(384, 168, 0, 1);
        check(128, 32, 48 << 10, 4);
        check(128, 32, 227 << 10, 1);
        check(128, 32, 228 << 10, 0);
        check(0, 32, 0, 0);
        check(2048, 32, 0, 0);
    }
}
