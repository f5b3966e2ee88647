//! Device count, choice and properties.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{DeviceProperties, DeviceProperties12, RuntimeError};
use trompe_device::attribute::attribute;
use trompe_hardware::EmulatedNode;

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// `cudaGetDeviceCount`.
pub(crate) fn count(call: &mut Call<'_>, count: Out<i32>) -> Outcome {
    let devices = call.machine().device_count();
    count.write(devices as i32)?;
    if devices == 0 { Err(Failure::NoDevice) } else { Ok(()) }
}

/// `cudaGetDevice`.
pub(crate) fn get(call: &mut Call<'_>, device: Out<i32>) -> Outcome {
    device.write(call.thread.device.get() as i32)?;
    Ok(())
}

/// `cudaSetDevice`: also gives the device its context, as the runtime does since CUDA 12.
pub(crate) fn set(call: &mut Call<'_>, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    call.thread.device.set(index.0);
    call.activate(index)
}

/// `cudaInitDevice`.
pub(crate) fn init(call: &mut Call<'_>, device: i32, _: u32, _: u32) -> Outcome {
    let index = call.checked_device(device)?;
    call.activate(index)
}

/// `cudaSetValidDevices`.
pub(crate) fn set_valid(call: &mut Call<'_>, devices: In<i32>, count: i32) -> Outcome {
    let count = usize::try_from(count).map_err(|_| Failure::InvalidValue)?;
    for device in devices.read_many(count)? {
        call.checked_device(device)?;
    }
    Ok(())
}

/// `cudaDeviceReset`: the program's own allocations are left alone.
pub(crate) fn reset(call: &mut Call<'_>) -> Outcome {
    call.checked_device(call.thread.device.get() as i32).map(drop)
}

/// `cudaSetDeviceFlags`.
pub(crate) fn set_flags(call: &mut Call<'_>, _: u32) -> Outcome {
    call.checked_device(call.thread.device.get() as i32).map(drop)
}

/// `cudaGetDeviceFlags`: host memory can be mapped.
pub(crate) fn flags(call: &mut Call<'_>, flags: Out<u32>) -> Outcome {
    const MAP_HOST: u32 = 8;
    call.checked_device(call.thread.device.get() as i32)?;
    flags.write(MAP_HOST)?;
    Ok(())
}

/// `cudaDeviceGetLimit`: stack, printf buffer, heap and others, at their defaults.
pub(crate) fn limit(call: &mut Call<'_>, value: Out<u64>, limit: i32) -> Outcome {
    call.checked_device(call.thread.device.get() as i32)?;
    value.write(match limit {
        0 => 1024,
        1 => 7_340_032,
        2 => 8 << 20,
        3 => 2,
        4 => 2048,
        5 => 128,
        6 => 0,
        _ => return Err(RuntimeError::UNSUPPORTED_LIMIT.into()),
    })?;
    Ok(())
}

/// `cudaDeviceSetLimit`.
pub(crate) fn set_limit(call: &mut Call<'_>, limit: i32, _: usize) -> Outcome {
    call.checked_device(call.thread.device.get() as i32)?;
    if (0..=6).contains(&limit) { Ok(()) } else { Err(RuntimeError::UNSUPPORTED_LIMIT.into()) }
}

/// `cudaDeviceGetCacheConfig`, `cudaDeviceGetSharedMemConfig`: no preference.
pub(crate) fn no_preference(_: &mut Call<'_>, config: Out<i32>) -> Outcome {
    config.write(0)?;
    Ok(())
}

/// `cudaGetDeviceProperties`.
pub(crate) fn properties(call: &mut Call<'_>, out: Out<DeviceProperties>, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    let machine = call.machine();
    out.write(describe(machine.node().ok_or(Failure::NoDevice)?, machine.physical(index)))?;
    Ok(())
}

