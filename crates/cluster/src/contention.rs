//! What operations that run at the same time on one device cost each other.
//!
//! The model, in the order in which it is applied whenever an operation starts or ends on a device:
//!
//! 1. *Collectives* hold one multiprocessor per channel from the moment their kernel is on the device (it spins while
//!    it waits for other ranks) until it ends (NCCL launches one block per channel). At least one multiprocessor stays
//!    free. On an NPU they hold no core: HCCL has schedulers and copy engines move the data, unless a user chooses its
//!    vector-core mode, which is for inference (HCCL documentation, `HCCL_OP_EXPANSION_MODE`).
//! 2. *Kernels* take room by occupancy: a kernel of `b` blocks, `r` of which fit on one multiprocessor (threads,
//!    registers, shared memory, block limit: CUDA programming guide, "Multiprocessor level"), wants `b / (r · SMs)` of
//!    the device, all of it at most. Room goes to the more urgent stream first, then to the kernel that started first,
//!    as the block scheduler does.
//! 3. A kernel with less room than it wants runs in more waves: it slows by `⌈b / slots⌉ / ⌈b / slots of the whole
//!    device⌉`; with no room at all it waits. One that memory holds up has multiprocessors to spare: half of them keep the
//!    memory busy (assumed), so what uses the share `m` of the bandwidth alone is slowed `2 m` times less, if that is more
//!    than once.
//! 4. *Memory bandwidth*: an operation alone uses its ideal bytes over its time. When all together would use more than
//!    the device reaches ([`Contention::bandwidth`]), copies over links get what they use. A memory that serves whoever asks
//!    would cut everybody in proportion; a collective is spared a part of that cut ([`Contention::collective_priority`]), as
//!    its few blocks keep few requests in flight but are never held up by waves. Kernels share the rest max-min fair and slow
//!    by what they lack. Step 4 never speeds up what step 3 slowed.
//! 5. A collective takes its slowest member's pace: what that one lost while the transfer was under way is added to the
//!    transfer ([`crate::wires`]). Only operations whose use of links is known can be slowed so.
//!
//! Operations whose launches are not seen (calls into closed libraries) are given the blocks that their shape needs at
//! tiles of [`TILE`] outputs. Rates change only when an operation starts or ends, so nothing is computed in between.
//!
//! What it is not: caches, and blocks that wait inside a multiprocessor, are not modelled.

use trompe_base::{Bytes, Duration};
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Descriptor, Place};
use trompe_trace::job::{Launch, Operation};

/// Outputs of one block of a matrix product in each dimension where the launch is not seen: the most common tile of
/// cuBLAS and CUTLASS for half-precision operands.
const TILE: u64 = 128;

/// The part of the memory bandwidth that kernels keep whatever collectives and copies use: assumed.
const LEAST_BANDWIDTH: f64 = 0.1;

/// The pace that a collective keeps whatever runs beside it: assumed.
const LEAST_PACE: f64 = 0.1;

/// What a device has to share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Resident threads per multiprocessor.
    pub threads: u32,
    /// Resident blocks per multiprocessor.
    pub blocks: u32,
    /// 32-bit registers per multiprocessor.
    pub registers: u32,
    /// Bytes of shared memory per multiprocessor.
    pub shared: u64,
    /// Bytes of it that the driver takes from each block.
    pub shared_reserved: u64,
    /// Bytes per second that all operations together reach.
    pub bandwidth: f64,
    /// The part of a shortage of bandwidth that collectives are spared: 1, they are never slowed; 0, all are slowed alike.
    pub collective_priority: f64,
    /// Whether collectives run on multiprocessors.
    pub collectives_hold: bool,
}

impl Contention {
    /// The device of a sheet.
    #[must_use]
    pub fn of(device: &DeviceSheet) -> Self {
        let compute = &device.compute;
        Self {
            multiprocessors: compute.sm_count,
            threads: compute.max_threads_per_sm,
            blocks: compute.max_blocks_per_sm,
            registers: compute.registers_per_sm,
            shared: compute.shared_per_sm.0,
            shared_reserved: compute.shared_reserved_per_block.0,
            bandwidth: device.memory.bandwidth.0 * device.memory.concurrent_share,
            collective_priority: device.memory.collective_priority.clamp(0.0, 1.0),
            collectives_hold: device.npu.is_none(),
        }
    }

