//! Making, asking and ending communicators.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use trompe_base::{DeviceIndex, UniqueId};
use trompe_cuda_abi::libraries::{NcclError, NcclUniqueId};
use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::communicator::{Membership, identity_of};
use trompe_trace::record::Record;

use super::board;
use crate::clock;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// Most members of a communicator that are believed.
const LARGEST: i32 = 1 << 24;
/// `NCCL_SPLIT_NOCOLOR`.
const NO_COLOR: i32 = -1;

/// `ncclGetVersion`.
pub(crate) fn version(call: &mut Call<'_>, version: Out<i32>) -> Outcome {
    let number = call.machine().node().map_or(0, |node| node.software.nccl);
    Ok(version.write(number as i32)?)
}

/// `ncclGetUniqueId`.
pub(crate) fn unique_id(_: &mut Call<'_>, id: Out<NcclUniqueId>) -> Outcome {
    let bytes = libraries().communicators.unique_id(std::process::id(), clock::ticks());
    board::remember_given(bytes);
    Ok(id.write(NcclUniqueId { bytes })?)
}

/// `ncclCommGetUniqueId`: an id for growing a communicator.
pub(crate) fn unique_id_of(call: &mut Call<'_>, communicator: u64, id: Out<NcclUniqueId>) -> Outcome {
    libraries().communicators.get(communicator)?;
    unique_id(call, id)
}

/// The members that a unique id tells, when trompe's own store made it.
fn members_of(id: &NcclUniqueId) -> Vec<u32> {
    let ranks = UniqueId::from_bytes(&id.bytes).and_then(|id| id.ranks()).unwrap_or_default();
    ranks.into_iter().map(|rank| rank.0).collect()
}

/// Makes a communicator whose members are not known.
fn make(
    call: &mut Call<'_>,
    identity: u64,
    place: (i32, i32),
    device: DeviceIndex,
) -> Result<u64, LibraryFailure> {
    make_of(call, identity, place, device, Vec::new())
}

/// Makes a communicator on a device, announces it, and returns its handle.
fn make_of(
    call: &mut Call<'_>,
    identity: u64,
    place: (i32, i32),
    device: DeviceIndex,
    members: Vec<u32>,
) -> Result<u64, LibraryFailure> {
    let (size, rank) = place;
    if !(1..=LARGEST).contains(&size) || !(0..size).contains(&rank) {
        return Err(LibraryFailure::InvalidValue);
    }
    call.activate(device)?;
    let (size, rank) = (size as u32, rank as u32);
    let known = members.len() == size as usize && members.get(rank as usize) == board::own_rank().as_ref();
    let members: Arc<[u32]> = if known { members.into() } else { Arc::new([]) };
    let (handle, id) = {
        let mut libraries = libraries();
        let handle = libraries.communicators.create(Membership {
            identity,
            size,
            rank,
            device,
            members: Arc::clone(&members),
        });
        (handle, libraries.communicators.get(handle)?.id)
    };
    if let Err(failure) = super::memory::charge_creation(call, handle) {
        let _ = libraries().communicators.destroy(handle);
        return Err(failure);
    }
    let members: Vec<u8> = members.iter().flat_map(|rank| rank.to_le_bytes()).collect();
    call.announce(&Record::Communicator { id, identity, size, rank, device, members: &members });
    Ok(handle)
}

/// `ncclCommInitRank`.
pub(crate) fn init(
    call: &mut Call<'_>,
    communicator: Out<u64>,
    size: i32,
    id: NcclUniqueId,
    rank: i32,
) -> Outcome {
    let device = call.device();
    let id = NcclUniqueId { bytes: board::agreed(id.bytes, size) };
    let handle = make_of(call, identity_of(&id.bytes), (size, rank), device, members_of(&id))?;
    Ok(communicator.write(handle)?)
}

/// `ncclCommInitRankConfig`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn init_with_config(
    call: &mut Call<'_>,
    communicator: Out<u64>,
    size: i32,
    id: NcclUniqueId,
    rank: i32,
    _config: u64,
) -> Outcome {
    init(call, communicator, size, id, rank)
}

