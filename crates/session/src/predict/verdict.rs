//! The answer in one word: how the run ended, and whether its memory fits on the simulated device.

use signal_hook::consts::SIGKILL;
use trompe_base::Bytes;
use trompe_results::{Memory, OutOfMemory, Verdict, VerdictStatus};
use trompe_trace::job::JobTrace;

use crate::run_facts::RunFacts;

/// The exception that PyTorch raises when memory is not enough, without its module, which changed over time.
const OUT_OF_MEMORY: &str = "OutOfMemoryError";

/// Judges a run.
pub(super) fn verdict(job: &JobTrace, run: &RunFacts, memory: &Memory, same_device: bool) -> Verdict {
    let failed = run.exit_code != Some(0) && !run.command.is_empty();
    let exception = job.facts.get("python.exception").map_or("", String::as_str);
    if let Some(signal) = run.interrupted_by {
        return interrupted(signal, memory);
    }
    match lack(job, run) {
        Some(Lack::Allocator) => return ran_out(job, memory, same_device),
        Some(Lack::Library) if same_device => return library_ran_out(job, memory),
        Some(Lack::Library) | None => {}
    }
    if failed {
        return ended_badly(run, exception, job.facts.get("python.exception_message"));
    }
    if memory.total_bytes > memory.capacity_bytes {
        return too_large(job, memory);
    }
    Verdict {
        status: VerdictStatus::Fits,
        text: format!("The job fits: {} in use at most on each device.", of_capacity(memory)),
        hint: None,
        out_of_memory: None,
    }
}

/// Who found too little memory on the job's own device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// PyTorch's allocator, which has recorded what it asked for.
    Allocator,
    /// A GPU library, for buffers of its own. They lie outside the allocator, so a job whose allocator has taken
    /// everything ends in its first collective over a group, or in its first matrix product on a stream.
    Library,
}

/// Whether, and in whom, the job ended because its own device had too little memory.
fn lack(job: &JobTrace, run: &RunFacts) -> Option<Lack> {
    let failed = run.exit_code != Some(0) && !run.command.is_empty();
    let fact = |name| job.facts.get(name).map_or("", String::as_str);
    let exception = fact("python.exception");
    if !failed || run.interrupted_by.is_some() {
        return None;
    }
    if exception.ends_with(OUT_OF_MEMORY) || exhausted(job, exception) {
        return Some(Lack::Allocator);
    }
    says_no_memory(fact("python.exception_message")).then_some(Lack::Library)
}

/// Whether a message of PyTorch or of a GPU library says that a device had too little memory.
///
/// cuBLAS, cuDNN, cuSOLVER, cuSPARSE and cuFFT have a status `…ALLOC_FAILED`, cuRAND one with `ALLOCATION_FAILED`. NCCL says
/// `unhandled cuda error` and sometimes which one; where it does not, it is this one, as trompe gives it no other.
pub(crate) fn says_no_memory(message: &str) -> bool {
    let says = |words: &str| message.contains(words);
    says("ALLOC_FAILED")
        || says("ALLOCATION_FAILED")
        || says("CUDA out of memory")
        || says("CUDA error: out of memory")
        || says("Cuda failure 'out of memory'")
        || says("Cuda failure 2 'out of memory'")
        || (says("unhandled cuda error") && !says("Cuda failure"))
}

/// Bytes that a job lacked at least which ended because its own device had too little memory (where that was recorded),
/// and bytes of that device; `None` when it did not end so.
pub(crate) fn lacked(job: &JobTrace) -> Option<(Option<u64>, u64)> {
    let lack = lack(job, &RunFacts::of(&job.facts))?;
    let capacity = job.templates.iter().map(|template| template.memory.capacity.0).max().unwrap_or(0);
    let mut recorded = job.templates.iter().filter(|_| lack == Lack::Allocator);
    let last = recorded.find_map(|template| template.memory.out_of_memory.last());
    let missing = last.map(|last| (last.requested.0 + last.used.0).saturating_sub(capacity));
    Some((missing.filter(|missing| *missing > 0), capacity))
}

/// Whether the last thing the job asked the device for was memory that it did not have.
fn exhausted(job: &JobTrace, exception: &str) -> bool {
    exception.is_empty() && job.templates.iter().any(|template| !template.memory.out_of_memory.is_empty())
}

fn interrupted(signal: i32, memory: &Memory) -> Verdict {
    Verdict {
        status: VerdictStatus::Interrupted,
        text: format!(
            "The job was stopped ({}); the report covers the part that ran, with {} in use at most.",
            signal_name(signal),
            of_capacity(memory)
        ),
        hint: None,
        out_of_memory: None,
    }
}