    /// Blocks of `launch` that fit on one multiprocessor.
    fn residents(&self, launch: &Launch) -> u32 {
        let threads = launch.block.iter().product::<u32>().max(1).next_multiple_of(32);
        let shared = u64::from(launch.shared) + self.shared_reserved;
        // Registers are given out to warps in portions of 256.
        let registers = (launch.registers * 32).next_multiple_of(256) * (threads / 32);
        let by_registers = self.registers.checked_div(registers).unwrap_or(u32::MAX);
        let by_shared = self.shared.checked_div(shared).unwrap_or(u64::MAX).min(u64::from(u32::MAX)) as u32;
        (self.threads / threads).min(by_registers).min(by_shared).min(self.blocks).max(1)
    }
}

/// What one operation wants of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Demand {
    /// Blocks; zero: it does not run on multiprocessors.
    pub(crate) blocks: u64,
    /// Blocks per multiprocessor.
    pub(crate) residents: u32,
    /// Bytes of device memory traffic per second when it runs alone.
    pub(crate) traffic: f64,
    /// Its rate is that of a link, not of the device.
    pub(crate) link: bool,
}

impl Demand {
    /// What `operation`, which takes `time` alone, wants.
    pub(crate) fn of(operation: &Operation, time: Duration, device: &Contention) -> Self {
        let bytes = operation.descriptor.work().bytes();
        let traffic = if time.is_zero() { 0.0 } else { bytes.as_f64() / time.as_secs_f64() };
        let traffic = traffic.min(device.bandwidth);
        let whole = u64::from(device.multiprocessors);
        let unseen = |blocks: u64| Self { blocks: blocks.max(1), residents: 1, traffic, link: false };
        match (&operation.descriptor, &operation.launch) {
            (Descriptor::Copy(copy), _) if copy.from != Place::Device || copy.to != Place::Device => {
                // One end of it is not in this device's memory.
                Self { traffic: traffic / 2.0, link: true, ..Self::default() }
            }
            // A host function: nothing on the device.
            (Descriptor::Other(other), None) if other.blocks == 0 && bytes == Bytes(0) => Self::default(),
            (_, Some(launch)) => Self {
                blocks: launch.grid.iter().map(|&n| u64::from(n)).product::<u64>().max(1),
                residents: device.residents(launch),
                traffic,
                link: false,
            },
            (Descriptor::Gemm(g), None) => unseen(g.m.div_ceil(TILE) * g.n.div_ceil(TILE) * g.batch),
            (Descriptor::Convolution(c), None) => {
                let pixels: u64 = c.output.iter().product();
                unseen((c.batch * pixels).div_ceil(TILE) * c.out_channels.div_ceil(TILE))
            }
            (Descriptor::Attention(a), None) => unseen(a.batch * a.heads * a.seq_q.div_ceil(TILE)),
            _ => unseen(whole),
        }
    }

    /// The share of an empty device that it fills, at most 1.
    fn wants(&self, device: &Contention) -> f64 {
        let slots = u64::from(self.residents) * u64::from(device.multiprocessors);
        (self.blocks as f64 / slots as f64).min(1.0)
    }

    /// Its speed with `room` of the device, against its speed alone.
    fn speed(&self, room: f64, device: &Contention) -> f64 {
        if room >= self.wants(device) {
            return 1.0;
        }
        let all = u64::from(self.residents) * u64::from(device.multiprocessors);
        let slots = (room * all as f64) as u64;
        if slots == 0 {
            return 0.0;
        }
        let waves = self.blocks.div_ceil(all) as f64 / self.blocks.div_ceil(slots) as f64;
        let spare = 2.0 * self.traffic / device.bandwidth;
        (waves * spare.max(1.0)).min(1.0)
    }
}

/// Something that runs on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guest {
    /// A kernel or copy.
    Operation(Demand),
    /// A collective on so many multiprocessors; its traffic is zero while it waits.
    Collective { channels: u32, traffic: f64 },
}