/// `ncclCommInitRankScalable`: several unique ids, the same list on all members.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn init_scalable(
    call: &mut Call<'_>,
    communicator: Out<u64>,
    size: i32,
    rank: i32,
    id_count: i32,
    ids: In<NcclUniqueId>,
    _config: u64,
) -> Outcome {
    let count = usize::try_from(id_count).ok().filter(|count| (1..=1 << 16).contains(count));
    let ids = ids.read_many(count.ok_or(LibraryFailure::InvalidValue)?)?;
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.bytes).collect();
    let device = call.device();
    let members = ids.first().map(members_of).unwrap_or_default();
    let handle = make_of(call, identity_of(&bytes), (size, rank), device, members)?;
    Ok(communicator.write(handle)?)
}

/// `ncclCommInitAll`: one communicator per device of this process.
pub(crate) fn init_all(
    call: &mut Call<'_>,
    communicators: Out<u64>,
    count: i32,
    devices: In<i32>,
) -> Outcome {
    static CLIQUES: AtomicU32 = AtomicU32::new(0);
    let mut identity = std::process::id().to_le_bytes().to_vec();
    identity.extend(CLIQUES.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    for rank in 0..count {
        let device = if devices.is_null() { rank } else { devices.read_at(rank as usize)? };
        let device = call.checked_device(device)?;
        let handle = make(call, identity_of(&identity), (count, rank), device)?;
        communicators.write_at(rank as usize, handle)?;
    }
    Ok(())
}

/// `ncclCommSplit`. Who takes part is known to the absent members only; see [`super::group::trompe_split_hint`].
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn split(
    call: &mut Call<'_>,
    parent: u64,
    color: i32,
    _key: i32,
    communicator: Out<u64>,
    _config: u64,
) -> Outcome {
    let (identity, own) = {
        let mut libraries = libraries();
        let identity = libraries.communicators.derive_identity(parent, color)?;
        (identity, libraries.communicators.get(parent)?.clone())
    };
    if color == NO_COLOR {
        return Ok(communicator.write(0)?);
    }
    let (place, members) = match super::group::take_split_hint() {
        Some(hint) => ((hint.size, hint.rank), hint.members),
        None => ((own.size as i32, own.rank as i32), own.members.to_vec()),
    };
    let handle = make_of(call, identity, place, own.device, members)?;
    Ok(communicator.write(handle)?)
}

/// `ncclCommShrink`: the members that are not excluded keep their order.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn shrink(
    call: &mut Call<'_>,
    parent: u64,
    excluded: In<i32>,
    excluded_count: i32,
    communicator: Out<u64>,
    _config: u64,
    _flags: i32,
) -> Outcome {
    let excluded = excluded.read_many(usize::try_from(excluded_count).unwrap_or(0))?;
    let (identity, own) = {
        let mut libraries = libraries();
        let identity = libraries.communicators.derive_identity(parent, -2)?;
        (identity, libraries.communicators.get(parent)?.clone())
    };
    let rank = own.rank as i32;
    if excluded.contains(&rank) {
        return Err(LibraryFailure::InvalidValue);
    }
    let before = excluded.iter().filter(|other| **other < rank).count() as i32;
    let handle = make(call, identity, (own.size as i32 - excluded.len() as i32, rank - before), own.device)?;
    Ok(communicator.write(handle)?)
}

/// `ncclCommGrow`: members of the old communicator keep their rank (`rank` is -1 for them), new ones name theirs.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn grow(
    call: &mut Call<'_>,
    parent: u64,
    size: i32,
    id: In<NcclUniqueId>,
    rank: i32,
    communicator: Out<u64>,
    _config: u64,
) -> Outcome {
    let own = if parent == 0 { None } else { Some(libraries().communicators.get(parent)?.clone()) };
    let identity = match (&own, id.is_null()) {
        (_, false) => identity_of(&id.read()?.bytes),
        (Some(_), true) => libraries().communicators.derive_identity(parent, -3)?,
        (None, true) => return Err(LibraryFailure::InvalidValue),
    };
    let rank = own.as_ref().map_or(rank, |own| own.rank as i32);
    let device = own.map_or(call.device(), |own| own.device);
    let handle = make(call, identity, (size, rank), device)?;
    Ok(communicator.write(handle)?)
}

