//! Whether stages agree on what they do together: what one sends the other receives, and all members of a group make
//! the same collectives in the same order. A job in which they do not would never end.

use std::collections::BTreeMap;

use super::{Call, Collective, Job};
use crate::element::ElementType;

/// Says the first thing on which stages do not agree.
pub(super) fn check(job: &Job) -> Result<(), String> {
    if job.stages.is_empty() {
        return Ok(());
    }
    let steps = job.steps_of_stages();
    for (stage, step) in steps.iter().enumerate() {
        for (other, theirs) in steps.iter().enumerate() {
            pairs((stage, step), (other, theirs))?;
        }
    }
    collectives(job, &steps)
}

/// What `stage` sends to `other` against what that receives.
fn pairs((stage, step): (usize, &[Call]), (other, theirs): (usize, &[Call])) -> Result<(), String> {
    let sent = step.iter().filter_map(|call| match call {
        Call::Send { to, bytes, dtype, .. } if *to as usize == other => Some((*bytes, *dtype)),
        _ => None,
    });
    let received = theirs.iter().filter_map(|call| match call {
        Call::Receive { from, bytes, dtype, .. } if *from as usize == stage => Some((*bytes, *dtype)),
        _ => None,
    });
    let (sent, received): (Vec<_>, Vec<_>) = (sent.collect(), received.collect());
    if stage == other && !sent.is_empty() {
        return Err(format!("stage {stage} sends to itself"));
    }
    if sent.len() != received.len() {
        return Err(format!(
            "stage {stage} sends to stage {other} {} times a step, which receives from it {} times",
            sent.len(),
            received.len()
        ));
    }
    match sent.iter().zip(&received).position(|(sent, received)| sent != received) {
        None => Ok(()),
        Some(at) => {
            let text = |(bytes, dtype): (u64, ElementType)| format!("{bytes} bytes of {}", dtype.name());
            Err(format!(
                "send {at} of stage {stage} to stage {other} has {}, the receive {}",
                text(sent[at]),
                text(received[at])
            ))
        }
    }
}

/// A collective call: what, over how many bytes of what type.
type Made = (Collective, u64, ElementType);

/// For every group whose members are in several stages, what each of those stages does with it.
fn collectives(job: &Job, steps: &[&[Call]]) -> Result<(), String> {
    let per_stage = job.ranks_per_stage();
    let mut calls: BTreeMap<&str, Vec<Vec<Made>>> = BTreeMap::new();
    for (stage, step) in steps.iter().enumerate() {
        for call in *step {
            if let Call::Collective { kind, group, bytes, dtype, .. } = call {
                calls.entry(group).or_insert_with(|| vec![Vec::new(); steps.len()])[stage]
                    .push((*kind, *bytes, *dtype));
            }
        }
    }
    for (name, by_stage) in calls {
        for members in job.groups[name].members(job.ranks) {
            let stage_of = |rank: &u32| (rank / per_stage) as usize;
            let first = stage_of(&members[0]);
            let other = members.iter().map(stage_of).find(|stage| by_stage[*stage] != by_stage[first]);
            if let Some(other) = other {
                return Err(format!(
                    "group `{name}` has ranks of the stages {first} and {other}, whose collectives in it differ"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::FORMAT;
    use super::*;

    fn job(change: impl FnOnce(&mut serde_json::Value)) -> Result<Job, String> {
        let program = crate::kernels::vector_add(64, 64, 1);
        let add = || serde_json::json!({ "call": "kernel", "kernel": "add" });
        let sum = || serde_json::json!({ "call": "collective", "kind": "all_reduce", "group": "tp", "bytes": 256, "dtype": "f32" });
        let mut job = serde_json::json!({
            "format": FORMAT, "version": 1, "name": "two stages", "ranks": 4,
            "groups": { "tp": { "size": 2 } },
            "kernels": { "add": { "program": program, "does": "elementwise" } },
            "stages": [
                { "step": [add(), sum(), { "call": "send", "to": 1, "bytes": 256, "dtype": "f32" }] },
                { "step": [{ "call": "receive", "from": 0, "bytes": 256, "dtype": "f32" }, add(), sum()] },
            ],
        });
        change(&mut job);
        Job::from_json(&job.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn stages_must_agree() {
        assert_eq!(job(|_| {}).unwrap().ranks_per_stage(), 2);
        let check = |change: fn(&mut serde_json::Value), part: &str| {
            let error = job(change).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check(|job| job["ranks"] = 5.into(), "group `tp` has 2 ranks");
        check(
            |job| (job["ranks"], job["groups"]) = (5.into(), serde_json::json!({ "tp": { "size": 1 } })),
            "5 ranks cannot be shared out among 2 stages",
        );
        check(|job| job["step"] = job["stages"][0]["step"].clone(), "has `step` and `stages`");
        check(
            |job| job["stages"][1]["step"][0]["from"] = 2.into(),
            "stages[1].step[0]: there is no stage 2; the job has 2",
        );
        check(
            |job| job["stages"][0]["step"].as_array_mut().unwrap().truncate(2),
            "stage 0 sends to stage 1 0 times a step, which receives from it 1 times",
        );
        check(
            |job| job["stages"][1]["step"][0]["bytes"] = 128.into(),
            "send 0 of stage 0 to stage 1 has 256 bytes of f32, the receive 128 bytes",
        );
        check(|job| job["stages"][0]["step"][2]["to"] = 0.into(), "stage 0 sends to itself");
        check(
            |job| {
                job["groups"]["tp"] = serde_json::json!({ "size": 2, "stride": 2 });
                job["stages"][0]["step"][1]["bytes"] = 8.into();
            },
            "group `tp` has ranks of the stages 0 and 1, whose collectives in it differ",
        );
        check(
            |job| job["stages"][0]["step"] = serde_json::json!([]),
            "`stages[0].step` has no kernel and no collective",
        );
    }
}
