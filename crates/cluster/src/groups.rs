//! What communicators are for, told from what is called on them.
//!
//! Programs rarely say. What they do gives it away, rule by rule, the first that holds:
//!
//! 1. the purpose that the trace knows;
//! 2. sends and receives in one group call, in the forward pass: a ring over parts of a sequence (context); any other
//!    point-to-point operation: a pipeline;
//! 3. all-to-all: experts;
//! 4. reduce-scatter in the forward pass: tensor parallel with split sequences (a layer's output is scattered; sharded
//!    data parallelism scatters gradients only);
//! 5. all-gather or reduce-scatter otherwise: data parallel with sharded parameters or optimizer state;
//! 6. all-reduce in the forward pass of more than [`SMALL`] bytes a call: tensor parallel (smaller ones are metrics and
//!    batch statistics);
//! 7. all-reduce in the backward pass or the optimizer: data parallel;
//! 8. anything else is not told.

use trompe_results::GroupKind;
use trompe_trace::job::{Action, JobTrace, Phase, RankTemplate};
use trompe_trace::record::CollectiveKind;

/// Bytes below which an all-reduce in the forward pass says nothing.
const SMALL: u64 = 64 << 10;

/// By template and communicator slot: what the communicator is for.
#[must_use]
pub fn group_kinds(trace: &JobTrace) -> Vec<Vec<GroupKind>> {
    let kinds = |(index, template): (usize, &RankTemplate)| {
        let rank = trace.ranks.iter().find(|rank| rank.template == index);
        let slots = rank.map_or(&[][..], |rank| rank.communicators.as_slice());
        let told = |row: &usize| trace.communicators.get(*row).and_then(|found| found.purpose.as_deref());
        let seen = seen(template, slots.len());
        slots
            .iter()
            .zip(seen)
            .map(|(row, seen)| told(row).and_then(named).unwrap_or_else(|| seen.kind()))
            .collect()
    };
    trace.templates.iter().enumerate().map(kinds).collect()
}

/// The kind that a purpose names.
fn named(purpose: &str) -> Option<GroupKind> {
    let lower = purpose.to_ascii_lowercase();
    let has =
        |words: &[&str]| words.iter().any(|word| lower.split(['_', '-', ' ']).any(|part| part == *word));
    [
        (GroupKind::Tensor, &["tp", "tensor", "mp", "model"][..]),
        (GroupKind::Pipeline, &["pp", "pipeline", "pipe"][..]),
        (GroupKind::Context, &["cp", "context", "sp", "sequence"][..]),
        (GroupKind::Expert, &["ep", "expert", "experts"][..]),
        (GroupKind::Data, &["dp", "data", "ddp", "fsdp", "zero"][..]),
    ]
    .into_iter()
    .find(|(_, words)| has(words))
    .map(|(kind, _)| kind)
}

/// What was called on one communicator.
#[derive(Debug, Default)]
struct Seen {
    pairs: bool,
    ring: bool,
    exchange: bool,
    scatter_forward: bool,
    sharded: bool,
    large_forward: bool,
    reduce_later: bool,
}

impl Seen {
    fn kind(&self) -> GroupKind {
        if self.ring {
            GroupKind::Context
        } else if self.pairs {
            GroupKind::Pipeline
        } else if self.exchange {
            GroupKind::Expert
        } else if self.scatter_forward {
            GroupKind::Tensor
        } else if self.sharded {
            GroupKind::Data
        } else if self.large_forward {
            GroupKind::Tensor
        } else if self.reduce_later {
            GroupKind::Data
        } else {
            GroupKind::Other
        }
    }
}

