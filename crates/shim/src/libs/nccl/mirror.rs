//! Content of collectives, as if every absent rank were a copy of this one.

use trompe_base::DType;
use trompe_cuda_abi::pointer::In;
use trompe_device::memory::Content;

use super::{board, number};
use crate::common::copy::{PERFORMED, move_bytes, perform};
use crate::door::Call;
use crate::process::HostMachine;

/// Gathers of known integers and bytes (lengths, pickled objects) are done up to this size in all. What kernels left in
/// them is not known (activations in FP8 are sent as bytes), and is not moved.
const GATHERED: u64 = 256 << 20;
/// Sums up to this size are multiplied by the number of ranks.
const SUMMED: u64 = 64 << 10;

/// A call whose content depends on others of its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// The call's number in its communicator.
    pub(super) sequence: u64,
    pub(super) role: Role,
    pub(super) communicator: u64,
    /// This member.
    pub(super) own: u32,
    /// Root or peer.
    pub(super) peer: u32,
    pub(super) send: u64,
    pub(super) receive: u64,
    pub(super) bytes: u64,
}

/// Which call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Broadcast,
    Send,
    Receive,
}

/// Copies `bytes`, unless they are the same.
pub(super) fn copy(call: &Call<'_>, to: u64, from: u64, bytes: u64) {
    let mut machine = call.machine();
    copy_in(&mut machine, to, from, bytes);
}

/// The bytes at an address; `None` when it cannot be read. No bytes can be read anywhere: empty tensors have no address.
pub(super) fn read(call: &Call<'_>, from: u64, bytes: u64) -> Option<Vec<u8>> {
    if bytes == 0 {
        return Some(Vec::new());
    }
    let machine = call.machine();
    if from == 0 || !machine.memory.is_accessible(from, bytes) {
        return None;
    }
    In::<u8>::new(from as usize).read_many(usize::try_from(bytes).ok()?).ok()
}

/// Writes bytes to an address; whether that could be done. No bytes can be written anywhere.
pub(super) fn write(call: &Call<'_>, to: u64, bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let mut machine = call.machine();
    let length = bytes.len() as u64;
    if to == 0 || !machine.memory.is_accessible(to, length) {
        return false;
    }
    if machine.memory.device_of(to).is_some() {
        machine.memory.mark_written(to, length);
        machine.memory.note_content(to, length, Content::True);
    }
    move_bytes(to, bytes.as_ptr() as u64, length);
    true
}

fn copy_in(machine: &mut HostMachine, to: u64, from: u64, bytes: u64) {
    let known = machine.memory.is_accessible(to, bytes) && machine.memory.is_accessible(from, bytes);
    if to != from && to != 0 && from != 0 && bytes > 0 && known {
        perform(machine, to, from, bytes);
    }
}

/// Fills the gathered buffer with copies of this member's part.
pub(super) fn gather(call: &Call<'_>, to: u64, from: u64, part: (u64, u32), dtype: DType) {
    let (bytes, count) = part;
    let total = bytes.saturating_mul(u64::from(count));
    let mut machine = call.machine();
    let control = matches!(dtype, DType::I8 | DType::U8 | DType::I32 | DType::I64)
        && total <= GATHERED
        && machine.memory.content(from, bytes) != Content::Unknown;
    if !machine.memory.is_accessible(to, total) || !machine.memory.is_accessible(from, bytes) {
        return;
    }
    if total > PERFORMED && !control {
        machine.memory.freshen(to, total);
        return;
    }
    if machine.memory.device_of(to).is_some() {
        let content = machine.memory.content(from, bytes);
        machine.memory.mark_written(to, total);
        machine.memory.note_content(to, total, content);
    }
    for index in 0..u64::from(count) {
        if to + index * bytes != from {
            move_bytes(to + index * bytes, from, bytes);
        }
    }
}

/// Multiplies small sums by the number of ranks (and an operator's scalar).
pub(super) fn multiply(call: &Call<'_>, at: u64, count: u64, dtype: DType, factor: f64) {
    let bytes = count.saturating_mul(dtype.size());
    if factor == 1.0 || bytes == 0 || bytes > SUMMED {
        return;
    }
    if let Some(mut values) = read(call, at, bytes) {
        let content = call.machine().memory.content(at, bytes);
        number::scale(dtype, &mut values, factor);
        write(call, at, &values);
        call.machine().memory.note_content(at, bytes, content);
    }
}

/// Answers the calls of a group.
pub(super) fn settle(call: &mut Call<'_>, calls: &[Pending]) {
    let meetings = board::give(call, calls);
    for (pending, meeting) in calls.iter().zip(&meetings) {
        if board::receive(call, pending, meeting.as_ref()) {
            continue;
        }
        let mut machine = call.machine();
        let same =
            |other: &&Pending| other.communicator == pending.communicator && other.bytes == pending.bytes;
        match pending.role {
            // What another root sends is what this member sends as a root (uneven gathers are made of these).
            Role::Broadcast => {
                let roots = |other: &&Pending| other.role == Role::Broadcast && other.peer == other.own;
                let source = calls.iter().filter(same).find(roots);
                if let Some(source) = source {
                    copy_in(&mut machine, pending.receive, source.send, pending.bytes);
                }
            }
            // What a peer sends here is what this member sends to it, or else to anyone.
            Role::Receive => {
                let sends = || calls.iter().filter(same).filter(|other| other.role == Role::Send);
                match sends().find(|other| other.peer == pending.peer).or_else(|| sends().next()) {
                    Some(source) => copy_in(&mut machine, pending.receive, source.send, pending.bytes),
                    None if machine.memory.device_of(pending.receive).is_some() => {
                        machine.memory.freshen(pending.receive, pending.bytes);
                    }
                    None => {}
                }
            }
            Role::Send => {}
        }
    }
}
