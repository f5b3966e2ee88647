//! Device memory of the job on the simulated device.
//!
//! Peaks come from the run: the framework's own allocator ran for real. What depends on the device alone, the CUDA
//! context, is exchanged for the simulated device's when that is another one than the job saw.

use trompe_base::Bytes;
use trompe_cluster::{Outcome, RankOutcome};
use trompe_hardware::{DeviceSheet, Provenance};
use trompe_results::{Charge, Memory, MemoryAxis, MemoryOwner, MemorySample, OwnerKind, RankMemory};
use trompe_trace::job::{JobTrace, RankTemplate};

use super::place;
use crate::run_facts::RunFacts;

/// The owner of the context's charge in a trace.
const CONTEXT: &str = "cuda_context";

/// Memory of every emulated rank.
pub(super) fn memory(
    job: &JobTrace,
    run: &RunFacts,
    device: &DeviceSheet,
    provenance: &Provenance,
) -> Memory {
    let exchange = Exchange::new(run, device, provenance);
    let ranks: Vec<_> = job
        .ranks
        .iter()
        .enumerate()
        .filter(|(_, instance)| instance.emulated)
        .filter_map(|(rank, instance)| Some((rank as u32, job.templates.get(instance.template)?)))
        .map(|(rank, template)| rank_memory(rank, template, &exchange))
        .collect();
    let fullest = ranks.iter().max_by_key(|rank| (rank.total_bytes, std::cmp::Reverse(rank.rank)));
    Memory {
        peak_allocated_bytes: ranks.iter().map(|rank| rank.peak_allocated_bytes).max().unwrap_or(0),
        peak_reserved_bytes: ranks.iter().map(|rank| rank.peak_reserved_bytes).max().unwrap_or(0),
        total_bytes: fullest.map_or(0, |rank| rank.total_bytes),
        capacity_bytes: device.memory.total.0,
        capacity_source: place::source(provenance, "memory.total"),
        fullest_rank: fullest.map_or(0, |rank| rank.rank),
        ranks,
    }
}

/// Puts memory on the axis of simulated time, where it is known when the host came to each event. Ranks that were not
/// replayed themselves take the times of one that follows the same template.
pub(super) fn over_time(memory: &mut Memory, job: &JobTrace, outcome: &Outcome) {
    for rank in &mut memory.ranks {
        let template = job.ranks.get(rank.rank as usize).map(|instance| instance.template);
        let same =
            |found: &&RankOutcome| job.ranks.get(found.rank.index()).map(|other| other.template) == template;
        let own = outcome.ranks.iter().find(|found| found.rank.0 == rank.rank);
        let Some(times) = own.or_else(|| outcome.ranks.iter().find(same)).map(|found| &found.host_times)
        else {
            continue;
        };
        let Some(&last) = times.last() else { continue };
        let time = |event: f64| times.get(event as usize).copied().unwrap_or(last) as f64 * 1e-12;
        for sample in &mut rank.samples {
            sample.at = time(sample.at);
        }
        for start in &mut rank.step_starts {
            *start = time(*start);
        }
        rank.peak_at = rank.peak_at.map(time);
        rank.axis = MemoryAxis::SimulatedSeconds;
    }
}

/// The context of the recorded device, and of the simulated one.
struct Exchange {
    recorded: Option<u64>,
    simulated: u64,
    source: String,
}

impl Exchange {
    fn new(run: &RunFacts, device: &DeviceSheet, provenance: &Provenance) -> Self {
        let recorded = (run.context_bytes > 0 && run.device != device.name).then_some(run.context_bytes);
        Self {
            recorded,
            simulated: device.runtime.context.0,
            source: place::source(provenance, "runtime.context"),
        }
    }

    fn apply(&self, bytes: u64) -> u64 {
        match self.recorded {
            Some(recorded) => bytes.saturating_sub(recorded) + self.simulated,
            None => bytes,
        }
    }
}

