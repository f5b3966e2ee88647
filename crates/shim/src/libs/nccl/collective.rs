//! Collective and point-to-point calls.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_base::DType;
use trompe_device::communicator::{Communicator, Transfer};
use trompe_trace::record::{Collective, CollectiveKind, Record};

use super::board::{self, Meeting, Values};
use super::group;
use super::memory;
use super::mirror::{self, Pending, Role};
use super::number;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, enqueue, libraries};

/// `ncclSum`.
const SUM: i32 = 0;

/// The element type with the `ncclDataType_t` number; unsigned integers count as signed ones of their size.
pub(super) const fn dtype(number: i32) -> Option<DType> {
    Some(match number {
        0 => DType::I8,
        1 => DType::U8,
        2 | 3 => DType::I32,
        4 | 5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        9 => DType::Bf16,
        10 => DType::F8E4M3,
        11 => DType::F8E5M2,
        _ => return None,
    })
}

/// What all calls have.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: CollectiveKind,
    count: usize,
    dtype: i32,
    operator: i32,
    peer: i32,
    communicator: u64,
    stream: u64,
}

/// A recorded call: the communicator and the size of its buffer.
struct Made {
    communicator: Communicator,
    sequence: u64,
    dtype: DType,
    bytes: u64,
    /// Nothing happens now: the stream captures a graph.
    captured: bool,
    /// What an operator of the program multiplies this member's values by before they are added.
    scalar: Option<f64>,
}

impl Made {
    /// The operator by which values of all members are combined.
    const fn combining(&self, operator: i32) -> i32 {
        if self.scalar.is_some() { SUM } else { operator }
    }
}

fn make(call: &mut Call<'_>, request: Request) -> Result<Made, LibraryFailure> {
    let dtype = dtype(request.dtype).ok_or(LibraryFailure::InvalidValue)?;
    let peer = u32::try_from(request.peer).map_err(|_| LibraryFailure::InvalidValue)?;
    let (communicator, sequence) = {
        let communicators = &mut libraries().communicators;
        let handle = request.communicator;
        let communicator = communicators.get(handle)?.clone();
        if peer >= communicator.size {
            return Err(LibraryFailure::InvalidValue);
        }
        let sequence = match request.kind {
            CollectiveKind::Send => communicators.next_transfer(handle, Transfer::Send, peer)?,
            CollectiveKind::Recv => communicators.next_transfer(handle, Transfer::Receive, peer)?,
            _ => communicators.next_sequence(handle)?,
        };
        (communicator, sequence)
    };
    let reduces = matches!(
        request.kind,
        CollectiveKind::AllReduce | CollectiveKind::Reduce | CollectiveKind::ReduceScatter
    );
    if reduces && !libraries().communicators.is_operator(request.operator) {
        return Err(LibraryFailure::InvalidValue);
    }
    memory::charge_call(call, request.communicator, request.kind, peer)?;
    let count = request.count as u64;
    let (stream, captured) = enqueue(call, request.stream)?;
    let collective = Collective {
        kind: request.kind,
        communicator: communicator.id,
        sequence,
        count,
        dtype,
        operator: u32::try_from(request.operator).unwrap_or(0),
        peer,
        group: group::current(),
    };
    call.record(&Record::Collective { api: call.api.0, stream, collective });
    let scalar = reduces.then(|| libraries().communicators.scalar(request.operator)).flatten();
    let bytes = count.saturating_mul(dtype.size());
    Ok(Made { communicator, sequence, dtype, bytes, captured, scalar })
}

