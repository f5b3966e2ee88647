//! NVSHMEM's host functions, for a world of one member.

use trompe_cuda_abi::pointer::Out;
use trompe_device::memory::BlockKind;

use super::{Outcome, record_library};
use crate::common::copy::perform;
use crate::door::Call;

/// `nvshmem_malloc`: device memory, or null when there is none left.
pub(crate) fn allocate(call: &mut Call<'_>, bytes: usize) -> u64 {
    let device = call.device();
    if bytes == 0 || call.activate(device).is_err() {
        return 0;
    }
    call.machine().memory.allocate(device, bytes as u64).unwrap_or(0)
}

/// `nvshmem_free`.
pub(crate) fn free(call: &mut Call<'_>, address: u64) {
    // An address that was never allocated has no error to answer with.
    let _ = call.machine().memory.free(address, BlockKind::is_freed_as_device);
}

/// `nvshmem_info_get_version`: the OpenSHMEM version that NVSHMEM 3.7 follows.
pub(crate) fn version(_: &mut Call<'_>, major: Out<i32>, minor: Out<i32>) {
    major.write_if_given(1);
    minor.write_if_given(3);
}

/// `nvshmem_ptr`: the own member's memory is where it is; there is no other member.
pub(crate) fn pointer(_: &mut Call<'_>, address: u64, member: i32) -> u64 {
    if member == 0 { address } else { 0 }
}

/// `nvshmemx_mc_ptr`: no multicast.
pub(crate) fn multicast_pointer(_: &mut Call<'_>, _team: i32, _address: u64) -> u64 {
    0
}

/// `nvshmem_my_pe`.
pub(crate) fn own_member(_: &mut Call<'_>) -> i32 {
    0
}

/// `nvshmem_n_pes`.
pub(crate) fn member_count(_: &mut Call<'_>) -> i32 {
    1
}

/// `nvshmem_team_n_pes`.
pub(crate) fn team_member_count(_: &mut Call<'_>, _team: i32) -> i32 {
    1
}

fn copy(call: &mut Call<'_>, to: u64, from: u64, bytes: u64, stream: u64) -> Outcome {
    {
        let mut machine = call.machine();
        if machine.memory.is_accessible(to, bytes) && machine.memory.is_accessible(from, bytes) {
            perform(&mut machine, to, from, bytes);
        }
    }
    record_library(call, stream, [bytes, bytes], "nvshmem transfer")
}

/// `nvshmemx_putmem_on_stream`, `nvshmemx_getmem_on_stream`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn transfer(call: &mut Call<'_>, to: u64, from: u64, bytes: usize, _member: i32, stream: u64) {
    // The function answers nothing, so a dead stream has no error to go to.
    let _ = copy(call, to, from, bytes as u64, stream);
}

/// `nvshmemx_alltoallmem_on_stream`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn all_to_all(
    call: &mut Call<'_>,
    _team: i32,
    to: u64,
    from: u64,
    count: usize,
    stream: u64,
) -> Outcome {
    copy(call, to, from, count as u64, stream)
}

/// `nvshmemx_broadcastmem_on_stream`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn broadcast(
    call: &mut Call<'_>,
    team: i32,
    to: u64,
    from: u64,
    count: usize,
    _root: i32,
    stream: u64,
) -> Outcome {
    all_to_all(call, team, to, from, count, stream)
}