/// The speeds, against running alone, of what runs on a device, most urgent first.
pub(crate) fn speeds(guests: &[Guest], device: &Contention, speeds: &mut Vec<f64>) {
    let whole = f64::from(device.multiprocessors);
    let channels: u32 = guests
        .iter()
        .map(|guest| match guest {
            Guest::Collective { channels, .. } if device.collectives_hold => *channels,
            _ => 0,
        })
        .sum();
    let mut room = (1.0 - f64::from(channels) / whole).max(1.0 / whole);
    let (mut links, mut collectives) = (0.0, 0.0);
    speeds.clear();
    for guest in guests {
        speeds.push(match guest {
            Guest::Collective { traffic, .. } => {
                collectives += traffic;
                1.0
            }
            Guest::Operation(demand) if demand.link => {
                links += demand.traffic;
                1.0
            }
            Guest::Operation(demand) if demand.blocks == 0 => 1.0,
            Guest::Operation(demand) => {
                let given = demand.wants(device).min(room);
                room -= given;
                demand.speed(given, device)
            }
        });
    }
    let uses: f64 = (0..guests.len()).map(|i| kernel_traffic(guests, i) * speeds[i]).sum();
    let short = 1.0 - device.bandwidth / (links + collectives + uses).max(device.bandwidth);
    if short > 0.0 && collectives > 0.0 {
        let pace = (1.0 - short * (1.0 - device.collective_priority)).max(LEAST_PACE);
        collectives *= pace;
        let paced = guests.iter().zip(speeds.iter_mut());
        paced
            .filter(|(guest, _)| matches!(guest, Guest::Collective { traffic, .. } if *traffic > 0.0))
            .for_each(|(_, speed)| *speed = pace);
    }
    let left = (device.bandwidth - links - collectives).max(device.bandwidth * LEAST_BANDWIDTH);
    share_bandwidth(guests, left, speeds);
}

/// What a kernel uses alone; nothing for others.
fn kernel_traffic(guests: &[Guest], i: usize) -> f64 {
    match &guests[i] {
        Guest::Operation(demand) if !demand.link => demand.traffic,
        _ => 0.0,
    }
}

