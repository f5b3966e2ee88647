//! Kernel launches.

use std::collections::BTreeMap;

use trompe_cuda_abi::pointer::In;
use trompe_cuda_abi::runtime::{Address, Dim3, RuntimeError};
use trompe_device::graph::{Effect, NodeKind};
use trompe_device::kernel::{Kernel, Semantics};
use trompe_device::occupancy::Demand;
use trompe_device::progress::Work;
use trompe_hardware::Compute;
use trompe_trace::record::Record;

use super::{Outcome, fill, function};
use crate::door::Call;
use crate::failure::Failure;
use crate::observe;
use crate::process::HostMachine;
use crate::sink;

/// A launch request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    /// Kernel handle.
    pub(crate) kernel: Address,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u64,
    /// Stream handle.
    pub(crate) stream: Address,
    /// One pointer per parameter.
    pub(crate) parameters: In<u64>,
    /// Instead of `parameters`: a packed buffer and its size (`CU_LAUNCH_PARAM_BUFFER_POINTER`).
    pub(crate) packed: Option<(Address, u64)>,
}

/// Fills by kernels are really done up to this many bytes.
const FILL_PERFORMED: u64 = 64 << 10;
/// Largest grid in y and z.
const MAX_GRID_YZ: u32 = 65_535;

/// Checks, does what little is done, and records.
pub(crate) fn launch(call: &mut Call<'_>, request: Launch) -> Outcome {
    let mut guard = call.machine();
    if !guard.is_active(call.device()) {
        drop(guard);
        call.activate(call.device())?;
        guard = call.machine();
    }
    let stream = call.stream(&guard, request.stream)?;
    let machine: &mut HostMachine = &mut guard;
    function::learn(machine, request.kernel)?;
    let compute = &machine.sheet().ok_or(Failure::NoDevice)?.compute;
    let kernel = machine.kernels.get(request.kernel)?;
    check_geometry(compute, kernel, &request)?;

    let mut values = call.thread.scratch.take();
    values.clear();
    copy_parameters(&mut values, kernel, &request)?;
    let semantics = kernel.semantics.filter(|_| observe::reuse_is_known());
    let effect = semantics.and_then(|semantics| effect_of(semantics, kernel, &values));
    if call.recording() {
        let unknown = kernel.announced != sink::generation();
        if unknown {
            announce(call, kernel);
        }
        call.record(&Record::Launch {
            api: call.api.0,
            kernel: kernel.id,
            stream: stream.id,
            grid: [request.grid.x, request.grid.y, request.grid.z],
            block: [request.block.x, request.block.y, request.block.z],
            shared: u32::try_from(request.shared).unwrap_or(u32::MAX),
            parameters: &values,
        });
        if unknown {
            machine.kernels.get_mut(request.kernel)?.announced = sink::generation();
        }
    }
    if stream.capture.is_none() {
        let (work, ns) = pace(machine, request.kernel, &request, &values)?;
        machine.progress.enqueue_work(stream.id, stream.device, work, ns);
    }
    call.thread.scratch.replace(values);
    match (stream.capture, effect) {
        (Some(capture), effect) => machine.graphs.enqueue(capture, stream.id, NodeKind::Kernel, effect),
        (None, Some(Effect::Fill { to, pattern, count })) => fill::perform(machine, to, &pattern, count),
        (None, _) => {}
    }
    Ok(())
}

/// What a launch is thought to take. Only kernels that the program made itself are compared with each other by measuring;
/// the framework's own get a plain time, so that a launch costs no more for it.
fn pace(
    machine: &HostMachine,
    kernel: Address,
    request: &Launch,
    values: &[u8],
) -> Result<(Work, u64), Failure> {
    const PLAIN_NS: u64 = 5_000;
    let kernel = machine.kernels.get(kernel)?;
    let (Some(info), Some(sheet), true) = (kernel.info(), machine.sheet(), kernel.from_module) else {
        return Ok((Work::Given { kernel: kernel.id.0 }, PLAIN_NS));
    };
    let mut at = 0;
    let mut tensors = BTreeMap::new();
    for parameter in &info.parameters {
        let value = values.get(at..at + parameter.size as usize).unwrap_or_default();
        at += parameter.size as usize;
        if let Ok(address) = value.try_into().map(u64::from_le_bytes)
            && let Some((start, bytes)) = observe::tensor_at(address)
        {
            tensors.insert(start, bytes);
        }
    }
    let tensors: Vec<u64> = tensors.into_values().collect();
    let Dim3 { x, y, z } = request.block;
    let threads = x.saturating_mul(y).saturating_mul(z);
    let shared = request.shared + u64::from(info.static_shared);
    let blocks = [request.grid.x, request.grid.y, request.grid.z].into_iter().map(u64::from).product();
    let demand = Demand { threads, registers: info.registers, shared };
    let launch = trompe_device::pace::Launch { blocks, demand, tensors: &tensors };
    let ns = trompe_device::pace::kernel_ns(sheet, info, &launch);
    Ok((Work::Made { kernel: kernel.id.0 }, ns))
}

