//! The steps that were seen, and what one step consists of on the slowest rank.

use trompe_cluster::{Outcome, RankOutcome, StepOutcome};
use trompe_results::{
    Communication, DeviceUse, GroupTime, Kind, KindTime, Rate, Step, StepRule, Steps, Throughput,
};
use trompe_trace::job::{Communicator, JobTrace, RankTemplate, StepSource};

use super::ranks::{self, Kinds};
use crate::run_facts::RunFacts;

/// The table of steps of the slowest rank.
pub(super) fn steps(template: &RankTemplate, rank: &RankOutcome) -> Steps {
    let seen = template.steps.count();
    let (rule, found_by) = match template.steps.source {
        StepSource::Optimizer => (StepRule::Optimizer, "the end of the optimizer's step"),
        StepSource::Replay => {
            (StepRule::Period, "the launches of the CUDA graphs that hold the training step")
        }
        StepSource::Marker => (StepRule::Range, "the ranges that the program marks"),
        StepSource::Period => (StepRule::Period, "the period of the operations' sequence"),
        StepSource::User => (StepRule::User, "the user's --steps"),
        StepSource::WholeRun => {
            (StepRule::WholeRun, "nothing that repeats: the whole run counts as one step")
        }
    };
    let peaks = peaks(template);
    let table = rank.steps.iter().enumerate().map(|(index, step)| Step {
        index: index as u32,
        seconds: step.time.as_secs_f64(),
        busy_seconds: step.busy().as_secs_f64(),
        host_seconds: step.host.as_secs_f64(),
        kernels: step.operations(),
        peak_allocated_bytes: peaks.get(index).copied().unwrap_or(0),
        used: index >= rank.warmup,
        excluded_because: (index < rank.warmup)
            .then(|| "it differs from the later steps (warm-up)".to_owned()),
    });
    Steps {
        rule,
        found_by: found_by.to_owned(),
        seen: seen as u32,
        warm_up: rank.warmup as u32,
        used: rank.used_count as u32,
        table: table.collect(),
    }
}

/// The largest allocated bytes in each step.
fn peaks(template: &RankTemplate) -> Vec<u64> {
    let timeline = &template.memory.timeline;
    let boundaries = &template.steps.boundaries;
    let mut peaks = Vec::new();
    for step in boundaries.windows(2) {
        let begin = timeline.partition_point(|sample| sample.event < step[0] as u64);
        let end = timeline.partition_point(|sample| sample.event < step[1] as u64);
        // What lives when the step begins counts too.
        let samples = &timeline[begin.saturating_sub(1)..end.max(begin)];
        peaks.push(samples.iter().map(|sample| sample.allocated.0).max().unwrap_or(0));
    }
    peaks
}

/// The used steps' mean: every quantity of them over their number.
#[derive(Clone, Copy)]
pub(super) struct Mean<'a> {
    used: &'a StepOutcome,
    count: f64,
}

impl<'a> Mean<'a> {
    pub(super) fn of(rank: &'a RankOutcome) -> Self {
        Self { used: &rank.used, count: rank.used_count.max(1) as f64 }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.used.time.as_secs_f64() / self.count
    }

    pub(super) fn host_seconds(&self) -> f64 {
        self.used.host.as_secs_f64() / self.count
    }

    pub(super) fn breakdown(&self) -> Vec<KindTime> {
        let whole = self.seconds();
        let kinds = Kind::ALL.into_iter().map(|kind| {
            let index = kind as usize;
            let seconds = self.used.kinds[index].as_secs_f64() / self.count;
            KindTime {
                kind,
                seconds,
                share: share(seconds, whole),
                kernel_seconds: self.used.operation_time[index].as_secs_f64() / self.count,
                count: (self.used.operation_count[index] as f64 / self.count).round() as u64,
            }
        });
        kinds.filter(|part| part.seconds > 0.0 || part.kernel_seconds > 0.0 || part.count > 0).collect()
    }

    pub(super) fn device_use(&self) -> DeviceUse {
        let busy = self.used.busy().as_secs_f64() / self.count;
        let host_bound = self.used.host_bound().as_secs_f64() / self.count;
        DeviceUse {
            busy_seconds: busy,
            busy_share: share(busy, self.seconds()),
            host_bound_seconds: host_bound,
            host_bound_share: share(host_bound, self.seconds()),
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Communication on the rank where it is longest.
pub(super) fn communication(job: &JobTrace, kinds: &Kinds, outcome: &Outcome) -> Communication {
    let longest = outcome.ranks.iter().rev().max_by_key(|rank| rank.used.communication);
    let Some(rank) = longest else { return Communication::default() };
    let count = rank.used_count.max(1) as f64;
    let groups = rank.communication.iter().filter(|group| group.calls > 0).map(|group| {
        let communicator = job.communicators.get(group.communicator);
        GroupTime {
            group: communicator.map_or_else(|| format!("group {}", group.communicator), name),
            kind: ranks::kind_of(job, kinds, rank.rank.index(), group.communicator),
            operation: group.kind.words().to_owned(),
            ranks: communicator.map_or(0, |communicator| communicator.members.len() as u32),
            count: (group.calls as f64 / count).round() as u64,
            bytes: (group.bytes.as_f64() / count).round() as u64,
            seconds: group.time.as_secs_f64() / count,
            exposed_seconds: group.exposed.as_secs_f64() / count,
            bubble_seconds: group.bubble.as_secs_f64() / count,
        }
    });
    Communication {
        seconds: rank.used.communication.as_secs_f64() / count,
        exposed_seconds: rank.used.exposed_communication().as_secs_f64() / count,
        groups: groups.collect(),
    }
}

fn name(communicator: &Communicator) -> String {
    let members = &communicator.members;
    match (&communicator.purpose, members.first(), members.last()) {
        (Some(purpose), ..) => purpose.clone(),
        (None, Some(first), Some(last)) => format!("{} ranks from {first} to {last}", members.len()),
        (None, ..) => "no ranks".to_owned(),
    }
}

/// Samples and tokens per second of the whole job: what the user gave, else what the trace shows.
pub(super) fn throughput(
    job: &JobTrace,
    template: &RankTemplate,
    run: &RunFacts,
    step_seconds: f64,
) -> Throughput {
    // Every rank works on its own data, as in data parallelism; what groups share data is not known here.
    let ranks = job.ranks.len().max(1) as f64;
    let rate = |given: Option<f64>, found: Option<u64>| {
        let (per_rank, found_by) = match (given, found) {
            (Some(given), _) => (given, "given by the user".to_owned()),
            (None, Some(found)) => (found as f64, template.steps.samples_from.clone().unwrap_or_default()),
            (None, None) => return None,
        };
        let per_step = per_rank * ranks;
        (step_seconds > 0.0).then(|| Rate { per_second: per_step / step_seconds, per_step, found_by })
    };
    Throughput {
        samples: rate(run.samples_per_step, template.steps.samples),
        tokens: rate(run.tokens_per_step, template.steps.tokens),
    }
}