/// Slows kernels that together would use more than `left` bytes per second.
fn share_bandwidth(guests: &[Guest], left: f64, speeds: &mut [f64]) {
    let user = |i: usize| kernel_traffic(guests, i);
    let uses: f64 = (0..guests.len()).map(|i| user(i) * speeds[i]).sum();
    if uses <= left {
        return;
    }
    // Max-min fair: whoever uses less than an equal part keeps it, the others share what remains.
    let mut order: Vec<usize> = (0..guests.len()).filter(|&i| user(i) * speeds[i] > 0.0).collect();
    order.sort_by(|&a, &b| (user(a) * speeds[a]).total_cmp(&(user(b) * speeds[b])));
    let mut rest = left;
    for (k, &i) in order.iter().enumerate() {
        let part = rest / (order.len() - k) as f64;
        let given = (user(i) * speeds[i]).min(part);
        rest -= given;
        speeds[i] = speeds[i].min(given / user(i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Contention = Contention {
        multiprocessors: 100,
        threads: 2_048,
        blocks: 32,
        registers: 65_536,
        shared: 233_472,
        shared_reserved: 1_024,
        bandwidth: 1_000.0,
        collective_priority: 1.0,
        collectives_hold: true,
    };

    fn kernel(blocks: u64, traffic: f64) -> Guest {
        Guest::Operation(Demand { blocks, residents: 1, traffic, link: false })
    }

    fn check(guests: &[Guest], expect: &[f64]) {
        check_on(&DEVICE, guests, expect);
    }

    fn check_on(device: &Contention, guests: &[Guest], expect: &[f64]) {
        let mut found = Vec::new();
        speeds(guests, device, &mut found);
        let close = found.iter().zip(expect).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close && found.len() == expect.len(), "{found:?}, not {expect:?}");
    }

    #[test]
    fn kernels_share_multiprocessors_in_order() {
        check(&[kernel(100, 0.0)], &[1.0]);
        check(&[kernel(40, 0.0), kernel(60, 0.0)], &[1.0, 1.0]);
        // 100 blocks on 50 multiprocessors: two waves instead of one.
        check(&[kernel(50, 0.0), kernel(100, 0.0)], &[1.0, 0.5]);
        check(&[kernel(1_000, 0.0), kernel(8, 0.0)], &[1.0, 0.0]);
    }

    #[test]
    fn a_collective_costs_a_kernel_waves() {
        let collective = Guest::Collective { channels: 16, traffic: 0.0 };
        // 84 multiprocessors are left: 200 blocks take 3 waves instead of 2, 84 blocks still 1.
        check(&[collective, kernel(200, 0.0)], &[1.0, 2.0 / 3.0]);
        check(&[collective, kernel(84, 0.0)], &[1.0, 1.0]);
        // However many channels, one multiprocessor remains.
        check(&[Guest::Collective { channels: 400, traffic: 0.0 }, kernel(1, 0.0)], &[1.0, 1.0]);
        // On an NPU all cores remain.
        let npu = Contention { collectives_hold: false, ..DEVICE };
        let mut found = Vec::new();
        speeds(&[collective, kernel(200, 0.0)], &npu, &mut found);
        assert_eq!(found, [1.0, 1.0]);
    }

    #[test]
    fn kernels_that_memory_holds_up_have_multiprocessors_to_spare() {
        let collective = Guest::Collective { channels: 16, traffic: 0.0 };
        // 84 of 100 multiprocessors are enough for a kernel that uses more than six tenths of the bandwidth.
        check(&[collective, kernel(100, 1_000.0)], &[1.0, 1.0]);
        check(&[collective, kernel(100, 600.0)], &[1.0, 0.6]);
        check(&[collective, kernel(100, 500.0)], &[1.0, 0.5]);
    }

    #[test]
    fn bandwidth_is_shared_fairly() {
        check(&[kernel(10, 800.0), kernel(10, 800.0)], &[0.625, 0.625]);
        check(&[kernel(10, 100.0), kernel(10, 1_000.0)], &[1.0, 0.9]);
        let collective = Guest::Collective { channels: 4, traffic: 300.0 };
        check(&[collective, kernel(10, 1_000.0)], &[1.0, 0.7]);
        let copy = Guest::Operation(Demand { traffic: 50.0, link: true, ..Demand::default() });
        check(&[copy, kernel(10, 1_000.0)], &[1.0, 0.95]);
    }

    #[test]
    fn collectives_are_slowed_by_what_they_are_not_spared() {
        let collective = |traffic| Guest::Collective { channels: 4, traffic };
        let check = |collective_priority, guests: &[Guest], expect: &[f64]| {
            check_on(&Contention { collective_priority, ..DEVICE }, guests, expect);
        };
        // 500 and 1,000 of 1,000: in proportion two thirds each.
        check(0.0, &[collective(500.0), kernel(10, 1_000.0)], &[2.0 / 3.0, 2.0 / 3.0]);
        check(0.5, &[collective(500.0), kernel(10, 1_000.0)], &[5.0 / 6.0, 7.0 / 12.0]);
        check(1.0, &[collective(500.0), kernel(10, 1_000.0)], &[1.0, 0.5]);
        // Enough for both, and one that only waits for other ranks.
        check(0.0, &[collective(500.0), kernel(10, 500.0)], &[1.0, 1.0]);
        check(0.0, &[collective(0.0), kernel(10, 1_000.0)], &[1.0, 1.0]);
        check(0.0, &[collective(50_000.0)], &[0.1]);
    }

    /// A user of eight H100 (NVIDIA's developer forum, topic 337991) timed a matrix product of 132 blocks, one for each
    /// multiprocessor, alone and beside an all-gather of NCCL on 24 channels: it fell from 80 % to 47 % of the peak rate.
    #[test]
    fn a_product_of_one_wave_beside_an_all_gather_as_measured() {
        let device = Contention::of(trompe_hardware::resolve("h100-sxm").unwrap().device());
        let guests = [Guest::Collective { channels: 24, traffic: 0.0 }, kernel(132, 0.0)];
        let mut found = Vec::new();
        speeds(&guests, &device, &mut found);
        assert!((found[1] - 0.47 / 0.80).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn occupancy() {
        let check = |threads, registers, shared, expect| {
            let launch = Launch { grid: [1; 3], block: [threads, 1, 1], shared, registers };
            assert_eq!(DEVICE.residents(&launch), expect, "{threads} {registers} {shared}");
        };
        check(1_024, 32, 0, 2);
        check(128, 255, 0, 2);
        check(32, 0, 0, 32);
        check(128, 32, 100_000, 2);
        check(256, 32, 232_448, 1);
    }
}
