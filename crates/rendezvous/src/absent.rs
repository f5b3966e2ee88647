//! What the store says for ranks that do not exist.
//!
//! Three rules, applied to keys that nobody has set:
//! - A *unique id of a communicator* is not asked for but made from its key, so all members get the same one whoever
//!   of them exists, and it is the same in every run.
//! - A key that ends in the number of an absent rank has the value that the rank *standing in* for it has set: the
//!   nearest existing one below, or else the first.
//! - For anything else the store waits for the existing ranks to set it, and only when nothing moves any more takes
//!   it as set by an absent one (see [`crate::store`]).

use std::collections::BTreeSet;

use trompe_base::{Rank, RankPattern, UniqueId};

/// The ranks of a job: all of them, and those that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    size: u32,
    present: BTreeSet<u32>,
    /// Ranks that existed and do not any more.
    gone: BTreeSet<u32>,
}

impl Ranks {
    /// `present` of `size` ranks exist; numbers that are not ranks are left out.
    #[must_use]
    pub fn new(size: u32, present: &[Rank]) -> Self {
        let present = present.iter().map(|rank| rank.0).filter(|rank| *rank < size).collect();
        Self { size, present, gone: BTreeSet::new() }
    }

    /// A rank does not exist any more, unless it is the last one.
    pub(crate) fn leave(&mut self, rank: Rank) {
        if self.present.len() > 1 && self.present.remove(&rank.0) {
            self.gone.insert(rank.0);
        }
    }

    /// Number of ranks of the job.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// How many exist.
    #[must_use]
    pub fn present(&self) -> u32 {
        self.present.len() as u32
    }

    /// How many do not.
    #[must_use]
    pub fn absent(&self) -> u32 {
        self.size - self.present()
    }

    /// The existing rank that stands in for an absent one; `None` for one that exists or is no rank.
    #[must_use]
    pub fn stand_in(&self, rank: u32) -> Option<u32> {
        if rank >= self.size || self.present.contains(&rank) {
            return None;
        }
        self.present.range(..rank).next_back().or_else(|| self.present.first()).copied()
    }
}

/// Whether the value of a key is the unique id of a communicator.
///
/// The names are those of PyTorch: `nccl_storekey_…` and `UniqueNCCLID:…`, or only a number below the prefix of the
/// device type in older ones.
pub(crate) fn is_unique_id(key: &[u8]) -> bool {
    let contains = |text: &[u8]| key.windows(text.len()).any(|part| part == text);
    let number_below = |prefix: &[u8]| {
        let at = key.windows(prefix.len()).rposition(|part| part == prefix);
        at.is_some_and(|at| {
            let rest = &key[at + prefix.len()..];
            !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)
        })
    };
    contains(b"nccl_storekey") || contains(b"UniqueNCCLID") || number_below(b"/cuda//")
}

/// Name under which the members of a group are told, below the prefix of the group.
pub const MEMBERS_KEY: &str = "trompe_members";

/// The keys under which the members of the communicator of `key` may have been told, most specific first.
pub(crate) fn members_keys(key: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let ends = (0..key.len()).rev().filter(|at| key[*at] == b'/');
    ends.map(|at| [&key[..=at], MEMBERS_KEY.as_bytes()].concat())
}

/// The unique id for a key and the members that were told for it (ranks as text with commas between).
pub(crate) fn unique_id(key: &[u8], members: Option<&[u8]>) -> Vec<u8> {
    let members = members.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| {
        let ranks: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
        RankPattern::of(&ranks.ok()?)
    });
    UniqueId::new(key, members).to_bytes().to_vec()
}

/// Whether a key is of the messages that trompe's own hook exchanges between existing ranks, which know who exists.
pub(crate) fn is_own(key: &[u8]) -> bool {
    key.starts_with(b"/trompe/")
}

/// Name of the message by which ranks that a script started itself tell how many there are and which of them exist.
pub(crate) const WORLD_KEY: &[u8] = b"/trompe/world";

/// The ranks that such a message tells: `size:rank,rank,…`.
pub(crate) fn told_world(value: &[u8]) -> Option<Ranks> {
    let (size, present) = std::str::from_utf8(value).ok()?.split_once(':')?;
    let present: Result<Vec<Rank>, _> = present.split(',').map(|rank| rank.parse().map(Rank)).collect();
    Some(Ranks::new(size.parse().ok()?, &present.ok()?))
}

/// The ranks of a message of the hook by which one rank says that it cannot go on without another: `(own, other)`.
pub(crate) fn wanted(key: &[u8]) -> Option<(Rank, Rank)> {
    let text = std::str::from_utf8(key.strip_prefix(b"/trompe/wanted/")?).ok()?;
    let (own, other) = text.split_once('-')?;
    Some((Rank(own.parse().ok()?), Rank(other.parse().ok()?)))
}

/// The key that the stand-in of an absent rank uses where `key` names that rank: its last number, replaced. The hook's
/// own messages are only answered for ranks that have gone: it knows which never were.
pub(crate) fn mirrored(ranks: &Ranks, key: &[u8]) -> Option<Vec<u8>> {
    let (begin, end, rank) = last_number(key)?;
    if is_own(key) && (is_of_one(key) || !ranks.gone.contains(&rank)) {
        return None;
    }
    let stand_in = ranks.stand_in(rank)?.to_string();
    Some([&key[..begin], stand_in.as_bytes(), &key[end..]].concat())
}