fn seen(template: &RankTemplate, slots: usize) -> Vec<Seen> {
    let mut all: Vec<Seen> = (0..slots).map(|_| Seen::default()).collect();
    // The last send of a group call, to find a receive in the same call.
    let mut sent = (0, u32::MAX);
    for event in &template.events {
        let Action::Collective { collective, .. } = &event.action else { continue };
        let Some(seen) = all.get_mut(collective.communicator as usize) else { continue };
        let phase = template.sites.get(event.site as usize).map_or(Phase::Forward, |site| site.phase);
        let forward = matches!(phase, Phase::Forward | Phase::Recompute);
        match collective.kind {
            CollectiveKind::Send => {
                seen.pairs = true;
                sent = (collective.group, collective.communicator);
            }
            CollectiveKind::Recv => {
                seen.pairs = true;
                let together = collective.group != 0 && sent == (collective.group, collective.communicator);
                seen.ring |= together && forward && template.operations.iter().any(is_attention);
            }
            CollectiveKind::AllToAll => seen.exchange = true,
            CollectiveKind::ReduceScatter => {
                seen.scatter_forward |= forward;
                seen.sharded = true;
            }
            CollectiveKind::AllGather => seen.sharded |= collective.bytes.0 > SMALL,
            CollectiveKind::AllReduce => {
                seen.large_forward |= forward && collective.bytes.0 > SMALL;
                seen.reduce_later |= !forward;
            }
            _ => {}
        }
    }
    all
}

fn is_attention(operation: &trompe_trace::job::Operation) -> bool {
    matches!(operation.descriptor, trompe_trace::descriptor::Descriptor::Attention(_))
}

#[cfg(test)]
mod tests {
    use trompe_base::{Bytes, DType, Duration, Rank, StreamId, ThreadIndex};
    use trompe_trace::job::{CallClass, Collective, Communicator, HostEvent, RankInstance, Site};

    use super::*;

    #[track_caller]
    fn check(purpose: Option<&str>, calls: &[(CollectiveKind, Phase, u64, u64)], expect: GroupKind) {
        let mut template = RankTemplate::default();
        for (number, &(kind, phase, bytes, group)) in calls.iter().enumerate() {
            template.sites.push(Site { operator: String::new(), scope: String::new(), phase });
            let collective = Collective {
                kind,
                communicator: 0,
                sequence: number as u64,
                bytes: Bytes(bytes),
                dtype: DType::Bf16,
                peer: 0,
                group,
            };
            template.events.push(HostEvent {
                thread: ThreadIndex(0),
                gap: Duration::ZERO,
                call: CallClass::Collective,
                site: number as u32,
                action: Action::Collective { stream: StreamId(0), collective },
            });
        }
        let members = vec![Rank(0), Rank(1)];
        let trace = JobTrace {
            templates: vec![template],
            ranks: vec![RankInstance { template: 0, communicators: vec![0], emulated: true }],
            communicators: vec![Communicator { members, purpose: purpose.map(str::to_owned) }],
            ..JobTrace::default()
        };
        assert_eq!(group_kinds(&trace), [[expect]], "{calls:?}");
    }

    #[test]
    fn kinds_are_told_from_calls() {
        use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast, Recv, ReduceScatter, Send};
        use Phase::{Backward, Forward, Optimizer};
        const MB: u64 = 1 << 20;
        check(None, &[(AllReduce, Backward, 25 * MB, 0), (AllReduce, Forward, 8, 0)], GroupKind::Data);
        check(None, &[(AllReduce, Forward, 8 * MB, 0), (AllReduce, Backward, 8 * MB, 0)], GroupKind::Tensor);
        check(
            None,
            &[(AllGather, Forward, 8 * MB, 0), (ReduceScatter, Backward, 8 * MB, 0)],
            GroupKind::Data,
        );
        check(
            None,
            &[(AllGather, Forward, 8 * MB, 0), (ReduceScatter, Forward, 8 * MB, 0)],
            GroupKind::Tensor,
        );
        check(None, &[(Recv, Forward, MB, 0), (Send, Forward, MB, 0)], GroupKind::Pipeline);
        check(None, &[(AllToAll, Forward, MB, 0)], GroupKind::Expert);
        check(None, &[(AllReduce, Optimizer, 4, 0)], GroupKind::Data);
        check(None, &[(Broadcast, Forward, MB, 0)], GroupKind::Other);
        check(Some("tp"), &[(AllReduce, Backward, MB, 0)], GroupKind::Tensor);
        check(Some("mesh_cp"), &[(AllGather, Forward, MB, 0)], GroupKind::Context);
        check(Some("whatever"), &[(AllToAll, Forward, MB, 0)], GroupKind::Expert);
    }
}
