//! What is known about every 32 bytes of a core's memories: written or not, and by which instruction last touched.
//!
//! Happens-before is tracked with vector clocks: each actor of a core (three control actors, ten pipes) counts its
//! memory-touching tasks; a flag carries the clock of whoever set it; a wait joins it. An access is ordered after an
//! earlier one of another actor when the clock of the one contains the count of the other. Two accesses that are not
//! ordered and not both reads are a hazard. Where parts of one block are touched by several actors only the latest
//! access is remembered: a hazard may then be missed, but none is made up.

use crate::compile::Compiled;
use crate::memory::{Bank, Region};
use crate::program::Space;

/// Actors of a core: control and pipes of the cube, of `vec0`, of `vec1`.
pub(crate) const ACTORS: usize = 13;

/// A vector clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(pub(crate) [u32; ACTORS]);

impl Clock {
    pub(crate) fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
    }
}

/// An access: actor and its count, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp(u32);

impl Stamp {
    const fn new(actor: usize, count: u32) -> Self {
        Self((count << 4) | actor as u32)
    }

    const fn actor(self) -> usize {
        (self.0 & 15) as usize
    }

    const fn count(self) -> u32 {
        self.0 >> 4
    }

    /// Whether the owner of `clock`, which is `actor`, knows of it.
    const fn before(self, actor: usize, clock: &Clock) -> bool {
        self.0 == 0 || self.actor() == actor || clock.0[self.actor()] >= self.count()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// One bit per byte.
    written: u32,
    write: Stamp,
    /// Last reads: vector unit, outward moves, matrix side, others.
    reads: [Stamp; 4],
    /// Bytes of the last write and of all reads since.
    write_bytes: u32,
    read_bytes: u32,
}

/// What an access found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Bytes that nothing has written, from this offset on.
    Poison { offset: u64, bytes: u32 },
    /// An access that is not ordered against this one.
    Hazard { offset: u64, actor: usize, count: u32, wrote: bool },
}

/// Shadow of all memories of a core.
#[derive(Debug)]
pub(crate) struct Shadow {
    banks: [Vec<Block>; 6],
    pub(crate) poison: bool,
    pub(crate) hazards: bool,
}

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor<'a> {
    pub(crate) actor: usize,
    pub(crate) count: u32,
    pub(crate) clock: &'a Clock,
    /// Bytes of each block of a repeat that the vector mask picks.
    pub(crate) mask: &'a [u32; 8],
}

impl Shadow {
    pub(crate) fn new(program: &Compiled, poison: bool, hazards: bool) -> Self {
        let on = poison || hazards;
        let size = |space| {
            if !on {
                0
            } else {
                program.used.get(&space).copied().unwrap_or(0).next_multiple_of(256) as usize / 32
            }
        };
        let spaces = [Space::L1, Space::L0a, Space::L0b, Space::L0c, Space::Ub, Space::Ub];
        Self { banks: spaces.map(|space| vec![Block::default(); size(space)]), poison, hazards }
    }

    /// Checks and records an access. Global memory is not shadowed.
    pub(crate) fn access(&mut self, region: &Region, who: &Accessor<'_>) -> Option<Finding> {
        if region.bank == Bank::Gm || !(self.poison || self.hazards) {
            return None;
        }
        let blocks = &mut self.banks[region.bank as usize];
        let checks = (self.poison, self.hazards);
        for outer in 0..region.outer as i64 {
            let base = region.start + outer * region.outer_step;
            // Runs that follow each other are one run.
            let together = !region.masked && region.inner_step == region.length as i64;
            let (inner, length) =
                if together { (1, region.length * region.inner) } else { (region.inner, region.length) };
            for run in 0..inner as i64 {
                let start = (base + run * region.inner_step) as u64;
                let mask = if region.masked { who.mask[run as usize & 7] } else { u32::MAX };
                if mask == 0 {
                    continue;
                }
                if let Some(finding) = touch(blocks, start..start + length, mask, (region.write, who, checks))
                {
                    return Some(finding);
                }
            }
        }
        None
    }
}

fn touch(
    blocks: &mut [Block],
    range: std::ops::Range<u64>,
    mask: u32,
    (write, who, (poison, hazards)): (bool, &Accessor<'_>, (bool, bool)),
) -> Option<Finding> {
    let (first, last) = (range.start / 32, (range.end - 1) / 32);
    let mine = Stamp::new(who.actor, who.count);
    let slot = reader_slot(who.actor);
    for at in first..=last {
        let block = &mut blocks[at as usize];
        let mut bytes = mask;
        if at == first {
            bytes &= u32::MAX << (range.start % 32);
        }
        if at == last {
            bytes &= u32::MAX >> (31 - (range.end - 1) % 32);
        }
        if poison && !write && block.written & bytes != bytes {
            let missing = bytes & !block.written;
            let offset = at * 32 + u64::from(missing.trailing_zeros());
            return Some(Finding::Poison { offset, bytes: missing.count_ones() });
        }
        if hazards {
            if block.write_bytes & bytes != 0 && !block.write.before(who.actor, who.clock) {
                let stamp = block.write;
                return Some(Finding::Hazard {
                    offset: at * 32,
                    actor: stamp.actor(),
                    count: stamp.count(),
                    wrote: true,
                });
            }
            if write {
                if block.read_bytes & bytes != 0 {
                    let late = block.reads.into_iter().find(|read| !read.before(who.actor, who.clock));
                    if let Some(stamp) = late {
                        return Some(Finding::Hazard {
                            offset: at * 32,
                            actor: stamp.actor(),
                            count: stamp.count(),
                            wrote: false,
                        });
                    }
                }
                block.write_bytes = bytes;
                block.write = mine;
                block.read_bytes = 0;
                block.reads = [Stamp::default(); 4];
            } else {
                if block.read_bytes != bytes {
                    block.read_bytes = bytes;
                    block.reads = [Stamp::default(); 4];
                }
                block.reads[slot] = mine;
            }
        }
        if write {
            block.written |= bytes;
        }
    }
    None
}

/// Which of a block's four read stamps an actor uses.
const fn reader_slot(actor: usize) -> usize {
    match actor {
        7 | 11 => 0,
        8 | 12 => 1,
        2 | 3 => 2,
        _ => 3,
    }
}
