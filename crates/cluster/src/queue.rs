//! What is enqueued on a stream, first in, first out, with the first item at hand.
//!
//! A rank is looked at again after thousands of others, when little of it is left in the processor's caches. The first
//! item stands in the stream itself: reading it waits for no second line, and the next one is fetched when the first is
//! taken, long before anybody needs it.

use std::collections::VecDeque;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> Queue<T> {
    pub(crate) const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn push_back(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push_back(item);
        }
    }

    pub(crate) fn pop_front(&mut self) {
        self.first = self.rest.pop_front();
    }
}
