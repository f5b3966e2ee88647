//! Groups of calls, and what is known only when a group ends.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mirror::{self, Pending};
use trompe_cuda_abi::pointer::In;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome};

/// What is known of a communicator that is about to be split off.
#[derive(Debug)]
pub(super) struct SplitHint {
    pub(super) size: i32,
    pub(super) rank: i32,
    /// Global ranks; empty when not known.
    pub(super) members: Vec<u32>,
}

/// State of one thread; nothing in it has a destructor.
struct Group {
    depth: Cell<u32>,
    number: Cell<u64>,
    pending: RefCell<ManuallyDrop<Vec<Pending>>>,
    split_hint: RefCell<ManuallyDrop<Option<SplitHint>>>,
}

thread_local! {
    static GROUP: Group = const {
        Group {
            depth: Cell::new(0),
            number: Cell::new(0),
            pending: RefCell::new(ManuallyDrop::new(Vec::new())),
            split_hint: RefCell::new(ManuallyDrop::new(None)),
        }
    };
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Number of the group that the thread is in, from 1; 0 outside of any.
pub(super) fn current() -> u64 {
    GROUP.with(|group| if group.depth.get() == 0 { 0 } else { group.number.get() })
}

/// Keeps a call until its group ends, or answers it at once outside of a group.
pub(super) fn defer(call: &mut Call<'_>, pending: Pending) {
    let kept = GROUP.with(|group| {
        if group.depth.get() > 0 {
            group.pending.borrow_mut().push(pending);
        }
        group.depth.get() > 0
    });
    if !kept {
        mirror::settle(call, &[pending]);
    }
}

/// `ncclGroupStart`.
pub(crate) fn start(_: &mut Call<'_>) -> Outcome {
    GROUP.with(|group| {
        if group.depth.get() == 0 {
            group.number.set(NUMBERS.fetch_add(1, Ordering::Relaxed));
        }
        group.depth.set(group.depth.get() + 1);
    });
    Ok(())
}

/// `ncclGroupEnd`.
pub(crate) fn end(call: &mut Call<'_>) -> Outcome {
    let ended = GROUP.with(|group| {
        let depth = group.depth.get().checked_sub(1)?;
        group.depth.set(depth);
        if depth > 0 {
            return Some(Vec::new());
        }
        Some(std::mem::take(&mut **group.pending.borrow_mut()))
    });
    let pending = ended.ok_or(LibraryFailure::InvalidValue)?;
    mirror::settle(call, &pending);
    Ok(())
}

/// `ncclGroupSimulateEnd`: ends the group; the estimate that the caller's struct has room for stays as it is.
pub(crate) fn simulate_end(call: &mut Call<'_>, _information: u64) -> Outcome {
    end(call)
}

/// What [`trompe_split_hint`] said last, once.
pub(super) fn take_split_hint() -> Option<SplitHint> {
    GROUP.with(|group| std::mem::take(&mut **group.split_hint.borrow_mut()))
}

/// Tells the next `ncclCommSplit` of this thread how many members its result has, which of them this process is, and
/// (unless `members` is null) their global ranks: colours and keys of absent members cannot be seen. A size of zero
/// takes the hint back. For the hook in the framework, which knows the groups.
#[expect(unsafe_code, unreachable_pub, reason = "exports a symbol under its own name")]
#[unsafe(no_mangle)]
pub extern "C" fn trompe_split_hint(size: u32, rank: u32, members: In<u32>) {
    let members = if members.is_null() { Ok(Vec::new()) } else { members.read_many(size as usize) };
    let place = i32::try_from(size).ok().filter(|size| *size > 0).zip(i32::try_from(rank).ok());
    let hint = place.map(|(size, rank)| SplitHint { size, rank, members: members.unwrap_or_default() });
    GROUP.with(|group| **group.split_hint.borrow_mut() = hint);
}
