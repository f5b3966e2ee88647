//! Communicators of one process, whose other members may not exist.
//!
//! A communicator's *identity* is equal on all its members and different between communicators, so that traces of
//! different ranks can be matched: it is a hash of what all members agree on (the unique id, or the parent's
//! identity with the number of the split and its colour).

pub mod footprint;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trompe_base::DeviceIndex;

use self::footprint::{Need, Shape, Surroundings};
use crate::handle::{HandleTable, Kind, NotLive};

/// What a call needs to be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections<'a> {
    /// Most collectives.
    Rings,
    /// An all-reduce: rings, and trees between nodes.
    Trees,
    /// Messages: each peer, and whether it is on this node.
    Peers(&'a [(u32, bool)]),
}

/// A communicator as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Id in records.
    pub id: u32,
    /// Equal on all members.
    pub identity: u64,
    /// Number of members.
    pub size: u32,
    /// This member.
    pub rank: u32,
    /// The device it works on.
    pub device: DeviceIndex,
    /// Global ranks of the members in their order; empty when not known.
    pub members: Arc<[u32]>,
    /// Collective calls so far.
    sequence: u64,
    /// Sends to and receives from each peer so far.
    transfers: BTreeMap<(Transfer, u32), u64>,
    /// Communicators derived from it so far.
    derived: u64,
    /// Device memory that it takes.
    held: u64,
    /// Whether rings are connected, and to which peers there are connections.
    connected: (bool, BTreeSet<u32>),
    /// Whether trees are.
    branched: bool,
    /// Whether messages to other nodes have their pools.
    networked: bool,
}

impl Communicator {
    /// Device memory that it takes, in bytes.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }
}

/// Directions of a point-to-point call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transfer {
    /// To the peer.
    Send,
    /// From the peer.
    Receive,
}

/// What is known when a communicator is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Equal on all members.
    pub identity: u64,
    /// Number of members.
    pub size: u32,
    /// This member.
    pub rank: u32,
    /// The device it works on.
    pub device: DeviceIndex,
    /// Global ranks of the members in their order; empty when not known.
    pub members: Arc<[u32]>,
}

/// Communicators by handle.
#[derive(Debug)]
pub struct Communicators {
    table: HandleTable<Communicator>,
    next: u32,
    /// Scalars of the reduction operators made by the program, beside the library's own five; none once destroyed.
    operators: Vec<Option<f64>>,
    /// Unique ids made by this process.
    unique_ids: u64,
}

/// Number of `ncclRedOp_t` that the library defines; the program's own follow.
const BUILT_IN_OPERATORS: i32 = 5;

impl Default for Communicators {
    fn default() -> Self {
        Self::new()
    }
}

