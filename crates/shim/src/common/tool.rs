//! Marks for profilers, and log callbacks.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;
use trompe_trace::record::{MarkerKind, Record};

use super::Outcome;
use crate::door::{self, Call};

/// `cudaProfilerStart`, `cuProfilerStart`.
pub(crate) fn profiler_start(call: &mut Call<'_>) -> Outcome {
    call.announce(&Record::Marker { kind: MarkerKind::Instant, text: "cudaProfilerStart" });
    Ok(())
}

/// `cudaProfilerStop`, `cuProfilerStop`.
pub(crate) fn profiler_stop(call: &mut Call<'_>) -> Outcome {
    call.announce(&Record::Marker { kind: MarkerKind::Instant, text: "cudaProfilerStop" });
    Ok(())
}

/// `cuLogsRegisterCallback`: nothing is ever logged.
pub(crate) fn register_log(_: &mut Call<'_>, _: Address, _: Address, handle: Out<u64>) -> Outcome {
    handle.write_if_given(door::opaque_handle().0);
    Ok(())
}

/// `cuLogsUnregisterCallback`.
pub(crate) fn unregister_log(_: &mut Call<'_>, _: Address) -> Outcome {
    Ok(())
}
