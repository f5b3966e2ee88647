//! Which bytes of device memory hold what a real device would hold.
//!
//! Kernels do nothing, so most of the memory reads zero and means nothing. What a copy from the host, a fill or an
//! operation that was really done has written is *true*; what a policy made up (which expert a token goes to) is
//! *chosen*: as good as true for following the program, but not the program's own. Everything else is *unknown*. A
//! range is as good as its worst byte.

use crate::range::RangeSet;

/// How much the bytes of a range mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Nobody wrote them, or something whose result is not computed did.
    Unknown,
    /// A policy made them up.
    Chosen,
    /// They are what a real device would hold.
    True,
}

impl Content {
    /// The content with this number (0 unknown, 1 chosen, 2 true), as the framework side gives it.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::Chosen,
            _ => Self::True,
        }
    }
}

/// What is not unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// True content.
    real: RangeSet,
    /// True or chosen content.
    meant: RangeSet,
}

impl Contents {
    /// Notes that a range was written.
    pub(super) fn write(&mut self, address: u64, bytes: u64, content: Content) {
        let end = address.saturating_add(bytes);
        if content == Content::True {
            self.real.insert(address, end);
        } else {
            self.real.remove(address, end);
        }
        if content >= Content::Chosen {
            self.meant.insert(address, end);
        } else {
            self.meant.remove(address, end);
        }
    }

    /// What a range holds. Nothing is true of an empty range, so it is true.
    pub(super) fn of(&self, address: u64, bytes: u64) -> Content {
        let end = address.saturating_add(bytes);
        let all = |set: &RangeSet| bytes == 0 || set.within(address, end).next() == Some((address, end));
        if all(&self.real) {
            Content::True
        } else if all(&self.meant) {
            Content::Chosen
        } else {
            Content::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_as_good_as_its_worst_byte() {
        let mut contents = Contents::default();
        assert_eq!(contents.of(0, 8), Content::Unknown);
        contents.write(0, 8, Content::True);
        contents.write(8, 8, Content::Chosen);
        assert_eq!(contents.of(0, 8), Content::True);
        assert_eq!(contents.of(4, 8), Content::Chosen);
        assert_eq!(contents.of(12, 8), Content::Unknown);
        contents.write(2, 1, Content::Unknown);
        assert_eq!(contents.of(0, 8), Content::Unknown);
        assert_eq!(contents.of(3, 5), Content::True);
        assert_eq!(contents.of(100, 0), Content::True);
    }
}
