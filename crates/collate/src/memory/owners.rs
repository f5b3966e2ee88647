//! Who owned the live tensors at the peak: the operator that was open when each was allocated, with its phase.

use std::collections::{BTreeMap, HashMap};

use trompe_base::Bytes;
use trompe_trace::job::Phase;
use trompe_trace::record::Record;

use super::action;
use super::blocks::Blocks;
use crate::operator::FrameKind;
use crate::walk::{MemoryEvent, Walk};

/// Owners kept by name; the rest is one entry.
const OWNERS: usize = 40;

/// The operator and phase of a memory event, for example `aten::linear, forward`.
///
/// Helper operators that only make a tensor are not owners: the operator that called them is.
pub(super) fn owner(event: &MemoryEvent<'_>, walk: &Walk<'_>) -> String {
    const HELPERS: [&str; 10] = [
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::new_empty",
        "aten::new_empty_strided",
        "aten::resize_",
        "aten::_to_copy",
        "aten::to",
        "aten::clone",
        "aten::contiguous",
    ];
    let stack =
        || std::iter::successors(event.frame, |row| walk.frames[*row].parent).map(|row| &walk.frames[row]);
    let named = stack().find(|frame| frame.kind == FrameKind::Operator && !HELPERS.contains(&frame.name));
    let named = named.or_else(|| stack().find(|frame| frame.kind == FrameKind::Operator));
    let range = event.frame.and_then(|row| walk.frames[row].range);
    let what = named.map(|frame| frame.name).or(range).unwrap_or("outside of operators");
    let phase = match event.phase {
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Recompute => "recompute",
        Phase::Optimizer => "optimizer",
    };
    format!("{what}, {phase}")
}

/// Bytes by owner after memory event `peak`, largest first.
pub(super) fn at_peak(walk: &Walk<'_>, peak: usize) -> Vec<(String, Bytes)> {
    let mut blocks = Blocks::default();
    let mut live: HashMap<u64, (usize, u64)> = HashMap::new();
    for (index, event) in walk.memory.iter().enumerate().take(peak + 1) {
        let Record::Allocator { action, address, bytes, .. } = event.record else { continue };
        let before = blocks.allocated();
        blocks.apply(action, address, bytes);
        match action {
            action::ALLOC => {
                live.insert(address, (index, blocks.allocated() - before));
            }
            action::FREE_REQUESTED => {
                live.remove(&address);
            }
            _ => {}
        }
    }
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (index, bytes) in live.into_values() {
        *sums.entry(owner(&walk.memory[index], walk)).or_default() += bytes;
    }
    let mut list: Vec<_> = sums.into_iter().map(|(owner, bytes)| (owner, Bytes(bytes))).collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if list.len() > OWNERS {
        let rest = list.split_off(OWNERS).into_iter().map(|(_, bytes)| bytes).sum();
        list.push(("others".to_owned(), rest));
    }
    list
}
