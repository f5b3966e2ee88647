//! Which pages of device memory may hold something other than zero.

use crate::range::RangeSet;

const PAGE: u64 = 4096;
/// Fewer whole pages than this are zeroed in place: cheaper than a system call and a new page fault each.
const DISCARD_FROM: u64 = 16;

/// Pages that were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    pages: RangeSet,
}

/// A range to be made zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The range consists of whole pages, and of enough of them to give them back to the system.
    pub(super) whole_pages: bool,
}

impl Dirty {
    /// Notes a write.
    pub(super) fn insert(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            self.pages.insert(address / PAGE, (address + bytes).div_ceil(PAGE));
        }
    }

    /// The parts of a range that may not be zero. Pages inside the range are clean afterwards; a page at its edge stays
    /// noted, because the rest of it was not touched.
    pub(super) fn take(&mut self, address: u64, bytes: u64) -> Vec<Part> {
        let end = address + bytes;
        let mut parts = Vec::new();
        for (from, to) in self.pages.within(address / PAGE, end.div_ceil(PAGE)) {
            let (start, stop) = ((from * PAGE).max(address), (to * PAGE).min(end));
            let (inner, inner_end) = (start.next_multiple_of(PAGE), stop / PAGE * PAGE);
            if inner_end >= inner + DISCARD_FROM * PAGE {
                let mut part = |address, end, whole_pages| {
                    if address < end {
                        parts.push(Part { address, bytes: end - address, whole_pages });
                    }
                };
                part(start, inner, false);
                part(inner, inner_end, true);
                part(inner_end, stop, false);
            } else {
                parts.push(Part { address: start, bytes: stop - start, whole_pages: false });
            }
        }
        if !parts.is_empty() {
            self.pages.remove(address.div_ceil(PAGE), end / PAGE);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_stay_dirty_and_inner_pages_are_cleaned() {
        let mut dirty = Dirty::default();
        dirty.insert(4096, 3 * 4096);
        let part = |address, bytes| Part { address, bytes, whole_pages: false };
        assert_eq!(dirty.take(4096 + 512, 4096), [part(4096 + 512, 4096)]);
        assert_eq!(dirty.take(4096, 4096), [part(4096, 4096)], "an edge page stays noted");
        assert_eq!(dirty.take(4096, 4096), [], "a whole page does not");
        assert_eq!(dirty.take(0, 4096), []);
    }

    #[test]
    fn many_pages_are_discarded() {
        let mut dirty = Dirty::default();
        dirty.insert(100, 64 * 4096);
        let parts = dirty.take(100, 64 * 4096);
        assert_eq!(parts.len(), 3);
        assert!(parts[1].whole_pages && parts[1].address == 4096 && parts[1].bytes == 63 * 4096);
    }
}
