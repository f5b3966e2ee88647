//! Marks for profilers.

use trompe_trace::record::{MarkerKind, Record};

use super::Outcome;
use crate::door::Call;

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