fn check_geometry(compute: &Compute, kernel: &Kernel, request: &Launch) -> Outcome {
    let Launch { grid, block, shared, .. } = *request;
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let empty = [grid.x, grid.y, grid.z, block.x, block.y, block.z].contains(&0);
    let too_large = grid.x > i32::MAX as u32
        || grid.y > MAX_GRID_YZ
        || grid.z > MAX_GRID_YZ
        || block.z > 64
        || threads > u64::from(compute.max_threads_per_block);
    if empty || too_large {
        return Err(RuntimeError::INVALID_CONFIGURATION.into());
    }
    let (static_shared, limit) =
        kernel.info().map_or((0, 0), |info| (u64::from(info.static_shared), u64::from(info.max_threads)));
    if shared + static_shared > compute.shared_per_block_optin.0 {
        return Err(Failure::InvalidValue);
    }
    if limit > 0 && threads > limit {
        return Err(RuntimeError::LAUNCH_OUT_OF_RESOURCES.into());
    }
    if let Some(info) = kernel.info() {
        let warps = threads.div_ceil(u64::from(compute.warp_size));
        let registers = u64::from(info.registers * compute.warp_size).next_multiple_of(256) * warps;
        if registers > u64::from(compute.registers_per_block) {
            return Err(RuntimeError::LAUNCH_OUT_OF_RESOURCES.into());
        }
    }
    Ok(())
}

/// Appends the parameter values in order. A kernel of unknown layout has none.
fn copy_parameters(values: &mut Vec<u8>, kernel: &Kernel, request: &Launch) -> Outcome {
    if let Some((buffer, bytes)) = request.packed {
        // The packed buffer has the parameters at their offsets; gaps are left out of the record.
        let mut packed = Vec::new();
        In::<u8>::new(buffer as usize).append_to(&mut packed, bytes as usize)?;
        for parameter in kernel.info().map_or(&[][..], |info| &info.parameters) {
            let range = parameter.offset as usize..(parameter.offset + parameter.size) as usize;
            values.extend_from_slice(packed.get(range).ok_or(Failure::InvalidValue)?);
        }
        return Ok(());
    }
    let Some(info) = kernel.info() else { return Ok(()) };
    if request.parameters.is_null() && !info.parameters.is_empty() {
        return Err(Failure::InvalidValue);
    }
    for (index, parameter) in info.parameters.iter().enumerate() {
        let value = In::<u8>::new(request.parameters.read_at(index)? as usize);
        value.append_to(values, parameter.size as usize)?;
    }
    Ok(())
}

/// What a kernel does to memory, if it is one of the few that do anything and little enough.
fn effect_of(semantics: Semantics, kernel: &Kernel, values: &[u8]) -> Option<Effect> {
    let Semantics::Fill { element } = semantics;
    let parameters = &kernel.info()?.parameters;
    let [count_size, value_size, pointer_size] =
        [0, 1, 2].map(|i| parameters.get(i).map_or(0, |p| p.size as usize));
    let element = usize::from(element);
    if count_size != 4 || value_size < element || pointer_size < 8 {
        return None;
    }
    let count = i32::from_le_bytes(values.get(..4)?.try_into().ok()?);
    let count = u64::try_from(count).ok()?;
    let pattern = values.get(4..4 + element)?.to_vec();
    let pointer = values.get(4 + value_size..4 + value_size + 8)?;
    let to = u64::from_le_bytes(pointer.try_into().ok()?);
    let bytes = count * element as u64;
    (bytes > 0 && bytes <= FILL_PERFORMED).then_some(Effect::Fill { to, pattern, count })
}

fn announce(call: &mut Call<'_>, kernel: &Kernel) {
    let mut sizes = Vec::new();
    let (registers, static_shared) =
        kernel.info().map_or((0, 0), |info| (info.registers, info.static_shared));
    for parameter in kernel.info().map_or(&[][..], |info| &info.parameters) {
        sizes.extend_from_slice(&u16::try_from(parameter.size).unwrap_or(u16::MAX).to_le_bytes());
    }
    call.announce(&Record::Kernel {
        id: kernel.id,
        name: &kernel.name,
        registers,
        static_shared,
        parameters: &sizes,
        from_module: kernel.from_module,
    });
    // What the code of a kernel that the program made is made of; its own kernels' the database does not keep.
    if let Some(info) = kernel.info().filter(|info| kernel.from_module && info.instructions.total() > 0) {
        let key = format!("kernel.instructions/{}", kernel.id.0);
        let text = info.instructions.describe();
        let resources =
            format!("{text}; {} registers, {} bytes of local memory", info.registers, info.local_memory);
        call.announce(&Record::Meta { key: &key, value: &resources });
    }
}
