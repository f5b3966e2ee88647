//! The framework's live allocations at a point of the run.

use std::collections::BTreeMap;

use trompe_trace::record::Record;

use super::action;
use crate::classify::Allocations;

/// Live allocations by address.
#[derive(Debug, Default)]
pub(crate) struct Live {
    sizes: BTreeMap<u64, u64>,
}

impl Live {
    /// Follows one allocator event.
    pub(crate) fn apply(&mut self, record: &Record<'_>) {
        match record {
            Record::Allocator { action: action::ALLOC, address, bytes, .. } => {
                self.sizes.insert(*address, *bytes);
            }
            Record::Allocator { action: action::FREE_REQUESTED, address, .. } => {
                self.sizes.remove(address);
            }
            _ => {}
        }
    }
}

impl Allocations for Live {
    fn rest(&self, address: u64) -> u64 {
        let Some((start, size)) = self.sizes.range(..=address).next_back() else { return 0 };
        start.saturating_add(*size).saturating_sub(address)
    }
}