/// `ncclCommFinalize`, `ncclCommResume`.
pub(crate) fn check(_: &mut Call<'_>, communicator: u64) -> Outcome {
    libraries().communicators.get(communicator)?;
    Ok(())
}

/// `ncclCommRevoke`, `ncclCommSuspend`.
pub(crate) fn check_with(call: &mut Call<'_>, communicator: u64, _flags: i32) -> Outcome {
    check(call, communicator)
}

/// `ncclCommDestroy`, `ncclCommAbort`. Ending no communicator is no error, as in the library.
pub(crate) fn destroy(call: &mut Call<'_>, communicator: u64) -> Outcome {
    if communicator == 0 {
        return Ok(());
    }
    let (device, held) = libraries().communicators.destroy(communicator)?;
    super::memory::give_back(call, device, held)
}

/// `ncclCommCount`.
pub(crate) fn count(_: &mut Call<'_>, communicator: u64, count: Out<i32>) -> Outcome {
    let size = libraries().communicators.get(communicator)?.size;
    Ok(count.write(size as i32)?)
}

/// `ncclCommCuDevice`.
pub(crate) fn device(_: &mut Call<'_>, communicator: u64, device: Out<i32>) -> Outcome {
    let index = libraries().communicators.get(communicator)?.device;
    Ok(device.write(index.0 as i32)?)
}

/// `ncclCommUserRank`.
pub(crate) fn rank(_: &mut Call<'_>, communicator: u64, rank: Out<i32>) -> Outcome {
    let own = libraries().communicators.get(communicator)?.rank;
    Ok(rank.write(own as i32)?)
}

/// `ncclCommGetAsyncError`: everything went well.
pub(crate) fn async_error(_: &mut Call<'_>, communicator: u64, error: Out<i32>) -> Outcome {
    libraries().communicators.get(communicator)?;
    Ok(error.write(0)?)
}

/// `ncclCommMemStats`: of the device memory that a communicator takes, nothing is ever suspended.
pub(crate) fn memory_statistic(
    _: &mut Call<'_>,
    communicator: u64,
    statistic: i32,
    value: Out<u64>,
) -> Outcome {
    let held = libraries().communicators.get(communicator)?.held();
    // `ncclCommMemStat_t`: memory that can be suspended, whether it is, memory that cannot, and all.
    let answer = match statistic {
        0 | 1 => 0,
        2 | 3 => held,
        _ => return Err(LibraryFailure::InvalidValue),
    };
    Ok(value.write(answer)?)
}

/// `ncclGetErrorString`.
pub(crate) fn error_text(_: &mut Call<'_>, code: i32) -> u64 {
    let text = if code == 0 { Some(c"no error") } else { NcclError::text_of(code) };
    text.unwrap_or(c"unknown result code").as_ptr() as u64
}

/// `ncclGetLastError`: nothing to add to the code.
pub(crate) fn last_error(_: &mut Call<'_>, _communicator: u64) -> u64 {
    c"".as_ptr() as u64
}

/// `ncclResetDebugInit`.
pub(crate) fn nothing(_: &mut Call<'_>) {}

/// `ncclRedOpCreatePreMulSum`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn create_operator(
    call: &mut Call<'_>,
    operator: Out<i32>,
    scalar: u64,
    dtype: i32,
    residence: i32,
    communicator: u64,
) -> Outcome {
    if !(0..=1).contains(&residence) {
        return Err(LibraryFailure::InvalidValue);
    }
    let dtype = super::collective::dtype(dtype).ok_or(LibraryFailure::InvalidValue)?;
    libraries().communicators.get(communicator)?;
    let bytes = super::mirror::read(call, scalar, dtype.size()).ok_or(LibraryFailure::InvalidValue)?;
    let value = super::number::read(dtype, &bytes).ok_or(LibraryFailure::InvalidValue)?;
    let made = libraries().communicators.create_operator(value);
    Ok(operator.write(made)?)
}

/// `ncclRedOpDestroy`.
pub(crate) fn destroy_operator(call: &mut Call<'_>, operator: i32, communicator: u64) -> Outcome {
    check(call, communicator)?;
    if libraries().communicators.destroy_operator(operator) {
        Ok(())
    } else {
        Err(LibraryFailure::InvalidValue)
    }
}