impl Communicators {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: HandleTable::new(Kind::Communicator), next: 1, operators: Vec::new(), unique_ids: 0 }
    }

    /// Makes a communicator and returns its handle.
    pub fn create(&mut self, membership: Membership) -> u64 {
        let Membership { identity, size, rank, device, members } = membership;
        let id = self.next;
        self.next += 1;
        self.table
            .insert(Communicator {
                id,
                identity,
                size,
                rank,
                device,
                members,
                sequence: 0,
                transfers: BTreeMap::new(),
                derived: 0,
                held: 0,
                connected: (false, BTreeSet::new()),
                branched: false,
                networked: false,
            })
            .0
    }

    /// A communicator.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get(&self, handle: u64) -> Result<&Communicator, NotLive> {
        self.table.get(handle)
    }

    /// Destroys a communicator; gives the device and the bytes that it held there.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<(DeviceIndex, u64), NotLive> {
        self.table.remove(handle).map(|communicator| (communicator.device, communicator.held))
    }

    /// Connects what a call needs and gives the bytes of device memory that are new for it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn connect(
        &mut self,
        handle: u64,
        around: &Surroundings,
        local: u32,
        wanted: Connections<'_>,
    ) -> Result<u64, NotLive> {
        let communicator = self.table.get_mut(handle)?;
        let shape = Shape { size: communicator.size, local };
        let once = |done: &mut bool, need| {
            if std::mem::replace(done, true) { 0 } else { footprint::at_first(around, shape, need) }
        };
        let bytes = match wanted {
            Connections::Rings => once(&mut communicator.connected.0, Need::Ring),
            Connections::Trees => {
                once(&mut communicator.connected.0, Need::Ring) + once(&mut communicator.branched, Need::Tree)
            }
            Connections::Peers(peers) => peers
                .iter()
                .filter(|(peer, _)| *peer != communicator.rank && communicator.connected.1.insert(*peer))
                .map(|(_, local)| match local {
                    true => footprint::at_first(around, shape, Need::Peer),
                    false => once(&mut communicator.networked, Need::Network),
                })
                .sum(),
        };
        communicator.held += bytes;
        Ok(bytes)
    }

    /// Notes bytes that a communicator holds beside those of its connections.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn hold(&mut self, handle: u64, bytes: u64) -> Result<(), NotLive> {
        self.table.get_mut(handle)?.held += bytes;
        Ok(())
    }

    /// Number of the next collective call on a communicator, from 0.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn next_sequence(&mut self, handle: u64) -> Result<u64, NotLive> {
        let communicator = self.table.get_mut(handle)?;
        communicator.sequence += 1;
        Ok(communicator.sequence - 1)
    }

    /// Number of the next send to (or receive from) a peer on a communicator, from 0. Members make different numbers
    /// of these, so they are counted apart from collective calls, which all members make alike.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn next_transfer(&mut self, handle: u64, direction: Transfer, peer: u32) -> Result<u64, NotLive> {
        let count = self.table.get_mut(handle)?.transfers.entry((direction, peer)).or_default();
        *count += 1;
        Ok(*count - 1)
    }

    /// Identity of a communicator derived from another one: all members of the parent call in the same order, and `color` tells
    /// apart what comes of one call.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn derive_identity(&mut self, parent: u64, color: i32) -> Result<u64, NotLive> {
        let communicator = self.table.get_mut(parent)?;
        communicator.derived += 1;
        let mut bytes = communicator.identity.to_le_bytes().to_vec();
        bytes.extend(communicator.derived.to_le_bytes());
        bytes.extend(color.to_le_bytes());
        Ok(identity_of(&bytes))
    }

    /// A new reduction operator that multiplies what a member gives by a scalar and then adds.
    pub fn create_operator(&mut self, scalar: f64) -> i32 {
        self.operators.push(Some(scalar));
        BUILT_IN_OPERATORS + self.operators.len() as i32 - 1
    }

    /// The scalar of an operator made by the program; `None` for the library's own and for what is no operator.
    #[must_use]
    pub fn scalar(&self, operator: i32) -> Option<f64> {
        let index = usize::try_from(operator.checked_sub(BUILT_IN_OPERATORS)?).ok()?;
        self.operators.get(index).copied().flatten()
    }

    /// Whether a number is an operator.
    #[must_use]
    pub fn is_operator(&self, operator: i32) -> bool {
        (0..BUILT_IN_OPERATORS).contains(&operator) || self.scalar(operator).is_some()
    }

    /// Forgets an operator made by the program; whether there was one.
    pub fn destroy_operator(&mut self, operator: i32) -> bool {
        let index = operator.checked_sub(BUILT_IN_OPERATORS).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.operators.get_mut(index)).and_then(Option::take).is_some()
    }

    /// Bytes of a unique id that no other call in this process, and no other process (`process` is its number), gives.
    pub fn unique_id(&mut self, process: u32, time: u64) -> [u8; 128] {
        self.unique_ids += 1;
        let mut id = [0; 128];
        for (index, chunk) in id.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mut seed = time.to_le_bytes().to_vec();
            seed.extend(process.to_le_bytes());
            seed.extend(self.unique_ids.to_le_bytes());
            seed.push(index as u8);
            *chunk = identity_of(&seed).to_le_bytes();
        }
        id
    }
}