/// The properties of the device at a place in the node, filled from its attributes.
fn describe(node: &EmulatedNode, device: u32) -> DeviceProperties {
    let of = |number| attribute(node, device, number).unwrap_or(0);
    let size = |number| of(number) as usize;
    let sheet = &node.device;
    let mut name = [0; 256];
    let text = sheet.marketing_name.as_bytes();
    name[..text.len().min(255)].copy_from_slice(&text[..text.len().min(255)]);
    let mut texture_limits = [0; 39];
    // In the order of the structure: `maxTexture1D` to `maxSurfaceCubemapLayered`.
    let numbers = [
        21, 77, 22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54,
        55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68,
    ];
    for (limit, number) in texture_limits.iter_mut().zip(numbers) {
        *limit = of(number);
    }
    DeviceProperties {
        name,
        uuid: node.uuid(device),
        total_global_mem: sheet.memory.total.0 as usize,
        shared_mem_per_block: size(8),
        regs_per_block: of(12),
        warp_size: of(10),
        mem_pitch: size(11),
        max_threads_per_block: of(1),
        max_threads_dim: [of(2), of(3), of(4)],
        max_grid_size: [of(5), of(6), of(7)],
        total_const_mem: size(9),
        major: of(75),
        minor: of(76),
        texture_alignment: size(14),
        texture_pitch_alignment: size(51),
        multi_processor_count: of(16),
        integrated: of(18),
        can_map_host_memory: of(19),
        texture_limits,
        surface_alignment: size(30),
        concurrent_kernels: of(31),
        ecc_enabled: of(32),
        pci_bus_id: of(33),
        pci_device_id: of(34),
        pci_domain_id: of(50),
        tcc_driver: of(35),
        async_engine_count: of(40),
        unified_addressing: of(41),
        memory_bus_width: of(37),
        l2_cache_size: of(38),
        persisting_l2_cache_max_size: of(108),
        max_threads_per_multi_processor: of(39),
        stream_priorities_supported: of(78),
        global_l1_cache_supported: of(79),
        local_l1_cache_supported: of(80),
        shared_mem_per_multiprocessor: size(81),
        regs_per_multiprocessor: of(82),
        managed_memory: of(83),
        is_multi_gpu_board: of(84),
        multi_gpu_board_group_id: of(85),
        host_native_atomic_supported: of(86),
        pageable_memory_access: of(88),
        concurrent_managed_access: of(89),
        compute_preemption_supported: of(90),
        can_use_host_pointer_for_registered_mem: of(91),
        cooperative_launch: of(95),
        shared_mem_per_block_optin: size(97),
        pageable_memory_access_uses_host_page_tables: of(100),
        direct_managed_mem_access_from_host: of(101),
        max_blocks_per_multi_processor: of(106),
        access_policy_max_window_size: of(109),
        reserved_shared_mem_per_block: size(111),
        host_register_supported: of(99),
        sparse_cuda_array_supported: of(112),
        host_register_read_only_supported: of(113),
        timeline_semaphore_interop_supported: of(114),
        memory_pools_supported: of(115),
        gpu_direct_rdma_supported: of(116),
        gpu_direct_rdma_flush_writes_options: of(117) as u32,
        gpu_direct_rdma_writes_ordering: of(118),
        memory_pool_supported_handle_types: of(119) as u32,
        deferred_mapping_cuda_array_supported: of(121),
        ipc_event_supported: of(125),
        cluster_launch: of(120),
        unified_function_pointers: of(129),
        device_numa_config: of(130),
        device_numa_id: of(131),
        mps_enabled: of(133),
        host_numa_id: of(134),
        gpu_pci_device_id: of(139) as u32,
        gpu_pci_subsystem_id: of(140) as u32,
        host_numa_multinode_ipc_supported: of(143),
        ..DeviceProperties::default()
    }
}