/// Meets the members that exist over `bytes` at `send`; what `answer` makes of their values goes to `receive`. False
/// when nobody can be met, the content is large, or there is no answer: then the call is answered without them.
fn met(
    call: &Call<'_>, made: &Made, send: (u64, u64), receive: Option<u64>,
    answer: impl FnOnce(&Values<'_>) -> Option<Vec<u8>>,
) -> bool {
    if made.captured || send.1 > board::SMALL {
        return false;
    }
    let Some(meeting) = Meeting::of(&made.communicator) else { return false };
    let Some(mut own) = mirror::read(call, send.0, send.1) else { return false };
    if let Some(scalar) = made.scalar {
        number::scale(made.dtype, &mut own, scalar);
    }
    let Some(values) = meeting.all(made.sequence, &own) else { return false };
    match receive {
        None => true,
        Some(at) => answer(&values).is_some_and(|bytes| mirror::write(call, at, &bytes)),
    }
}

/// Where a call with a root writes on this member.
fn at_root(made: &Made, root: i32, receive: u64) -> Option<u64> {
    (made.communicator.rank == root as u32).then_some(receive)
}

/// The parts of all members in their order, from `begin` for `bytes`.
fn gathered(values: &Values<'_>, size: u32, begin: u64, bytes: u64) -> Option<Vec<u8>> {
    let (begin, end) = (begin as usize, (begin + bytes) as usize);
    (0..size).map(|place| values.of(place).get(begin..end)).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
}

/// `ncclAllReduce`.
pub(crate) fn all_reduce(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, operator: i32, communicator: u64,
    stream: u64,
) -> Outcome {
    let kind = CollectiveKind::AllReduce;
    let made = make(call, Request { kind, count, dtype, operator, peer: 0, communicator, stream })?;
    let reduced = |values: &Values<'_>| values.reduced(made.dtype, made.combining(operator));
    if !made.captured && !met(call, &made, (send, made.bytes), Some(receive), reduced) {
        mirror::copy(call, receive, send, made.bytes);
        if made.combining(operator) == SUM {
            let factor = made.scalar.unwrap_or(1.0) * f64::from(made.communicator.size);
            mirror::multiply(call, receive, count as u64, made.dtype, factor);
        }
    }
    Ok(())
}

/// `ncclReduce`.
pub(crate) fn reduce(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, operator: i32, root: i32,
    communicator: u64, stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Reduce;
    let made = make(call, Request { kind, count, dtype, operator, peer: root, communicator, stream })?;
    let reduced = |values: &Values<'_>| values.reduced(made.dtype, made.combining(operator));
    let met = met(call, &made, (send, made.bytes), at_root(&made, root, receive), reduced);
    if !met && !made.captured && made.communicator.rank == root as u32 {
        mirror::copy(call, receive, send, made.bytes);
        if made.combining(operator) == SUM {
            let factor = made.scalar.unwrap_or(1.0) * f64::from(made.communicator.size);
            mirror::multiply(call, receive, count as u64, made.dtype, factor);
        }
    }
    Ok(())
}

fn defer(call: &mut Call<'_>, made: &Made, role: Role, peer: i32, request: (u64, u64, u64)) {
    let (communicator, send, receive) = request;
    if made.captured {
        return;
    }
    let (own, peer) = (made.communicator.rank, peer as u32);
    group::defer(call, Pending { sequence: made.sequence, role, communicator, own, peer, send, receive, bytes: made.bytes });
}

/// `ncclBroadcast`.
pub(crate) fn broadcast(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, root: i32, communicator: u64,
    stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Broadcast;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer: root, communicator, stream })?;
    defer(call, &made, Role::Broadcast, root, (communicator, send, receive));
    Ok(())
}

/// `ncclBcast`.
pub(crate) fn broadcast_in_place(
    call: &mut Call<'_>, buffer: u64, count: usize, dtype: i32, root: i32, communicator: u64, stream: u64,
) -> Outcome {
    broadcast(call, buffer, buffer, count, dtype, root, communicator, stream)
}

/// `ncclAllGather`.
pub(crate) fn all_gather(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, communicator: u64, stream: u64,
) -> Outcome {
    let kind = CollectiveKind::AllGather;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer: 0, communicator, stream })?;
    let all = |values: &Values<'_>| gathered(values, made.communicator.size, 0, made.bytes);
    if !made.captured && !met(call, &made, (send, made.bytes), Some(receive), all) {
        mirror::gather(call, receive, send, (made.bytes, made.communicator.size), made.dtype);
    }
    Ok(())
}

