//! Where the step of each simulated rank goes.

use std::collections::BTreeMap;

use trompe_cluster::{Outcome, RankOutcome};
use trompe_results::{GroupKind, Kind, KindOfGroupTime, RankStep};
use trompe_trace::job::JobTrace;

/// As many ranks are listed; of more an even choice, and the slowest.
const LISTED: usize = 256;

/// What each communicator is for, by the job's templates and slots.
pub(super) type Kinds = Vec<Vec<GroupKind>>;

/// The kind of the communicator in row `row` of the job, as a rank of it sees it.
pub(super) fn kind_of(job: &JobTrace, kinds: &Kinds, rank: usize, row: usize) -> GroupKind {
    let Some(instance) = job.ranks.get(rank) else { return GroupKind::Other };
    let slot = instance.communicators.iter().position(|&own| own == row);
    let own = kinds.get(instance.template);
    slot.and_then(|slot| own?.get(slot).copied()).unwrap_or_default()
}

/// The table of ranks, by rank.
pub(super) fn ranks(job: &JobTrace, kinds: &Kinds, outcome: &Outcome) -> Vec<RankStep> {
    let all = &outcome.ranks;
    let stride = all.len().div_ceil(LISTED).max(1);
    let wanted = |&(row, _): &(usize, &RankOutcome)| row % stride == 0 || row == outcome.slowest;
    all.iter().enumerate().filter(wanted).map(|(_, rank)| step(job, kinds, rank)).collect()
}

fn step(job: &JobTrace, kinds: &Kinds, rank: &RankOutcome) -> RankStep {
    let count = rank.used_count.max(1) as f64;
    let mean = |time: trompe_base::Duration| time.as_secs_f64() / count;
    let mut groups: BTreeMap<GroupKind, KindOfGroupTime> = BTreeMap::new();
    for group in rank.communication.iter().filter(|group| group.calls > 0) {
        let kind = kind_of(job, kinds, rank.rank.index(), group.communicator);
        let row = groups.entry(kind).or_insert(KindOfGroupTime { kind, ..KindOfGroupTime::default() });
        row.seconds += mean(group.time);
        row.exposed_seconds += mean(group.exposed);
        row.bubble_seconds += mean(group.bubble);
    }
    RankStep {
        rank: rank.rank.0,
        stands_for: rank.stands_for,
        seconds: mean(rank.used.time),
        busy_seconds: mean(rank.used.busy()),
        host_bound_seconds: mean(rank.used.host_bound()),
        bubble_seconds: mean(rank.used.kinds[Kind::Bubble as usize]),
        communication_seconds: mean(rank.used.communication),
        exposed_seconds: mean(rank.used.exposed_communication()),
        groups: groups.into_values().collect(),
    }
}
