//! The running tick: buckets that fire in ascending order, each first in, first out.

use crate::bitmap::Bitmap;
use crate::slab::{List, NIL, Slab};

/// The events of the running tick.
#[derive(Debug)]
pub(super) struct Due {
    occupied: Bitmap,
    buckets: Vec<List>,
}

impl Due {
    pub(super) fn new(buckets: usize) -> Self {
        Self { occupied: Bitmap::new(buckets), buckets: vec![List::EMPTY; buckets] }
    }

    #[inline]
    pub(super) fn push(&mut self, slab: &mut Slab, bucket: u32, index: u32) {
        slab.push_back(&mut self.buckets[bucket as usize], index);
        self.occupied.insert(bucket);
    }

    /// The first node of the lowest bucket.
    #[inline]
    pub(super) fn pop(&mut self, slab: &mut Slab) -> Option<u32> {
        let bucket = self.occupied.first()?;
        let list = &mut self.buckets[bucket as usize];
        let index = slab.pop_front(list);
        if list.head == NIL {
            self.occupied.remove(bucket);
        }
        Some(index)
    }

    pub(super) fn remove(&mut self, slab: &mut Slab, bucket: u32, index: u32) {
        let list = &mut self.buckets[bucket as usize];
        slab.unlink(list, index);
        if list.head == NIL {
            self.occupied.remove(bucket);
        }
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.occupied.first()
    }

    pub(super) fn clear(&mut self) {
        while let Some(bucket) = self.occupied.first() {
            self.buckets[bucket as usize] = List::EMPTY;
            self.occupied.remove(bucket);
        }
    }
}