/// `ncclReduceScatter`.
pub(crate) fn reduce_scatter(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, operator: i32, communicator: u64,
    stream: u64,
) -> Outcome {
    let kind = CollectiveKind::ReduceScatter;
    let made = make(call, Request { kind, count, dtype, operator, peer: 0, communicator, stream })?;
    let size = u64::from(made.communicator.size);
    let begin = u64::from(made.communicator.rank).saturating_mul(made.bytes);
    let part = |values: &Values<'_>| {
        let reduced = values.reduced(made.dtype, made.combining(operator))?;
        reduced.get(begin as usize..(begin + made.bytes) as usize).map(<[u8]>::to_vec)
    };
    if !made.captured && !met(call, &made, (send, made.bytes.saturating_mul(size)), Some(receive), part) {
        let own = send.saturating_add(made.bytes.saturating_mul(u64::from(made.communicator.rank)));
        mirror::copy(call, receive, own, made.bytes);
        if made.combining(operator) == SUM {
            let factor = made.scalar.unwrap_or(1.0) * f64::from(made.communicator.size);
            mirror::multiply(call, receive, count as u64, made.dtype, factor);
        }
    }
    Ok(())
}

/// `ncclAlltoAll`: what goes to a rank comes back from it.
pub(crate) fn all_to_all(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, communicator: u64, stream: u64,
) -> Outcome {
    let kind = CollectiveKind::AllToAll;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer: 0, communicator, stream })?;
    let size = made.communicator.size;
    let begin = u64::from(made.communicator.rank).saturating_mul(made.bytes);
    let parts = |values: &Values<'_>| gathered(values, size, begin, made.bytes);
    let total = made.bytes.saturating_mul(u64::from(size));
    if !made.captured && !met(call, &made, (send, total), Some(receive), parts) {
        mirror::copy(call, receive, send, made.bytes.saturating_mul(u64::from(made.communicator.size)));
    }
    Ok(())
}

/// `ncclGather`.
pub(crate) fn gather(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, root: i32, communicator: u64,
    stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Gather;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer: root, communicator, stream })?;
    let all = |values: &Values<'_>| gathered(values, made.communicator.size, 0, made.bytes);
    let met = met(call, &made, (send, made.bytes), at_root(&made, root, receive), all);
    if !met && !made.captured && made.communicator.rank == root as u32 {
        mirror::gather(call, receive, send, (made.bytes, made.communicator.size), made.dtype);
    }
    Ok(())
}

/// `ncclScatter`: this member's part, which only the root has.
pub(crate) fn scatter(
    call: &mut Call<'_>, send: u64, receive: u64, count: usize, dtype: i32, root: i32, communicator: u64,
    stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Scatter;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer: root, communicator, stream })?;
    if !made.captured && made.communicator.rank == root as u32 {
        let own = send.saturating_add(made.bytes.saturating_mul(u64::from(made.communicator.rank)));
        mirror::copy(call, receive, own, made.bytes);
    }
    Ok(())
}

/// `ncclSend`.
pub(crate) fn send(
    call: &mut Call<'_>, send: u64, count: usize, dtype: i32, peer: i32, communicator: u64, stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Send;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer, communicator, stream })?;
    defer(call, &made, Role::Send, peer, (communicator, send, 0));
    Ok(())
}

/// `ncclRecv`.
pub(crate) fn receive(
    call: &mut Call<'_>, receive: u64, count: usize, dtype: i32, peer: i32, communicator: u64, stream: u64,
) -> Outcome {
    let kind = CollectiveKind::Recv;
    let made = make(call, Request { kind, count, dtype, operator: 0, peer, communicator, stream })?;
    defer(call, &made, Role::Receive, peer, (communicator, 0, receive));
    Ok(())
}