fn rank_memory(rank: u32, template: &RankTemplate, exchange: &Exchange) -> RankMemory {
    let memory = &template.memory;
    let allocated = memory.peak_allocated.map_or(0, |bytes| bytes.0);
    let reserved = memory.peak_reserved.map_or(0, |bytes| bytes.0).max(allocated);
    let has_context = memory.charges.iter().any(|(owner, _)| owner == CONTEXT);
    let total = if has_context { exchange.apply(memory.peak_total.0) } else { memory.peak_total.0 };
    let peak =
        memory.timeline.iter().max_by_key(|sample| (sample.allocated, std::cmp::Reverse(sample.event)));
    RankMemory {
        rank,
        peak_allocated_bytes: allocated,
        peak_reserved_bytes: reserved,
        total_bytes: total.max(reserved),
        charges: memory.charges.iter().map(|(owner, bytes)| charge(owner, *bytes, exchange)).collect(),
        axis: MemoryAxis::Event,
        samples: memory
            .timeline
            .iter()
            .map(|sample| MemorySample {
                at: sample.event as f64,
                allocated_bytes: sample.allocated.0,
                reserved_bytes: sample.reserved.0,
            })
            .collect(),
        step_starts: starts(template).iter().map(|event| *event as f64).collect(),
        peak_at: peak.map(|sample| sample.event as f64),
        owners: memory
            .owners_at_peak
            .iter()
            .map(|(owner, bytes)| MemoryOwner {
                owner: owner.clone(),
                kind: owner_kind(owner),
                bytes: bytes.0,
                allocations: None,
            })
            .collect(),
        allocations: None,
        // The job trace does not count the allocator's retries; failed driver allocations are not the same.
        retries: None,
    }
}

/// Where each step begins; the last boundary is the end of the last step.
fn starts(template: &RankTemplate) -> &[usize] {
    &template.steps.boundaries[..template.steps.count()]
}

fn charge(owner: &str, bytes: Bytes, exchange: &Exchange) -> Charge {
    let what = match owner {
        CONTEXT => "CUDA context".to_owned(),
        "cublas_workspace" => "cuBLAS workspace".to_owned(),
        "cudnn_workspace" => "cuDNN workspace".to_owned(),
        "nccl_buffers" => "NCCL buffers".to_owned(),
        other => other.replace('_', " "),
    };
    let (bytes, source) = if owner == CONTEXT {
        (exchange.apply(bytes.0), exchange.source.clone())
    } else {
        (bytes.0, "charged by the emulated library".to_owned())
    };
    Charge { what, bytes, source }
}

/// What memory is for, as far as its owner says (`aten::linear, forward`: operator and phase).
///
/// Tensors made while nothing is computed, such as a model moved to the device, may be parameters or inputs: nothing is
/// claimed about them.
fn owner_kind(owner: &str) -> OwnerKind {
    const MAKERS: [&str; 4] = ["aten::to", "aten::_to_copy", "aten::empty", "outside of operators"];
    match owner.rsplit_once(", ") {
        Some((_, "optimizer")) => OwnerKind::OptimizerState,
        Some((_, "backward")) => OwnerKind::Gradients,
        Some((_, "recompute")) => OwnerKind::Activations,
        Some((operator, "forward")) if !MAKERS.iter().any(|maker| operator.starts_with(maker)) => {
            OwnerKind::Activations
        }
        _ => OwnerKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use trompe_hardware::resolve;
    use trompe_trace::job;

    use super::*;

    fn job(charges: &[(&str, u64)], peak: u64) -> JobTrace {
        let memory = job::Memory {
            peak_allocated: Some(Bytes(6)),
            peak_reserved: Some(Bytes(10)),
            peak_total: Bytes(peak),
            charges: charges.iter().map(|(owner, bytes)| ((*owner).to_owned(), Bytes(*bytes))).collect(),
            ..job::Memory::default()
        };
        let template = RankTemplate { memory, ..RankTemplate::default() };
        let rank = job::RankInstance { template: 0, communicators: Vec::new(), emulated: true };
        JobTrace { templates: vec![template], ranks: vec![rank], ..JobTrace::default() }
    }

    #[test]
    fn another_device_has_another_context() {
        let device = resolve("a100-sxm4-80").unwrap().node.device;
        let context = device.runtime.context.0;
        let run = RunFacts { device: "h100-sxm5-80".into(), context_bytes: 100, ..RunFacts::default() };
        let memory = memory(&job(&[(CONTEXT, 100), ("x_y", 5)], 1000), &run, &device, &Provenance::new());
        assert_eq!(memory.total_bytes, 900 + context);
        assert_eq!(memory.ranks[0].charges[0].bytes, context);
        assert_eq!(memory.ranks[0].charges[1].what, "x y");
        assert_eq!(memory.capacity_bytes, device.memory.total.0);
    }

    #[test]
    fn the_same_device_keeps_its_numbers() {
        let device = resolve("h100-sxm").unwrap().node.device;
        let run = RunFacts { device: device.name.clone(), context_bytes: 100, ..RunFacts::default() };
        let memory = memory(&job(&[(CONTEXT, 100)], 1000), &run, &device, &Provenance::new());
        assert_eq!((memory.total_bytes, memory.ranks[0].charges[0].bytes), (1000, 100));
    }
}
