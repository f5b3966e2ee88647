//! Unique ids of communicators that say who the members are.
//!
//! A real one is 128 bytes of addresses and random numbers, opaque to everybody but NCCL. Ours is read by the
//! emulated NCCL, which otherwise knows only its own place among the members.

use crate::{Rank, RankPattern};

/// What our ids begin with.
const MARK: [u8; 8] = *b"trompeid";

/// A unique id made from the key under which it is exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueId {
    /// Different for different keys.
    pub identity: u64,
    /// The members, where they were told and are regular.
    pub members: Option<RankPattern>,
}

impl UniqueId {
    /// Size of an id (`NCCL_UNIQUE_ID_BYTES`).
    pub const BYTES: usize = 128;

    /// The id for `key`.
    #[must_use]
    pub fn new(key: &[u8], members: Option<RankPattern>) -> Self {
        // FNV-1a: the same in every build.
        let identity = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { identity, members }
    }

    /// Name of the file, in the folder that the processes of a run share, that holds the id which stands for `given`.
    #[must_use]
    pub fn note(given: &[u8]) -> String {
        let text: String = given.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("id-{text}")
    }

    /// Mark, identity, number of axes plus one (or zero without members), first member, axes; the rest is zero.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = MARK.to_vec();
        bytes.extend(self.identity.to_le_bytes());
        if let Some(members) = &self.members {
            bytes.push(members.axes().len() as u8 + 1);
            bytes.extend(members.first().to_le_bytes());
            for (stride, count) in members.axes() {
                bytes.extend(stride.to_le_bytes());
                bytes.extend(count.to_le_bytes());
            }
        }
        bytes.resize(Self::BYTES, 0);
        bytes.try_into().expect("12 axes of 8 bytes fit")
    }

    /// Reads an id; `None` when it is not one of ours.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        if bytes[..8] != MARK {
            return None;
        }
        let identity = u64::from(number(8)) | u64::from(number(12)) << 32;
        let axes = match usize::from(bytes[16]) {
            0 => return Some(Self { identity, members: None }),
            axes if axes <= RankPattern::MOST_AXES + 1 => axes - 1,
            _ => return None,
        };
        let axes = (0..axes).map(|axis| (number(21 + 8 * axis), number(25 + 8 * axis))).collect();
        Some(Self { identity, members: RankPattern::new(number(17), axes) })
    }

    /// The members as ranks.
    #[must_use]
    pub fn ranks(&self) -> Option<Vec<Rank>> {
        self.members.as_ref().map(RankPattern::members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(members: Option<&[u32]>) {
        let id = UniqueId::new(b"key", members.map(|members| RankPattern::of(members).unwrap()));
        assert_eq!(UniqueId::from_bytes(&id.to_bytes()), Some(id));
    }

    #[test]
    fn ids_are_read_back() {
        check(None);
        check(Some(&[7]));
        check(Some(&[0, 8, 16, 24]));
        check(Some(&[0, 1, 8, 9, 64, 65, 72, 73]));
        let widest: Vec<u32> =
            (0..1 << 12).map(|n| (0..12).map(|bit| (n >> bit & 1) << (2 * bit)).sum()).collect();
        check(Some(&widest));
        assert_ne!(UniqueId::new(b"a", None).to_bytes(), UniqueId::new(b"b", None).to_bytes());
        assert_eq!(UniqueId::from_bytes(&[0; 128]), None);
    }
}
