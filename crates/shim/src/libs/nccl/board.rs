//! What small collectives carry, exchanged between the members that exist through files in a folder of the run.
//!
//! Members that exist call in the same order, so a communicator's identity and the number of the call name a message.
//! A member that does not exist has given what its *stand-in* gives: the nearest existing member below, or the first.
//! Nobody waits for ever: after a while without the others a communicator is given up on, and its contents are made up
//! as if nobody else existed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use trompe_base::{DType, UniqueId};
use trompe_device::communicator::Communicator;

use super::mirror::{self, Pending, Role};
use super::number;
use crate::door::Call;
use crate::environment;
use crate::libs::libraries;

/// Contents up to this size are exchanged.
pub(super) const SMALL: u64 = 1 << 20;

/// How long another is waited for; longer where many share the processors.
fn patience(present: usize) -> Duration {
    Duration::from_secs(60 + 2 * present as u64)
}

#[derive(Debug)]
struct Board {
    folder: PathBuf,
    own: u32,
    present: BTreeSet<u32>,
    world: u32,
}

fn board() -> Option<&'static Board> {
    static BOARD: OnceLock<Option<Board>> = OnceLock::new();
    let made = BOARD.get_or_init(|| {
        let (folder, own, present, world) = environment::ranks()?;
        Some(Board { folder, own, present: present.into_iter().collect(), world })
    });
    made.as_ref()
}

/// This process's rank in the job.
pub(super) fn own_rank() -> Option<u32> {
    board().map(|board| board.own)
}

/// How long the id that stands for one of this process's is waited for: the store writes it when it is told.
const ID_PATIENCE: Duration = Duration::from_secs(3);

/// Unique ids that this process has made.
fn given() -> MutexGuard<'static, BTreeSet<[u8; UniqueId::BYTES]>> {
    static GIVEN: Mutex<BTreeSet<[u8; UniqueId::BYTES]>> = Mutex::new(BTreeSet::new());
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers an id that this process has made.
pub(super) fn remember_given(id: [u8; UniqueId::BYTES]) {
    given().insert(id);
}

/// The id that the other members have for `id`: the store gives them one of its own when a rank makes it and goes on
/// with it. Ids that do not go through the store are themselves.
pub(super) fn agreed(id: [u8; UniqueId::BYTES], size: i32) -> [u8; UniqueId::BYTES] {
    let Some(board) = board().filter(|_| size > 1) else { return id };
    if !given().remove(&id) {
        return id;
    }
    let path = board.folder.join(UniqueId::note(&id));
    let (mut waited, pause) = (Duration::ZERO, Duration::from_millis(1));
    while waited < ID_PATIENCE {
        if let Some(made) = std::fs::read(&path).ok().and_then(|bytes| bytes.try_into().ok()) {
            return made;
        }
        std::thread::sleep(pause);
        waited += pause;
    }
    id
}

/// Communicators whose other members did not come.
fn given_up() -> &'static Mutex<BTreeSet<u64>> {
    static GIVEN_UP: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    &GIVEN_UP
}

/// Ranks that have ended or were stopped.
fn gone() -> MutexGuard<'static, BTreeSet<u32>> {
    static GONE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The members of a communicator that exist.
#[derive(Debug)]
pub(super) struct Meeting {
    folder: &'static Path,
    identity: u64,
    own: u32,
    present: Vec<u32>,
    /// Global ranks of those.
    ranks: Vec<u32>,
    /// By place: the place of the stand-in, or the place itself where it exists.
    stand_ins: Vec<u32>,
}