/// A hash of bytes that does not change between builds: FNV-1a with a final mix, so that near inputs differ in all bits.
#[must_use]
pub fn identity_of(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(communicators: &mut Communicators, rank: u32) -> u64 {
        let device = DeviceIndex(0);
        communicators.create(Membership { identity: 7, size: 4, rank, device, members: [].into() })
    }

    #[test]
    fn members_derive_equal_identities_and_colours_differ() {
        let (mut first, mut second) = (Communicators::new(), Communicators::new());
        let (a, b) = (member(&mut first, 0), member(&mut second, 3));
        let of = |communicators: &mut Communicators, parent, color| {
            communicators.derive_identity(parent, color).unwrap()
        };
        let one = of(&mut first, a, 0);
        assert_eq!(one, of(&mut second, b, 0));
        let two = of(&mut first, a, 0);
        assert_ne!(one, two, "a second split is another communicator");
        assert_ne!(two, of(&mut second, b, 1));
    }

    #[test]
    fn calls_are_counted_per_communicator() {
        let mut communicators = Communicators::new();
        let (a, b) = (member(&mut communicators, 0), member(&mut communicators, 1));
        assert_eq!(communicators.next_sequence(a), Ok(0));
        assert_eq!(communicators.next_sequence(a), Ok(1));
        assert_eq!(communicators.next_sequence(b), Ok(0));
        assert_eq!(communicators.next_transfer(a, Transfer::Send, 1), Ok(0));
        assert_eq!(communicators.next_transfer(a, Transfer::Receive, 1), Ok(0));
        assert_eq!(communicators.next_transfer(a, Transfer::Send, 1), Ok(1));
        assert_eq!(communicators.next_sequence(a), Ok(2), "transfers are counted apart");
        assert!(communicators.destroy(a).is_ok());
        assert!(communicators.next_sequence(a).is_err());
        assert_ne!(communicators.unique_id(1, 2), communicators.unique_id(1, 2));
    }

    #[test]
    fn memory_is_taken_once_for_each_connection() {
        let around = Surroundings {
            version: 23_007,
            capability: 90,
            nvlink: true,
            nvswitch: true,
            buffer: footprint::DEFAULT_BUFFER,
            nvls: true,
        };
        let mut communicators = Communicators::new();
        let a = member(&mut communicators, 1);
        let ring = communicators.connect(a, &around, 4, Connections::Trees).unwrap();
        assert!(ring > 0);
        assert_eq!(communicators.connect(a, &around, 4, Connections::Trees), Ok(0));
        let peers = communicators
            .connect(a, &around, 4, Connections::Peers(&[(0, true), (1, true), (0, true)]))
            .unwrap();
        assert_eq!(peers, 384 << 20);
        let far =
            communicators.connect(a, &around, 2, Connections::Peers(&[(8, false), (9, false)])).unwrap();
        assert_eq!(far, 64 << 20, "one pool for all peers on other nodes");
        assert_eq!(communicators.connect(a, &around, 2, Connections::Peers(&[(10, false)])), Ok(0));
        assert_eq!(communicators.destroy(a), Ok((DeviceIndex(0), ring + peers + far)));
    }

    #[test]
    fn operators_have_scalars_until_they_are_destroyed() {
        let mut communicators = Communicators::new();
        let operator = communicators.create_operator(0.5);
        assert_eq!(operator, 5);
        assert!(
            communicators.is_operator(4) && communicators.is_operator(5) && !communicators.is_operator(6)
        );
        assert_eq!(communicators.scalar(operator), Some(0.5));
        assert!(communicators.destroy_operator(operator) && !communicators.destroy_operator(operator));
        assert!(!communicators.is_operator(operator) && !communicators.destroy_operator(0));
    }
}
