//! The tick that is running: buckets that fire in ascending order, each first in, first out.
//!
//! A bucket fires its list of nodes, and once more than that if it was *marked*: a mark is a scheduling without a node,
//! which is all that most events need in their tick.

use super::near::Near;
use crate::bitmap::Bitmap;
use crate::slab::{List, NIL, Slab};

/// The events of one tick.
#[derive(Debug)]
pub(super) struct Due {
    occupied: Bitmap,
    lists: Vec<List>,
    /// Nodes on all lists.
    nodes: u32,
}

impl Due {
    pub(super) fn new(buckets: usize) -> Self {
        Self { occupied: Bitmap::new(buckets), lists: vec![List::EMPTY; buckets], nodes: 0 }
    }

    /// Marks a bucket; false when it was marked (or, in a bucket that is never marked, occupied) before.
    #[inline]
    pub(super) fn mark(&mut self, bucket: u32) -> bool {
        self.occupied.insert(bucket)
    }

    /// Fires the mark of a bucket whose list is empty.
    #[inline]
    pub(super) fn take_mark(&mut self, bucket: u32) {
        self.occupied.remove(bucket);
    }

    /// Takes a mark back, when the bucket's list is empty; returns whether there was one.
    pub(super) fn unmark(&mut self, bucket: u32) -> bool {
        let marked = self.occupied.contains(bucket);
        if marked {
            self.occupied.remove(bucket);
        }
        marked
    }

    /// Whether a bucket has something to fire.
    #[inline]
    pub(super) fn contains(&self, bucket: u32) -> bool {
        self.occupied.contains(bucket)
    }

    /// Appends a node to a bucket's list.
    #[inline]
    pub(super) fn push(&mut self, slab: &mut Slab, bucket: u32, index: u32) {
        slab.push_back(&mut self.lists[bucket as usize], index);
        self.nodes += 1;
        self.occupied.insert(bucket);
    }

    /// Puts a node before the others of a bucket's list.
    pub(super) fn push_front(&mut self, slab: &mut Slab, bucket: u32, index: u32) {
        slab.push_front(&mut self.lists[bucket as usize], index);
        self.nodes += 1;
        self.occupied.insert(bucket);
    }

    /// The lowest bucket that has something to fire.
    #[inline]
    pub(super) fn first(&mut self) -> Option<u32> {
        self.occupied.first()
    }

    /// Takes the first node of a bucket; none when only its mark is left.
    #[inline]
    pub(super) fn pop(&mut self, slab: &mut Slab, bucket: u32) -> Option<u32> {
        if self.nodes == 0 {
            return None;
        }
        let list = &mut self.lists[bucket as usize];
        if list.head == NIL {
            return None;
        }
        self.nodes -= 1;
        Some(slab.pop_front(list))
    }

    /// Takes a node out of the middle of a bucket's list.
    pub(super) fn remove(&mut self, slab: &mut Slab, bucket: u32, index: u32) {
        slab.unlink(&mut self.lists[bucket as usize], index);
        self.nodes -= 1;
    }

    /// Says that nothing of a bucket is left, if its list is empty.
    #[inline]
    pub(super) fn settle(&mut self, bucket: u32) {
        if self.lists[bucket as usize].head == NIL {
            self.occupied.remove(bucket);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.occupied.is_empty()
    }

    /// Takes over the marks that `near` has for `tick`.
    #[inline]
    pub(super) fn take_near(&mut self, near: &mut Near, tick: u64) {
        near.empty_into(tick, &mut self.occupied);
    }

    pub(super) fn clear(&mut self) {
        self.nodes = 0;
        while let Some(bucket) = self.occupied.first() {
            self.lists[bucket as usize] = List::EMPTY;
            self.occupied.remove(bucket);
        }
    }
}