impl Meeting {
    /// Who can be met in a communicator; `None` when nobody else exists or the members are not known.
    pub(super) fn of(communicator: &Communicator) -> Option<Self> {
        let board = board().filter(|board| board.present.len() > 1)?;
        let everybody: Vec<u32>;
        let members = match &*communicator.members {
            [] if communicator.size == board.world && communicator.rank == board.own => {
                everybody = (0..board.world).collect();
                &everybody[..]
            }
            members => members,
        };
        let gone_ranks = gone();
        let exists = |rank: &u32| board.present.contains(rank) && !gone_ranks.contains(rank);
        let places = members.iter().enumerate().map(|(place, rank)| (place as u32, *rank));
        let (present, ranks): (Vec<u32>, Vec<u32>) = places.filter(|(_, rank)| exists(rank)).unzip();
        drop(gone_ranks);
        let hopeless =
            given_up().lock().unwrap_or_else(PoisonError::into_inner).contains(&communicator.identity);
        if present.len() < 2 || hopeless {
            return None;
        }
        let stand_ins = stand_ins(members.len(), &present);
        Some(Self {
            folder: &board.folder,
            identity: communicator.identity,
            own: communicator.rank,
            present,
            ranks,
            stand_ins,
        })
    }

    /// Whether the member at a place exists.
    pub(super) fn exists(&self, place: u32) -> bool {
        self.present.contains(&place)
    }

    /// What each member that exists gives to the call `sequence`, by place.
    pub(super) fn all(&self, sequence: u64, own: &[u8]) -> Option<Values<'_>> {
        let name = |sequence: u64, place: u32| format!("c{sequence}-{place}");
        self.put(&name(sequence, self.own), own)?;
        let mut values = BTreeMap::new();
        for place in &self.present {
            if *place == self.own {
                values.insert(*place, own.to_vec());
            } else {
                match self.take(*place, &name(sequence, *place)) {
                    Taken::Value(value) => drop(values.insert(*place, value)),
                    Taken::Gone => {}
                    Taken::Late => return None,
                }
            }
        }
        // Everybody has come to this call, so everybody has read what was given to the one before.
        if let Some(before) = sequence.checked_sub(1) {
            let _ = std::fs::remove_file(self.path(&name(before, self.own)));
        }
        let stand_ins = if values.len() == self.present.len() {
            self.stand_ins.clone()
        } else {
            stand_ins(self.stand_ins.len(), &values.keys().copied().collect::<Vec<_>>())
        };
        Some(Values { meeting: self, stand_ins, values })
    }

    /// Leaves a message.
    pub(super) fn put(&self, name: &str, value: &[u8]) -> Option<()> {
        let path = self.path(name);
        let draft = self.path(&format!("draft-{name}-{}", self.own));
        std::fs::write(&draft, value).ok()?;
        std::fs::rename(&draft, &path).ok()
    }

    /// Waits for a message of the member at a place.
    fn take(&self, place: u32, name: &str) -> Taken {
        let path = self.path(name);
        let rank = self.present.iter().position(|other| *other == place).map(|row| self.ranks[row]);
        let left = rank.map(|rank| self.folder.join(format!("gone-{rank}")));
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_micros(20);
        loop {
            // What it gave before it went counts, so that is looked for last.
            let has_left =
                waited > Duration::from_millis(2) && left.as_ref().is_some_and(|left| left.exists());
            if let Ok(value) = std::fs::read(&path) {
                return Taken::Value(value);
            }
            if has_left {
                gone().extend(rank);
                return Taken::Gone;
            }
            if waited > patience(self.present.len()) {
                given_up().lock().unwrap_or_else(PoisonError::into_inner).insert(self.identity);
                return Taken::Late;
            }
            std::thread::sleep(pause);
            waited += pause;
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Takes a message away.
    pub(super) fn discard(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{:016x}-{name}", self.identity))
    }
}

/// Gives to others what the calls of a group carry, and says for each call who can be met.
pub(super) fn give(call: &Call<'_>, calls: &[Pending]) -> Vec<Option<Meeting>> {
    let meeting = |pending: &Pending| {
        let communicator = libraries().communicators.get(pending.communicator).ok()?.clone();
        Meeting::of(&communicator).filter(|_| pending.bytes <= SMALL)
    };
    let meetings: Vec<Option<Meeting>> = calls.iter().map(meeting).collect();
    for (pending, meeting) in calls.iter().zip(&meetings) {
        let Some(meeting) = meeting else { continue };
        let wanted = match pending.role {
            Role::Broadcast => pending.peer == pending.own,
            Role::Send => pending.peer != pending.own && meeting.exists(pending.peer),
            Role::Receive => false,
        };
        if wanted && let Some(value) = mirror::read(call, pending.send, pending.bytes) {
            let _ = meeting.put(&message(pending), &value);
        }
    }
    meetings
}

/// Takes what another member gave; false when the call has to be answered without.
pub(super) fn receive(call: &Call<'_>, pending: &Pending, meeting: Option<&Meeting>) -> bool {
    let Some(meeting) = meeting.filter(|meeting| meeting.exists(pending.peer)) else { return false };
    if pending.peer == pending.own || pending.role == Role::Send {
        return false;
    }
    let name = message(pending);
    let Taken::Value(value) = meeting.take(pending.peer, &name) else { return false };
    if pending.role == Role::Receive {
        meeting.discard(&name);
    }
    value.len() as u64 == pending.bytes && mirror::write(call, pending.receive, &value)
}

/// Name of what a call carries: equal on both sides.
fn message(pending: &Pending) -> String {
    let Pending { own, peer, sequence, .. } = pending;
    match pending.role {
        Role::Broadcast => format!("b{sequence}-{peer}"),
        Role::Send => format!("p{sequence}-{own}-{peer}"),
        Role::Receive => format!("p{sequence}-{peer}-{own}"),
    }
}

/// What came of waiting for a message.
enum Taken {
    Value(Vec<u8>),
    /// The other has ended without giving it.
    Gone,
    /// The other has not come.
    Late,
}

/// For each of `size` places the nearest present one below, or else the first.
fn stand_ins(size: usize, present: &[u32]) -> Vec<u32> {
    let stand_in = |place: u32| present.iter().rev().find(|other| **other <= place).unwrap_or(&present[0]);
    (0..size as u32).map(|place| *stand_in(place)).collect()
}

/// What the members of a communicator gave to one call.
#[derive(Debug)]
pub(super) struct Values<'m> {
    meeting: &'m Meeting,
    stand_ins: Vec<u32>,
    values: BTreeMap<u32, Vec<u8>>,
}

