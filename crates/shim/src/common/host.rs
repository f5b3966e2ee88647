//! Functions of the program that a stream calls.

use trompe_cuda_abi::runtime::Address;
use trompe_device::graph::{Effect, NodeKind};
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// `cudaLaunchHostFunc`, `cuLaunchHostFunc`.
pub(crate) fn launch(call: &mut Call<'_>, stream: Address, function: Address, argument: Address) -> Outcome {
    if function == 0 {
        return Err(Failure::InvalidValue);
    }
    let mut machine = call.machine();
    let stream = call.stream(&machine, stream)?;
    call.record(&Record::HostFunction { api: call.api.0, stream: stream.id });
    if let Some(capture) = stream.capture {
        let effect = Effect::Host { function, argument };
        machine.graphs.enqueue(capture, stream.id, NodeKind::Host, Some(effect));
        return Ok(());
    }
    machine.progress.enqueue(stream.id, stream.device);
    drop(machine);
    call.settle();
    run(function, argument);
    Ok(())
}

/// `cudaStreamAddCallback`, `cuStreamAddCallback`.
pub(crate) fn add_callback(
    call: &mut Call<'_>,
    handle: Address,
    function: Address,
    argument: Address,
    _: u32,
) -> Outcome {
    if function == 0 {
        return Err(Failure::InvalidValue);
    }
    let machine = call.machine();
    let stream = call.stream(&machine, handle)?;
    if stream.capture.is_some() {
        return Err(trompe_cuda_abi::runtime::RuntimeError::STREAM_CAPTURE_UNSUPPORTED.into());
    }
    drop(machine);
    call.record(&Record::HostFunction { api: call.api.0, stream: stream.id });
    call.settle();
    // SAFETY: the caller hands over a function of this type, to be called with its own argument.
    #[expect(unsafe_code, reason = "calls a function of the program")]
    unsafe {
        let function: extern "C" fn(u64, i32, u64) = std::mem::transmute(function as usize);
        function(handle, 0, argument);
    }
    Ok(())
}

/// Calls a function of the program with its argument. No lock of the library may be held.
pub(crate) fn run(function: u64, argument: u64) {
    // SAFETY: the program handed over a function of this type, to be called with its own argument.
    #[expect(unsafe_code, reason = "calls a function of the program")]
    unsafe {
        let function: extern "C" fn(u64) = std::mem::transmute(function as usize);
        function(argument);
    }
}
