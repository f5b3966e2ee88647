//! What carries the step, for people: the critical path by kernel, collective and part of the host program, and what a
//! gain there would bring.
//!
//! A share of the path is what could be won at most: when its owner gets faster, another chain of work may become the
//! longest. So the job is replayed with each of the largest owners a tenth faster, and the difference is the gain.

use std::collections::BTreeMap;

use trompe_cluster::{Outcome, PathOwner as Owner, Replay};
use trompe_results::{CriticalPath, Kind, PathOwner, PathRank, PathSort};
use trompe_trace::job::{JobTrace, Phase};

use super::ranks::Kinds;
use crate::SessionError;

/// Owners that are listed; the rest is one row.
const LISTED: usize = 20;
/// Owners whose gain is found by a replay.
const REPLAYED: usize = 8;
/// Trace events that these replays may cost together: about two seconds.
const EVENTS: u64 = 20_000_000;
/// How much faster an owner gets for that.
const FASTER: f64 = 0.1;

/// An owner as people see it.
type Name = (PathSort, Option<Kind>, String);

/// The critical path that `outcome` holds.
pub(super) fn critical_path(
    job: &JobTrace,
    kinds: &Kinds,
    outcome: &Outcome,
    replay: &Replay<'_>,
) -> Result<Option<CriticalPath>, SessionError> {
    let Some(path) = &outcome.path else { return Ok(None) };
    let mut named: BTreeMap<Name, (f64, u64)> = BTreeMap::new();
    for share in &path.shares {
        let entry = named.entry(name(job, kinds, share.owner)).or_default();
        entry.0 += share.time.as_secs_f64();
        entry.1 += share.pieces;
    }
    let whole = path.time.as_secs_f64();
    let share = |seconds: f64| if whole > 0.0 { seconds / whole } else { 0.0 };
    let mut owners: Vec<(Name, PathOwner)> = named
        .into_iter()
        .map(|(name, (seconds, pieces))| {
            let (sort, kind, what) = name.clone();
            let owner =
                PathOwner { what, sort, kind, seconds, share: share(seconds), pieces, gain_seconds: None };
            (name, owner)
        })
        .collect();
    owners.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds).then_with(|| a.0.cmp(&b.0)));
    let replays = (EVENTS / replay.events().max(1)).min(REPLAYED as u64) as usize;
    for (wanted, owner) in owners.iter_mut().take(replays) {
        if owner.sort == PathSort::Latency {
            continue;
        }
        let faster = |found: Owner| name(job, kinds, found) == *wanted;
        let step = replay.what_if(1.0 - FASTER, &faster);
        let step = step.map_err(|error| SessionError::Simulation { reason: error.to_string() })?;
        owner.gain_seconds = Some(outcome.step.saturating_sub(step).as_secs_f64());
    }
    let mut listed: Vec<PathOwner> = owners.into_iter().map(|(_, owner)| owner).collect();
    if listed.len() > LISTED {
        let rest = listed.split_off(LISTED - 1);
        let seconds = rest.iter().map(|owner| owner.seconds).sum();
        listed.push(PathOwner {
            what: format!("{} others", rest.len()),
            sort: PathSort::Kernel,
            seconds,
            share: share(seconds),
            pieces: rest.iter().map(|owner| owner.pieces).sum(),
            ..PathOwner::default()
        });
    }
    let rank = |&(rank, time): &(trompe_base::Rank, trompe_base::Duration)| PathRank {
        rank: rank.0,
        seconds: time.as_secs_f64(),
    };
    Ok(Some(CriticalPath {
        rank: path.rank.0,
        step: path.step as u32,
        seconds: whole,
        owners: listed,
        ranks: path.ranks.iter().take(8).map(rank).collect(),
        faster_share: FASTER,
    }))
}

fn name(job: &JobTrace, kinds: &Kinds, owner: Owner) -> Name {
    match owner {
        Owner::Operation { template, operation, kind } => {
            let found =
                job.templates.get(template).and_then(|found| found.operations.get(operation as usize));
            let what = found.map_or_else(|| "operation".to_owned(), |operation| operation.short_name.clone());
            (PathSort::Kernel, Some(kind), what)
        }
        Owner::Collective { template, slot, kind } => {
            let group =
                kinds.get(template).and_then(|found| found.get(slot as usize)).copied().unwrap_or_default();
            let what = format!("{} {}", group.short(), kind.words());
            (PathSort::Collective, Some(Kind::Communication), what)
        }
        Owner::Host { template, site } => {
            let found = job.templates.get(template).and_then(|found| found.sites.get(site as usize));
            let part = match found.map_or(Phase::Forward, |site| site.phase) {
                Phase::Forward => "forward pass and everything around it",
                Phase::Backward => "backward pass",
                Phase::Recompute => "recomputation",
                Phase::Optimizer => "optimizer",
            };
            (PathSort::Host, None, format!("host: {part}"))
        }
        Owner::Launch => (PathSort::Latency, None, "from launch to start".to_owned()),
        Owner::Wake => (PathSort::Latency, None, "host wakes up after a wait".to_owned()),
        Owner::Earlier => (PathSort::Latency, None, "before the steps that were watched".to_owned()),
    }
}