impl Values<'_> {
    /// What the member at a place gave.
    pub(super) fn of(&self, place: u32) -> &[u8] {
        let giver = self.stand_ins.get(place as usize).unwrap_or(&self.meeting.own);
        self.values.get(giver).map_or(&[], Vec::as_slice)
    }

    /// The values of all members combined by an `ncclRedOp_t`; `None` for types and operators that are not computed.
    pub(super) fn reduced(&self, dtype: DType, operator: i32) -> Option<Vec<u8>> {
        let weight = |place: u32| self.stand_ins.iter().filter(|giver| **giver == place).count();
        let parts: Vec<(usize, &[u8])> =
            self.values.iter().map(|(place, value)| (weight(*place), value.as_slice())).collect();
        reduce(&parts, dtype, operator)
    }
}

/// Combines values, each counted as often as its weight says.
fn reduce(parts: &[(usize, &[u8])], dtype: DType, operator: i32) -> Option<Vec<u8>> {
    macro_rules! combine {
        ($ty:ty, $add:expr, $multiply:expr, $scale:expr, $mean:expr) => {{
            const SIZE: usize = size_of::<$ty>();
            let read = |bytes: &[u8], at: usize| {
                let bytes = bytes.get(at..at + SIZE).and_then(|bytes| bytes.try_into().ok());
                <$ty>::from_le_bytes(bytes.unwrap_or([0; SIZE]))
            };
            let length = parts.first()?.1.len();
            let total: usize = parts.iter().map(|part| part.0).sum();
            let mut out = Vec::with_capacity(length);
            for at in (0..length).step_by(SIZE) {
                let values = || parts.iter().map(|(weight, bytes)| (*weight, read(bytes, at)));
                let sum = || values().map(|(weight, value)| $scale(value, weight)).reduce($add);
                let value = match operator {
                    0 => sum()?,
                    1 => values()
                        .flat_map(|(weight, value)| std::iter::repeat_n(value, weight))
                        .reduce($multiply)?,
                    2 => values().map(|(_, value)| value).reduce(|a, b| if b > a { b } else { a })?,
                    3 => values().map(|(_, value)| value).reduce(|a, b| if b < a { b } else { a })?,
                    4 => $mean(sum()?, total),
                    _ => return None,
                };
                out.extend(value.to_le_bytes());
            }
            Some(out)
        }};
    }
    macro_rules! integer {
        ($ty:ty) => {
            combine!(
                $ty,
                <$ty>::wrapping_add,
                <$ty>::wrapping_mul,
                |value: $ty, weight: usize| value.wrapping_mul(weight as $ty),
                |sum: $ty, total: usize| sum / (total as $ty).max(1)
            )
        };
    }
    macro_rules! float {
        ($ty:ty) => {
            combine!(
                $ty,
                |a: $ty, b: $ty| a + b,
                |a: $ty, b: $ty| a * b,
                |value: $ty, weight: usize| value * weight as $ty,
                |sum: $ty, total: usize| sum / total as $ty
            )
        };
    }
    match dtype {
        DType::I8 => integer!(i8),
        DType::U8 => integer!(u8),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::F32 => float!(f32),
        DType::F64 => float!(f64),
        DType::F16 | DType::Bf16 | DType::F8E4M3 | DType::F8E5M2 => {
            // As in the library, sums are of single precision; the result is rounded once.
            let wide: Vec<(usize, Vec<u8>)> = parts
                .iter()
                .map(|(weight, bytes)| {
                    let values = number::all(dtype, bytes).map(|value| (value as f32).to_le_bytes());
                    (*weight, values.flatten().collect())
                })
                .collect();
            let wide: Vec<(usize, &[u8])> =
                wide.iter().map(|(weight, bytes)| (*weight, bytes.as_slice())).collect();
            let sums = reduce(&wide, DType::F32, operator)?;
            Some(number::all(DType::F32, &sums).flat_map(|value| number::write(dtype, value)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[(usize, i64)], operator: i32, expect: Option<i64>) {
        let bytes: Vec<(usize, [u8; 8])> =
            parts.iter().map(|(weight, value)| (*weight, value.to_le_bytes())).collect();
        let parts: Vec<(usize, &[u8])> =
            bytes.iter().map(|(weight, value)| (*weight, value.as_slice())).collect();
        let found = reduce(&parts, DType::I64, operator);
        assert_eq!(found, expect.map(|value| value.to_le_bytes().to_vec()));
    }

    #[test]
    fn values_count_for_the_members_that_they_stand_for() {
        let parts = [(3, 2), (1, 10)];
        check(&parts, 0, Some(16));
        check(&parts, 1, Some(80));
        check(&parts, 2, Some(10));
        check(&parts, 3, Some(2));
        check(&parts, 4, Some(4));
        check(&parts, 5, None);
        check(&[], 0, None);
    }

    #[test]
    fn small_floats_are_added_in_single_precision() {
        let one = |dtype, value| number::write(dtype, value);
        for dtype in [DType::F16, DType::Bf16, DType::F8E4M3, DType::F8E5M2] {
            let (a, b) = (one(dtype, 1.5), one(dtype, 0.5));
            assert_eq!(reduce(&[(1, &a), (3, &b)], dtype, 0), Some(one(dtype, 3.0)), "{dtype:?}");
            assert_eq!(reduce(&[(1, &a), (1, &b)], dtype, 2), Some(a), "{dtype:?}");
        }
        let parts = [(2, 1.5_f32.to_le_bytes()), (2, 0.5_f32.to_le_bytes())];
        let parts: Vec<(usize, &[u8])> = parts.iter().map(|(n, bytes)| (*n, bytes.as_slice())).collect();
        assert_eq!(reduce(&parts, DType::F32, 4), Some(1.0_f32.to_le_bytes().to_vec()));
    }
}