fn ended_badly(run: &RunFacts, exception: &str, message: Option<&String>) -> Verdict {
    let how = match (run.exit_code, run.ended_by) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by {}", signal_name(signal)),
        (None, None) => "early".to_owned(),
    };
    let first = message.and_then(|text| text.lines().next()).unwrap_or_default();
    let why = match (exception.strip_prefix("builtins.").unwrap_or(exception), first) {
        ("", _) => String::new(),
        (exception, "") => format!(": {exception}"),
        (exception, first) => format!(": {exception}: {first}"),
    };
    Verdict {
        status: VerdictStatus::Failed,
        text: format!("The command ended {how}{why}. The report covers the part that ran."),
        hint: Some(if run.ended_by == Some(SIGKILL) {
            "something killed it, often the system when the machine itself runs out of memory (see `dmesg`)"
                .to_owned()
        } else {
            "the command's own message is above; run it again when it is mended".to_owned()
        }),
        out_of_memory: None,
    }
}

/// The job itself asked for memory that its device did not have.
fn ran_out(job: &JobTrace, memory: &Memory, same_device: bool) -> Verdict {
    let failure =
        job.ranks.iter().enumerate().filter(|(_, rank)| rank.emulated).find_map(|(rank, instance)| {
            let template = job.templates.get(instance.template)?;
            let last = template.memory.out_of_memory.last()?;
            let capacity = template.memory.capacity.0;
            let step = template.steps.boundaries.iter().rposition(|begin| *begin as u64 <= last.event);
            Some((
                OutOfMemory {
                    rank: rank as u32,
                    requested_bytes: last.requested.0,
                    free_bytes: capacity.saturating_sub(last.used.0),
                    step: step.map(|step| step as u32),
                    owner: Some(last.site.clone()).filter(|site| !site.is_empty()),
                },
                capacity,
            ))
        });
    let (failure, capacity) = failure.unwrap_or((OutOfMemory::default(), memory.capacity_bytes));
    if !same_device {
        return Verdict {
            status: VerdictStatus::Failed,
            text: format!(
                "The recorded run ran out of memory on its own device ({}), so what it needs in full is not \
                 known.",
                Bytes(capacity)
            ),
            hint: Some("run the job again with `trompe run --cluster` and this device".to_owned()),
            out_of_memory: None,
        };
    }
    let asked = if failure.requested_bytes > 0 {
        format!(
            "it asked for {} when {} of {} were free",
            Bytes(failure.requested_bytes),
            Bytes(failure.free_bytes),
            Bytes(capacity)
        )
    } else {
        format!("it asked for more than the {} of the device", Bytes(capacity))
    };
    Verdict {
        status: VerdictStatus::OutOfMemory,
        text: format!("The job runs out of memory: {asked}."),
        hint: Some(SMALLER.to_owned()),
        out_of_memory: Some(failure),
    }
}

/// A GPU library asked for memory of its own when the allocator had taken everything.
fn library_ran_out(job: &JobTrace, memory: &Memory) -> Verdict {
    let emulated = job.ranks.iter().position(|rank| rank.emulated);
    let message = job.facts.get("python.exception_message").and_then(|text| text.lines().next());
    Verdict {
        status: VerdictStatus::OutOfMemory,
        text: format!(
            "The job runs out of memory: a GPU library found none for its own buffers when {} were in use ({}).",
            of_capacity(memory),
            message.unwrap_or_default()
        ),
        hint: Some(format!(
            "{SMALLER}; `torch.cuda.empty_cache()` before that call gives cached memory back"
        )),
        out_of_memory: Some(OutOfMemory { rank: emulated.unwrap_or(0) as u32, ..OutOfMemory::default() }),
    }
}

const SMALLER: &str = "take a smaller micro-batch, activation checkpointing, sharded optimizer state, or a device with \
                       more memory";

/// The job ran on a larger device than the simulated one.
fn too_large(job: &JobTrace, memory: &Memory) -> Verdict {
    let rank = memory.ranks.iter().find(|rank| rank.rank == memory.fullest_rank);
    let outside = rank.map_or(0, |rank| rank.total_bytes.saturating_sub(rank.peak_reserved_bytes));
    let free = memory.capacity_bytes.saturating_sub(outside);
    // The first moment at which the allocator holds more than the simulated device can give.
    let samples = rank.map_or(&[][..], |rank| &rank.samples);
    let first = samples.iter().position(|sample| sample.reserved_bytes > free);
    let before =
        first.and_then(|at| samples.get(at.checked_sub(1)?)).map_or(0, |sample| sample.reserved_bytes);
    let after = first.map_or(memory.peak_reserved_bytes, |at| samples[at].reserved_bytes);
    let event = first.map(|at| samples[at].at);
    let starts = rank.map_or(&[][..], |rank| &rank.step_starts);
    let step = event.and_then(|event| starts.iter().rposition(|start| *start <= event));
    let needed = memory.peak_allocated_bytes + outside;
    let maybe = if needed <= memory.capacity_bytes {
        format!(
            " Its live tensors alone would fit ({}), so it might just run when the allocator gives cached memory \
             back in time.",
            Bytes(needed)
        )
    } else {
        String::new()
    };
    let recorded = job.templates.iter().map(|template| template.memory.capacity.0).max().unwrap_or(0);
    Verdict {
        status: VerdictStatus::OutOfMemory,
        text: format!(
            "The job does not fit: it takes {} at most (seen on a device with {}), the device has {}.{maybe}",
            Bytes(memory.total_bytes),
            Bytes(recorded),
            Bytes(memory.capacity_bytes)
        ),
        hint: Some(SMALLER.to_owned()),
        out_of_memory: Some(OutOfMemory {
            rank: memory.fullest_rank,
            requested_bytes: after.saturating_sub(before),
            free_bytes: free.saturating_sub(before),
            step: step.map(|step| step as u32),
            owner: None,
        }),
    }
}

