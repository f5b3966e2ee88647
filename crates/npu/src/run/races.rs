//! Races between cores on global memory, in programs without collectives.
//!
//! Without a collective nothing orders two cores, so two of them must not touch the same bytes of a tensor unless both
//! read or both add atomically. In programs with collectives nothing is said: which accesses they order is not followed.

use crate::error::{RunError, Site};
use crate::memory::{Bank, Footprint};
use crate::ops::Op;
use crate::program::Role;

use super::core::{Core, Shared, lane_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Atomic,
}

/// Bytes of a tensor that an instruction touched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    tensor: u32,
    start: u64,
    end: u64,
    instr: u32,
    actor: u8,
    kind: Kind,
}

/// Whether races are looked for.
pub(super) fn applies(shared: &Shared) -> bool {
    let collective = |op| matches!(op, Op::AllcubeReady | Op::AllcubeWait | Op::AllvecReady | Op::AllvecWait);
    let options = &shared.options;
    let mut instrs = shared.program.lanes.iter().flatten().flat_map(|code| &code.instrs);
    options.checks.hazards
        && !options.timing_only
        && shared.program.cores > 1
        && !instrs.any(|i| collective(i.op))
}

impl Core {
    /// Remembers what a task touches of tensors that may be written.
    pub(super) fn remember(&mut self, actor: usize, instr: u32, footprint: &Footprint, atomic: bool) {
        for region in footprint.iter().filter(|region| region.bank == Bank::Gm) {
            let tensor = region.view.tensor;
            if self.shared.program.tensors[tensor as usize].role == Role::Input {
                continue;
            }
            let kind = match (region.write, atomic) {
                (false, _) => Kind::Read,
                (true, false) => Kind::Write,
                (true, true) => Kind::Atomic,
            };
            for run in 0..region.inner as i64 {
                let start = (region.start + run * region.inner_step) as u64;
                let end = start + region.length;
                match self.accesses_gm.last_mut() {
                    Some(last)
                        if last.instr == instr
                            && last.tensor == tensor
                            && last.kind == kind
                            && last.end == start =>
                    {
                        last.end = end;
                    }
                    _ => {
                        self.accesses_gm.push(Access { tensor, start, end, instr, actor: actor as u8, kind })
                    }
                }
            }
        }
    }
}

/// The first race in the order of tensors and bytes.
pub(super) fn find<'a>(cores: impl Iterator<Item = &'a Core>) -> Option<RunError> {
    let cores: Vec<&Core> = cores.collect();
    let mut all: Vec<(usize, Access)> = Vec::new();
    for (core, state) in cores.iter().enumerate() {
        all.extend(state.accesses_gm.iter().map(|access| (core, *access)));
    }
    all.sort_by_key(|(core, access)| (access.tensor, access.start, access.end, *core));
    let mut open: Vec<(usize, Access)> = Vec::new();
    for (core, access) in all {
        open.retain(|(_, other)| other.tensor == access.tensor && other.end > access.start);
        let conflict = open.iter().find(|(other_core, other)| {
            let harmless = other.kind == access.kind && access.kind != Kind::Write;
            *other_core != core && !harmless
        });
        if let Some((other_core, other)) = conflict {
            let site = |core: usize, access: &Access| -> Site {
                cores[core].site(lane_of(access.actor.into()), access.instr as usize)
            };
            return Some(RunError::Race {
                tensor: cores[core].shared.program.tensors[access.tensor as usize].name.clone(),
                offset: access.start,
                cores: [*other_core as u32, core as u32],
                sites: Box::new([site(*other_core, other), site(core, &access)]),
            });
        }
        // One access per core, kind and extent is enough to find the first conflict.
        if !open.iter().any(|(c, o)| *c == core && o.kind == access.kind && o.end >= access.end) {
            open.push((core, access));
        }
    }
    None
}