/// The same for CUDA 12's structure.
pub(crate) fn describe_12(node: &EmulatedNode, device: u32) -> DeviceProperties12 {
    let of = |number| attribute(node, device, number).unwrap_or(0);
    let new = describe(node, device);
    let (first, other) = new.texture_limits.split_at(2);
    let mut old = DeviceProperties12 {
        clock_rate: of(13),
        device_overlap: of(15),
        kernel_exec_timeout_enabled: of(17),
        compute_mode: of(20),
        max_texture_1d_linear: of(69),
        memory_clock_rate: of(36),
        single_to_double_precision_perf_ratio: of(87),
        cooperative_multi_device_launch: of(96),
        name: new.name,
        uuid: new.uuid,
        total_global_mem: new.total_global_mem,
        shared_mem_per_block: new.shared_mem_per_block,
        regs_per_block: new.regs_per_block,
        warp_size: new.warp_size,
        mem_pitch: new.mem_pitch,
        max_threads_per_block: new.max_threads_per_block,
        max_threads_dim: new.max_threads_dim,
        max_grid_size: new.max_grid_size,
        total_const_mem: new.total_const_mem,
        major: new.major,
        minor: new.minor,
        texture_alignment: new.texture_alignment,
        texture_pitch_alignment: new.texture_pitch_alignment,
        multi_processor_count: new.multi_processor_count,
        integrated: new.integrated,
        can_map_host_memory: new.can_map_host_memory,
        surface_alignment: new.surface_alignment,
        concurrent_kernels: new.concurrent_kernels,
        ecc_enabled: new.ecc_enabled,
        pci_bus_id: new.pci_bus_id,
        pci_device_id: new.pci_device_id,
        pci_domain_id: new.pci_domain_id,
        tcc_driver: new.tcc_driver,
        async_engine_count: new.async_engine_count,
        unified_addressing: new.unified_addressing,
        memory_bus_width: new.memory_bus_width,
        l2_cache_size: new.l2_cache_size,
        persisting_l2_cache_max_size: new.persisting_l2_cache_max_size,
        max_threads_per_multi_processor: new.max_threads_per_multi_processor,
        stream_priorities_supported: new.stream_priorities_supported,
        global_l1_cache_supported: new.global_l1_cache_supported,
        local_l1_cache_supported: new.local_l1_cache_supported,
        shared_mem_per_multiprocessor: new.shared_mem_per_multiprocessor,
        regs_per_multiprocessor: new.regs_per_multiprocessor,
        managed_memory: new.managed_memory,
        is_multi_gpu_board: new.is_multi_gpu_board,
        multi_gpu_board_group_id: new.multi_gpu_board_group_id,
        host_native_atomic_supported: new.host_native_atomic_supported,
        pageable_memory_access: new.pageable_memory_access,
        concurrent_managed_access: new.concurrent_managed_access,
        compute_preemption_supported: new.compute_preemption_supported,
        can_use_host_pointer_for_registered_mem: new.can_use_host_pointer_for_registered_mem,
        cooperative_launch: new.cooperative_launch,
        shared_mem_per_block_optin: new.shared_mem_per_block_optin,
        pageable_memory_access_uses_host_page_tables: new.pageable_memory_access_uses_host_page_tables,
        direct_managed_mem_access_from_host: new.direct_managed_mem_access_from_host,
        max_blocks_per_multi_processor: new.max_blocks_per_multi_processor,
        access_policy_max_window_size: new.access_policy_max_window_size,
        reserved_shared_mem_per_block: new.reserved_shared_mem_per_block,
        host_register_supported: new.host_register_supported,
        sparse_cuda_array_supported: new.sparse_cuda_array_supported,
        host_register_read_only_supported: new.host_register_read_only_supported,
        timeline_semaphore_interop_supported: new.timeline_semaphore_interop_supported,
        memory_pools_supported: new.memory_pools_supported,
        gpu_direct_rdma_supported: new.gpu_direct_rdma_supported,
        gpu_direct_rdma_flush_writes_options: new.gpu_direct_rdma_flush_writes_options,
        gpu_direct_rdma_writes_ordering: new.gpu_direct_rdma_writes_ordering,
        memory_pool_supported_handle_types: new.memory_pool_supported_handle_types,
        deferred_mapping_cuda_array_supported: new.deferred_mapping_cuda_array_supported,
        ipc_event_supported: new.ipc_event_supported,
        cluster_launch: new.cluster_launch,
        unified_function_pointers: new.unified_function_pointers,
        ..DeviceProperties12::default()
    };
    old.first_texture_limits.copy_from_slice(first);
    old.other_texture_limits.copy_from_slice(other);
    old
}