fn of_capacity(memory: &Memory) -> String {
    format!("{:.1} of {:.1} GiB", Bytes(memory.total_bytes).as_gib(), Bytes(memory.capacity_bytes).as_gib())
}

fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or(format!("signal {number}"), |signal| signal.to_string())
}

#[cfg(test)]
mod tests {
    use trompe_trace::job;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn judge(exit: Option<i32>, exception: &str, total: u64, failed: bool, same_device: bool) -> Verdict {
        let (job, run, memory) = ended(exit, exception, total, failed);
        verdict(&job, &run, &memory, same_device)
    }

    fn ended(exit: Option<i32>, exception: &str, total: u64, failed: bool) -> (JobTrace, RunFacts, Memory) {
        let mut job = JobTrace::default();
        job.facts.insert("python.exception".into(), exception.into());
        let mut template = job::RankTemplate::default();
        template.memory.capacity = Bytes(80 * GIB);
        if failed {
            let site = "aten::empty".to_owned();
            let (requested, used) = (Bytes(4 * GIB), Bytes(79 * GIB));
            template.memory.out_of_memory.push(job::OutOfMemory { event: 3, requested, used, site });
        }
        job.templates.push(template);
        job.ranks.push(job::RankInstance { template: 0, communicators: vec![], emulated: true });
        let run = RunFacts { command: vec!["python".into()], exit_code: exit, ..RunFacts::default() };
        let memory = Memory { total_bytes: total, capacity_bytes: 80 * GIB, ..Memory::default() };
        (job, run, memory)
    }

    #[track_caller]
    fn check(verdict: &Verdict, status: VerdictStatus, text: &str) {
        assert_eq!(verdict.status, status, "{}", verdict.text);
        assert!(verdict.text.contains(text), "{}", verdict.text);
        assert_eq!(verdict.out_of_memory.is_some(), status == VerdictStatus::OutOfMemory);
    }

    #[test]
    fn a_job_that_ends_well_fits_or_not() {
        check(&judge(Some(0), "", 20 * GIB, false, true), VerdictStatus::Fits, "20.0 of 80.0 GiB");
        check(&judge(Some(0), "", 90 * GIB, false, false), VerdictStatus::OutOfMemory, "takes 90.00 GiB");
    }

    #[test]
    fn a_job_that_survived_a_failed_allocation_fits() {
        check(&judge(Some(0), "", 20 * GIB, true, true), VerdictStatus::Fits, "fits");
    }

    #[test]
    fn a_job_that_ran_out_says_what_it_asked_for() {
        let verdict = judge(Some(1), "torch.OutOfMemoryError", 79 * GIB, true, true);
        check(&verdict, VerdictStatus::OutOfMemory, "asked for 4.00 GiB when 1.00 GiB of 80.00 GiB");
        let elsewhere = judge(Some(1), "torch.OutOfMemoryError", 79 * GIB, true, false);
        check(&elsewhere, VerdictStatus::Failed, "not known");
    }

    #[test]
    fn a_library_that_finds_no_memory_is_out_of_memory_too() {
        let check_message = |message: &str, expect: bool| {
            let (mut job, run, memory) = ended(Some(1), "builtins.RuntimeError", 79 * GIB, true);
            job.facts.insert("python.exception_message".into(), message.into());
            let verdict = verdict(&job, &run, &memory, true);
            assert_eq!(verdict.status == VerdictStatus::OutOfMemory, expect, "{message}: {}", verdict.text);
        };
        check_message("NCCL AllReduce failed: unhandled cuda error", true);
        check_message("NCCL error in: x.cpp\nLast error:\nCuda failure 'out of memory'", true);
        check_message(
            "unhandled cuda error\nLast error:\nCuda failure 700 'an illegal memory access'",
            false,
        );
        check_message("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", true);
        check_message("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", true);
        check_message("CUDA error: device-side assert triggered", false);
    }

    #[test]
    fn other_endings() {
        check(
            &judge(Some(3), "builtins.ValueError", 0, false, true),
            VerdictStatus::Failed,
            "exit code 3: ValueError",
        );
        check(&judge(None, "", 0, false, true), VerdictStatus::Failed, "ended early");
    }
}