/// The last number in a key and where it stands.
fn last_number(key: &[u8]) -> Option<(usize, usize, u32)> {
    let end = key.iter().rposition(u8::is_ascii_digit)? + 1;
    let begin = key[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    Some((begin, end, std::str::from_utf8(&key[begin..end]).ok()?.parse().ok()?))
}

/// Whether a message of the hook is of one rank alone (an object that it broadcasts or sends), so that nobody can stand
/// in for it: `…:one/call/rank` and `…:from-to/call/from`.
fn is_of_one(key: &[u8]) -> bool {
    let end = key.iter().rposition(|byte| *byte == b':').map_or(key.len(), |at| at + 1);
    let rest = &key[end..];
    let direction = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
    direction == b"one"
        || direction.contains(&b'-') && direction.iter().all(|b| b.is_ascii_digit() || *b == b'-')
}

/// The rank that gives a message that only it can give.
pub(crate) fn sole_giver(key: &[u8]) -> Option<u32> {
    (is_own(key) && is_of_one(key)).then(|| last_number(key))?.map(|(_, _, rank)| rank)
}

/// What is answered for a message that only a rank which has gone could give.
pub(crate) const GONE: &[u8] = b"\0gone";

/// Whether `key` is a message that only a rank which has gone could give.
pub(crate) fn is_lost(ranks: &Ranks, key: &[u8]) -> bool {
    sole_giver(key).is_some_and(|rank| ranks.gone.contains(&rank))
}

/// Whether a number counts ranks that have come to one point: absent ones are always there.
pub(crate) fn counts_ranks(key: &[u8]) -> bool {
    let contains = |text: &[u8]| key.windows(text.len()).any(|part| part == text);
    [b"barrier".as_slice(), b"num_members", b"worker_count"].into_iter().any(contains)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks() -> Ranks {
        Ranks::new(64, &[Rank(0), Rank(5), Rank(63), Rank(64)])
    }

    #[test]
    fn absent_ranks_have_a_stand_in() {
        let check = |rank, expect| assert_eq!(ranks().stand_in(rank), expect);
        check(0, None);
        check(3, Some(0));
        check(62, Some(5));
        check(63, None);
        check(64, None);
        assert_eq!(Ranks::new(8, &[Rank(5)]).stand_in(2), Some(5));
        assert_eq!((ranks().present(), ranks().absent()), (3, 61));
    }

    #[test]
    fn keys_of_absent_ranks_are_mirrored() {
        let check = |key: &str, expect: Option<&str>| {
            let found = mirrored(&ranks(), key.as_bytes());
            assert_eq!(found.as_deref(), expect.map(str::as_bytes), "{key}");
        };
        check("/default_pg/0//rank7", Some("/default_pg/0//rank5"));
        check("/addr/2/ip", Some("/addr/0/ip"));
        check("/addr/5", None);
        check("/addr/100", None);
        check("/addr", None);
        check("7", Some("5"));
        check("/trompe/objects/0/7", None);
    }

    #[test]
    fn messages_of_ranks_that_have_gone_are_mirrored_or_lost() {
        let mut ranks = ranks();
        ranks.leave(Rank(5));
        let check = |key: &str, expect: Option<&str>, lost| {
            let found = mirrored(&ranks, key.as_bytes());
            assert_eq!(found.as_deref(), expect.map(str::as_bytes), "{key}");
            assert_eq!(is_lost(&ranks, key.as_bytes()), lost, "{key}");
        };
        check("/trompe/objects/0/17/5", Some("/trompe/objects/0/17/0"), false);
        check("/trompe/objects/0/17/7", None, false);
        check("/trompe/objects/0:one/17/5", None, true);
        check("/trompe/objects/0:one/17/63", None, false);
        check("/trompe/objects/0:5-63/0/5", None, true);
        check("/trompe/objects/a:b/0/5", Some("/trompe/objects/a:b/0/0"), false);
        assert_eq!(sole_giver(b"/trompe/objects/0:5-63/0/5"), Some(5));
        assert_eq!(ranks.present(), 2);
    }

    #[test]
    fn wanted_ranks_are_read() {
        let check = |key: &str, expect: Option<(u32, u32)>| {
            assert_eq!(wanted(key.as_bytes()), expect.map(|(own, other)| (Rank(own), Rank(other))));
        };
        check("/trompe/wanted/0-8", Some((0, 8)));
        check("/trompe/wanted/0", None);
        check("/wanted/0-8", None);
    }

    #[test]
    fn worlds_are_told() {
        assert_eq!(told_world(b"8:0,7"), Some(Ranks::new(8, &[Rank(0), Rank(7)])));
        assert_eq!(told_world(b"8:"), None);
        assert_eq!(told_world(b"x"), None);
    }

    #[test]
    fn unique_ids_are_told_from_other_keys() {
        let check = |key: &str, expect| assert_eq!(is_unique_id(key.as_bytes()), expect, "{key}");
        check("/default_pg/0//cuda//0/nccl_storekey_0_0", true);
        check("/default_pg/0//cuda//UniqueNCCLID:1", true);
        check("/default_pg/0//cuda//3", true);
        check("/default_pg/0//cuda//3/x", false);
        check("/default_pg/0//cpu//0/0", false);
    }
}
