//! One trace for many points: on which cluster, and with how many replicas, the job of a point runs.
//!
//! Points that differ only in what their job does not see resolve to the same job on the same cluster, so the trace of
//! the first of them serves all. What the space file declares decides: `reuse_trace` that the kind of device is not
//! seen, `replicas` that the number of data-parallel replicas is not.

use trompe_search::space::{GLOBAL_BATCH, MachineFacts};
use trompe_search::study::Proposal;
use trompe_search::{Point, Value, Values};

use super::replicas::Replicas;
use super::{Plan, SearchError};
use crate::SessionError;

/// Where and how a point's job runs.
pub(super) struct RunsOn {
    /// The values that its command is made from.
    pub(super) values: Values,
    /// The cluster, where traces are shared.
    pub(super) cluster: Option<String>,
    /// That it runs with fewer replicas than are simulated.
    pub(super) replicas: Option<Replicas>,
}

/// Fewer replicas than this show no groups of replicas.
const FEWEST: u64 = 2;
/// Nodes that a job runs on at least when the one it stands for has more: groups over nodes take other memory than those
/// inside one.
const FEWEST_NODES: u32 = 2;

/// Where the job of a point runs: on the smallest cluster whose trace serves.
pub(super) fn smaller(plan: &Plan, proposal: &Proposal) -> Result<RunsOn, SessionError> {
    let own = plan.machines.of(&proposal.point);
    let alike = if plan.space.reuse_trace { reference(plan, &proposal.point) } else { None };
    let mut runs_on = RunsOn { values: proposal.values.clone(), cluster: alike, replicas: None };
    let Some(reuse) = &plan.space.replicas else { return Ok(runs_on) };
    let values = &proposal.values;
    let wrong = |reason| SearchError::Trial { name: "replicas", reason };
    if let Some(condition) = &reuse.condition
        && !condition.holds(values).map_err(wrong)?
    {
        return Ok(runs_on);
    }
    let whole = |value: Option<Value>, what: &str| match value.as_ref().and_then(Value::integer) {
        Some(number) if number >= 1 => Ok(number as u64),
        _ => Err(wrong(format!("`{what}` is no positive whole number"))),
    };
    let degree = whole(values.get(&reuse.degree).cloned(), &reuse.degree)?;
    let apart = whole(reuse.apart.evaluate(values).map_err(wrong)?, &reuse.apart.source)?;
    let emulated = runs_on.cluster.as_deref().unwrap_or(&own.cluster);
    let fewer = |nodes: u32| {
        let (whole, part) = (u64::from(own.nodes), u64::from(nodes));
        let run = degree * part / whole;
        (nodes >= FEWEST_NODES && nodes < own.nodes && (degree * part).is_multiple_of(whole) && run >= FEWEST)
            .then_some(run)
    };
    let candidates = plan.machines.all().filter(|facts| kind(facts) == kind_of(emulated));
    let smallest = candidates.filter_map(|facts| Some((facts.nodes, facts, fewer(facts.nodes)?)));
    let Some((_, facts, run)) = smallest.min_by_key(|(nodes, ..)| *nodes) else { return Ok(runs_on) };
    facts.store(&mut runs_on.values);
    runs_on.values.insert(reuse.degree.clone(), Value::Integer(run as i64));
    if let Some(global) = values.get(GLOBAL_BATCH).and_then(Value::integer) {
        // Each replica takes as much as before.
        let global = global / degree as i64 * run as i64;
        runs_on.values.insert(GLOBAL_BATCH.to_owned(), Value::Integer(global));
    }
    runs_on.cluster = Some(facts.cluster.clone());
    runs_on.replicas = Some(Replicas { stride: apart as u32, recorded: run as u32, wanted: degree as u32 });
    Ok(runs_on)
}

/// What a cluster is made of, without how many nodes it has.
fn kind(facts: &MachineFacts) -> &str {
    kind_of(&facts.cluster)
}

fn kind_of(cluster: &str) -> &str {
    cluster.split(':').next().unwrap_or(cluster)
}

/// The cluster on which a job is emulated for all clusters of the same shape: the one whose devices have the most
/// memory, so that its trace is whole wherever it is simulated.
fn reference(plan: &Plan, point: &Point) -> Option<String> {
    let own = plan.machines.of(point);
    let alike = plan
        .machines
        .all()
        .filter(|other| other.nodes == own.nodes && other.gpus_per_node == own.gpus_per_node);
    let largest = alike.max_by(|a, b| a.memory_bytes.cmp(&b.memory_bytes).then(b.cluster.cmp(&a.cluster)));
    largest.map(|facts| facts.cluster.clone())
}
