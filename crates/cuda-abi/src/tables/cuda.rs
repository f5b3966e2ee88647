//! The CUDA driver.

/// Hands the rows of the CUDA driver to the macro `$with`.
#[macro_export]
macro_rules! for_each_cuda {
    ($with:ident) => {
        $with! {
            // Set-up, errors, functions by name.
            quiet cuInit(flags: u32) => device::init;
            quiet cuDriverGetVersion(version: Out<i32>) => common::device::driver_version;
            quiet cuGetErrorName(code: i32, name: Out<u64>) => error::name;
            quiet cuGetErrorString(code: i32, text: Out<u64>) => error::text;
            quiet cuGetProcAddress_v2(
                symbol: Text, function: Out<u64>, version: i32, flags: u64, status: Out<i32>,
            ) => entry_point::find;
            quiet cuGetProcAddress(
                symbol: Text, function: Out<u64>, version: i32, flags: u64,
            ) => entry_point::find_before_12;
            quiet cuGetExportTable(table: Out<u64>, id: Address) => entry_point::export_table;
            // Called while a framework is loaded, so not recorded: a process that computes nothing leaves no record file.
            quiet cuLogsRegisterCallback(callback: Address, argument: Address, handle: Out<u64>) => tool::register_log;
            quiet cuLogsUnregisterCallback(handle: Address) => tool::unregister_log;
            recorded cuProfilerStart() => tool::profiler_start;
            recorded cuProfilerStop() => tool::profiler_stop;

            // Devices.
            quiet cuDeviceGet(device: Out<i32>, ordinal: i32) => device::get;
            quiet cuDeviceGetCount(count: Out<i32>) => device::count;
            quiet cuDeviceGetName(name: Out<u8>, length: i32, device: i32) => device::name;
            quiet cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) => device::uuid;
            quiet cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) => device::uuid;
            quiet cuDeviceTotalMem_v2(bytes: Out<u64>, device: i32) => device::total_memory;
            quiet cuDeviceComputeCapability(
                major: Out<i32>, minor: Out<i32>, device: i32,
            ) => device::compute_capability;
            quiet cuDeviceGetAttribute(
                value: Out<i32>, attribute: i32, device: i32,
            ) => common::device::get_attribute;
            quiet cuDeviceGetPCIBusId(text: Out<u8>, length: i32, device: i32) => common::device::pci_bus_id;
            quiet cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) => common::device::by_pci_bus_id;
            quiet cuDeviceCanAccessPeer(
                answer: Out<i32>, device: i32, peer: i32,
            ) => common::device::can_access_peer;
            quiet cuDeviceGetP2PAttribute(
                value: Out<i32>, attribute: i32, device: i32, peer: i32,
            ) => common::device::p2p_attribute;
            unsupported cuDeviceGetNvSciSyncAttributes;
            unsupported cuDeviceGetDevResource;

            // Contexts.
            quiet cuCtxGetCurrent(context: Out<u64>) => context::get_current;
            quiet cuCtxSetCurrent(context: Address) => context::set_current;
            quiet cuCtxPushCurrent_v2(context: Address) => context::push;
            quiet cuCtxPopCurrent_v2(context: Out<u64>) => context::pop;
            quiet cuCtxGetDevice(device: Out<i32>) => context::get_device;
            quiet cuCtxGetApiVersion(context: Address, version: Out<u32>) => context::api_version;
            quiet cuCtxGetFlags(flags: Out<u32>) => context::flags;
            quiet cuCtxGetId(context: Address, id: Out<u64>) => context::id;
            quiet cuCtxGetStreamPriorityRange(
                least: Out<i32>, greatest: Out<i32>,
            ) => common::device::priority_range;
            quiet cuCtxGetLimit(value: Out<u64>, limit: i32) => context::limit;
            accepted cuCtxSetLimit;
            accepted cuCtxSetCacheConfig;
            quiet cuCtxGetCacheConfig(config: Out<i32>) => cudart_device::no_preference;
            recorded cuCtxCreate_v2(context: Out<u64>, flags: u32, device: i32) => context::create;
            recorded cuCtxCreate_v4(
                context: Out<u64>, parameters: Address, flags: u32, device: i32,
            ) => context::create_with;
            recorded cuCtxDestroy_v2(context: Address) => context::destroy;
            recorded cuCtxSynchronize() => common::device::synchronize;
            accepted cuCtxEnablePeerAccess;
            accepted cuCtxDisablePeerAccess;
            recorded cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) => context::primary;
            quiet cuDevicePrimaryCtxRelease_v2(device: i32) => context::primary_release;
            quiet cuDevicePrimaryCtxReset_v2(device: i32) => context::primary_release;
            quiet cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) => context::primary_set_flags;
            quiet cuDevicePrimaryCtxGetState(
                device: i32, flags: Out<u32>, active: Out<i32>,
            ) => context::primary_state;
            quiet cuStreamGetCtx(stream: Address, context: Out<u64>) => context::of_stream;
            quiet cuStreamGetCtx_v2(
                stream: Address, context: Out<u64>, green: Out<u64>,
            ) => context::of_stream_with_green;
            unsupported cuGreenCtxCreate;
            unsupported cuGreenCtxDestroy;
            unsupported cuGreenCtxStreamCreate;
            unsupported cuCtxFromGreenCtx;
            unsupported cuDevSmResourceSplitByCount;
            unsupported cuDevResourceGenerateDesc;

            // Memory.
            recorded cuMemAlloc_v2(address: Out<u64>, bytes: usize) => common::memory::allocate;
            recorded cuMemFree_v2(address: Address) => common::memory::free;
            recorded cuMemAllocManaged(
                address: Out<u64>, bytes: usize, flags: u32,
            ) => common::memory::malloc_managed;
            recorded cuMemAllocHost_v2(address: Out<u64>, bytes: usize) => common::memory::malloc_host;
            recorded cuMemHostAlloc(
                address: Out<u64>, bytes: usize, flags: u32,
            ) => common::memory::host_alloc;
            recorded cuMemFreeHost(address: Address) => common::memory::free_host;
            recorded cuMemHostRegister_v2(
                address: Address, bytes: usize, flags: u32,
            ) => common::memory::host_register;
            recorded cuMemHostUnregister(address: Address) => common::memory::host_unregister;
            quiet cuMemHostGetDevicePointer_v2(
                device_address: Out<u64>, address: Address, flags: u32,
            ) => common::memory::host_device_pointer;
            quiet cuMemHostGetFlags(flags: Out<u32>, address: Address) => common::memory::host_flags;
            quiet cuMemGetInfo_v2(free: Out<u64>, total: Out<u64>) => common::device::memory_info;
            quiet cuMemGetAddressRange_v2(
                start: Out<u64>, bytes: Out<u64>, address: Address,
            ) => pointer::address_range;
            quiet cuPointerGetAttribute(
                data: Address, attribute: i32, address: Address,
            ) => pointer::get_attribute;
            quiet cuPointerGetAttributes(
                count: u32, attributes: In<i32>, data: In<u64>, address: Address,
            ) => pointer::get_attributes;
            quiet cuPointerSetAttribute(
                value: Address, attribute: i32, address: Address,
            ) => pointer::set_attribute;
            accepted cuMemAdvise_v2;
            accepted cuMemPrefetchAsync;
            accepted cuMemPrefetchAsync_v2;

            // Memory pools.
            quiet cuDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) => common::pool::of_device;
            quiet cuDeviceGetMemPool(pool: Out<u64>, device: i32) => common::pool::of_device;
            quiet cuDeviceSetMemPool(device: i32, pool: Address) => common::pool::set_of_device;
            recorded cuMemPoolCreate(pool: Out<u64>, properties: In<[i32; 4]>) => common::pool::create;
            recorded cuMemPoolDestroy(pool: Address) => common::pool::destroy;
            recorded cuMemPoolTrimTo(pool: Address, bytes: usize) => common::pool::trim;
            quiet cuMemPoolSetAccess(
                pool: Address, descriptors: Address, count: usize,
            ) => common::pool::set_access;
            quiet cuMemPoolGetAttribute(
                pool: Address, attribute: i32, value: Address,
            ) => common::pool::get_attribute;
            quiet cuMemPoolSetAttribute(
                pool: Address, attribute: i32, value: Address,
            ) => common::pool::set_attribute;
            recorded cuMemAllocAsync(
                address: Out<u64>, bytes: usize, stream: Address,
            ) => common::pool::malloc_async;
            recorded cuMemAllocFromPoolAsync(
                address: Out<u64>, bytes: usize, pool: Address, stream: Address,
            ) => common::pool::malloc_from;
            recorded cuMemFreeAsync(address: Address, stream: Address) => common::pool::free_async;

            // Virtual memory.
            quiet cuMemGetAllocationGranularity(
                bytes: Out<u64>, properties: In<AllocationProperties>, option: i32,
            ) => virtual_memory::granularity;
            recorded cuMemAddressReserve(
                address: Out<u64>, bytes: usize, alignment: usize, hint: Address, flags: u64,
            ) => virtual_memory::reserve;
            recorded cuMemAddressFree(address: Address, bytes: usize) => virtual_memory::release_addresses;
            recorded cuMemCreate(
                handle: Out<u64>, bytes: usize, properties: In<AllocationProperties>, flags: u64,
            ) => virtual_memory::create;
            recorded cuMemRelease(handle: Address) => virtual_memory::release;
            recorded cuMemMap(
                address: Address, bytes: usize, offset: usize, handle: Address, flags: u64,
            ) => virtual_memory::map;
            recorded cuMemUnmap(address: Address, bytes: usize) => virtual_memory::unmap;
            recorded cuMemSetAccess(
                address: Address, bytes: usize, descriptors: Address, count: usize,
            ) => virtual_memory::set_access;
            quiet cuMemGetAccess(
                flags: Out<u64>, location: Address, address: Address,
            ) => virtual_memory::get_access;
            quiet cuMemRetainAllocationHandle(handle: Out<u64>, address: Address) => virtual_memory::retain;
            quiet cuMemGetAllocationPropertiesFromHandle(
                properties: Out<AllocationProperties>, handle: Address,
            ) => virtual_memory::properties;
            recorded cuMemExportToShareableHandle(
                shareable: Out<i32>, handle: Address, kind: i32, flags: u64,
            ) => virtual_memory::export;
            recorded cuMemImportFromShareableHandle(
                handle: Out<u64>, shareable: u64, kind: i32,
            ) => virtual_memory::import;
            unsupported cuMemGetHandleForAddressRange;
            unsupported cuMulticastCreate;
            unsupported cuMulticastAddDevice;
            unsupported cuMulticastBindMem;
            unsupported cuMulticastBindAddr;
            unsupported cuMulticastUnbind;
            unsupported cuMulticastGetGranularity;

            // Copies and fills.
            recorded cuMemcpy(to: Address, from: Address, bytes: usize) => copy::copy;
            recorded cuMemcpyHtoD_v2(to: Address, from: Address, bytes: usize) => copy::copy;
            recorded cuMemcpyDtoH_v2(to: Address, from: Address, bytes: usize) => copy::copy;
            recorded cuMemcpyDtoD_v2(to: Address, from: Address, bytes: usize) => copy::copy;
            recorded cuMemcpyAsync(
                to: Address, from: Address, bytes: usize, stream: Address,
            ) => copy::copy_async;
            recorded cuMemcpyHtoDAsync_v2(
                to: Address, from: Address, bytes: usize, stream: Address,
            ) => copy::copy_async;
            recorded cuMemcpyDtoHAsync_v2(
                to: Address, from: Address, bytes: usize, stream: Address,
            ) => copy::copy_async;
            recorded cuMemcpyDtoDAsync_v2(
                to: Address, from: Address, bytes: usize, stream: Address,
            ) => copy::copy_async;
            recorded cuMemcpyPeer(
                to: Address, to_context: Address, from: Address, from_context: Address, bytes: usize,
            ) => copy::peer;
            recorded cuMemcpyPeerAsync(
                to: Address, to_context: Address, from: Address, from_context: Address, bytes: usize,
                stream: Address,
            ) => copy::peer_async;
            unsupported cuMemcpy2D_v2;
            unsupported cuMemcpy2DAsync_v2;
            unsupported cuMemcpy3D_v2;
            unsupported cuMemcpyBatchAsync;
            recorded cuMemsetD8_v2(to: Address, value: u8, count: usize) => fill::bytes;
            recorded cuMemsetD8Async(
                to: Address, value: u8, count: usize, stream: Address,
            ) => fill::bytes_async;
            recorded cuMemsetD16_v2(to: Address, value: u16, count: usize) => fill::halves;
            recorded cuMemsetD16Async(
                to: Address, value: u16, count: usize, stream: Address,
            ) => fill::halves_async;
            recorded cuMemsetD32_v2(to: Address, value: u32, count: usize) => fill::words;
            recorded cuMemsetD32Async(
                to: Address, value: u32, count: usize, stream: Address,
            ) => fill::words_async;

            // Streams.
            recorded cuStreamCreate(stream: Out<u64>, flags: u32) => common::stream::create_with_flags;
            recorded cuStreamCreateWithPriority(
                stream: Out<u64>, flags: u32, priority: i32,
            ) => common::stream::create_with_priority;
            recorded cuStreamDestroy_v2(stream: Address) => common::stream::destroy;
            quiet cuStreamGetPriority(stream: Address, priority: Out<i32>) => common::stream::priority;
            quiet cuStreamGetFlags(stream: Address, flags: Out<u32>) => common::stream::flags;
            quiet cuStreamGetDevice(stream: Address, device: Out<i32>) => common::stream::device;
            quiet cuStreamGetId(stream: Address, id: Out<u64>) => common::stream::id;
            quiet cuStreamGetAttribute(
                stream: Address, attribute: i32, value: Out<[u8; 64]>,
            ) => common::stream::get_attribute;
            quiet cuStreamSetAttribute(
                stream: Address, attribute: i32, value: Address,
            ) => common::stream::set_attribute;
            recorded cuStreamSynchronize(stream: Address) => common::stream::synchronize;
            recorded cuStreamQuery(stream: Address) => common::stream::query;
            recorded cuStreamWaitEvent(
                stream: Address, event: Address, flags: u32,
            ) => common::event::stream_wait;
            recorded cuStreamAddCallback(
                stream: Address, function: Address, argument: Address, flags: u32,
            ) => common::host::add_callback;
            recorded cuLaunchHostFunc(
                stream: Address, function: Address, argument: Address,
            ) => common::host::launch;
            recorded cuStreamWriteValue32_v2(
                stream: Address, to: Address, value: u32, flags: u32,
            ) => stream_memory::write_32;
            recorded cuStreamWriteValue64_v2(
                stream: Address, to: Address, value: u64, flags: u32,
            ) => stream_memory::write_64;
            recorded cuStreamWaitValue32_v2(
                stream: Address, at: Address, value: u32, flags: u32,
            ) => stream_memory::wait_32;
            recorded cuStreamWaitValue64_v2(
                stream: Address, at: Address, value: u64, flags: u32,
            ) => stream_memory::wait_64;
            unsupported cuStreamBatchMemOp_v2;

            // Events.
            recorded cuEventCreate(event: Out<u64>, flags: u32) => common::event::create_with_flags;
            recorded cuEventDestroy_v2(event: Address) => common::event::destroy;
            recorded cuEventRecord(event: Address, stream: Address) => common::event::record;
            recorded cuEventRecordWithFlags(
                event: Address, stream: Address, flags: u32,
            ) => common::event::record_with_flags;
            recorded cuEventQuery(event: Address) => common::event::query;
            recorded cuEventSynchronize(event: Address) => common::event::synchronize;
            recorded cuEventElapsedTime(
                milliseconds: Out<f32>, start: Address, end: Address,
            ) => common::event::elapsed_time;
            recorded cuEventElapsedTime_v2(
                milliseconds: Out<f32>, start: Address, end: Address,
            ) => common::event::elapsed_time;

            // Capture and graphs.
            quiet cuThreadExchangeStreamCaptureMode(mode: Out<i32>) => common::capture::exchange_mode;
            recorded cuStreamBeginCapture_v2(stream: Address, mode: i32) => common::capture::begin;
            recorded cuStreamBeginCaptureToGraph(
                stream: Address, graph: Address, dependencies: In<u64>, edges: Address, count: usize,
                mode: i32,
            ) => common::capture::begin_to_graph;
            recorded cuStreamEndCapture(stream: Address, graph: Out<u64>) => common::capture::end;
            quiet cuStreamIsCapturing(stream: Address, status: Out<i32>) => common::capture::is_capturing;
            quiet cuStreamGetCaptureInfo_v3(
                stream: Address, status: Out<i32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>,
                edges: Out<u64>, count: Out<u64>,
            ) => common::capture::info;
            quiet cuStreamUpdateCaptureDependencies_v2(
                stream: Address, dependencies: In<u64>, edges: Address, count: usize, flags: u32,
            ) => common::capture::update_dependencies;
            recorded cuGraphCreate(graph: Out<u64>, flags: u32) => common::graph::create;
            recorded cuGraphDestroy(graph: Address) => common::graph::destroy;
            quiet cuGraphGetNodes(graph: Address, nodes: Out<u64>, count: Out<u64>) => common::graph::nodes;
            quiet cuGraphGetEdges_v2(
                graph: Address, from: Out<u64>, to: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => common::graph::edges;
            quiet cuGraphNodeGetType(node: Address, kind: Out<i32>) => common::graph::node_type;
            quiet cuGraphNodeGetDependencies_v2(
                node: Address, nodes: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => common::graph::dependencies;
            recorded cuGraphAddNode_v2(
                node: Out<u64>, graph: Address, dependencies: In<u64>, edges: Address, count: usize,
                parameters: In<i32>,
            ) => common::graph::add_node;
            recorded cuGraphAddEmptyNode(
                node: Out<u64>, graph: Address, dependencies: In<u64>, count: usize,
            ) => common::graph::add_empty_node;
            recorded cuGraphInstantiateWithFlags(
                executable: Out<u64>, graph: Address, flags: u64,
            ) => common::graph::instantiate;
            recorded cuGraphExecDestroy(executable: Address) => common::graph::destroy_executable;
            recorded cuGraphLaunch(executable: Address, stream: Address) => common::graph::launch;
            recorded cuGraphUpload(executable: Address, stream: Address) => common::graph::upload;
            recorded cuGraphRetainUserObject(
                graph: Address, object: Address, count: u32, flags: u32,
            ) => common::graph::retain_user_object;
            recorded cuUserObjectCreate(
                object: Out<u64>, argument: Address, destroy: Address, references: u32, flags: u32,
            ) => common::user_object::create;
            recorded cuUserObjectRetain(object: Address, count: u32) => common::user_object::retain;
            recorded cuUserObjectRelease(object: Address, count: u32) => common::user_object::release;
            unsupported cuGraphKernelNodeGetParams_v2;
            unsupported cuGraphExecUpdate_v2;
            unsupported cuGraphDebugDotPrint;

            // Modules, libraries, kernels.
            recorded cuModuleLoad(module: Out<u64>, path: Text) => common::module::load_file;
            recorded cuModuleLoadData(module: Out<u64>, image: Address) => common::module::load;
            recorded cuModuleLoadDataEx(
                module: Out<u64>, image: Address, count: u32, options: Address, values: Address,
            ) => module::load_with_options;
            recorded cuModuleLoadFatBinary(module: Out<u64>, image: Address) => common::module::load;
            recorded cuModuleUnload(module: Address) => common::module::unload;
            recorded cuModuleGetFunction(function: Out<u64>, module: Address, name: Text) => module::function;
            quiet cuModuleGetFunctionCount(
                count: Out<u32>, module: Address,
            ) => common::module::function_count;
            recorded cuModuleGetGlobal_v2(
                address: Out<u64>, bytes: Out<u64>, module: Address, name: Text,
            ) => common::module::global;
            quiet cuModuleGetLoadingMode(mode: Out<i32>) => module::loading_mode;
            recorded cuLibraryLoadData(
                library: Out<u64>, image: Address, options: Address, values: Address, count: u32,
                library_options: Address, library_values: Address, library_count: u32,
            ) => cudart_library::load;
            recorded cuLibraryLoadFromFile(
                library: Out<u64>, path: Text, options: Address, values: Address, count: u32,
                library_options: Address, library_values: Address, library_count: u32,
            ) => cudart_library::load_file;
            recorded cuLibraryUnload(library: Address) => common::module::unload;
            recorded cuLibraryGetKernel(kernel: Out<u64>, library: Address, name: Text) => module::function;
            quiet cuLibraryGetKernelCount(
                count: Out<u32>, library: Address,
            ) => common::module::function_count;
            quiet cuLibraryGetModule(module: Out<u64>, library: Address) => common::module::same_module;
            recorded cuLibraryGetGlobal(
                address: Out<u64>, bytes: Out<u64>, library: Address, name: Text,
            ) => common::module::global;
            quiet cuLibraryGetUnifiedFunction(
                function: Out<u64>, library: Address, name: Text,
            ) => cudart_library::unified_function;
            quiet cuKernelGetFunction(function: Out<u64>, kernel: Address) => common::module::same_function;
            quiet cuKernelGetName(name: Out<u64>, kernel: Address) => common::function::name;
            quiet cuKernelGetParamInfo(
                kernel: Address, index: usize, offset: Out<u64>, size: Out<u64>,
            ) => common::function::parameter_info;
            quiet cuKernelGetAttribute(
                value: Out<i32>, attribute: i32, kernel: Address, device: i32,
            ) => common::function::get_kernel_attribute;
            quiet cuKernelSetAttribute(
                attribute: i32, value: i32, kernel: Address, device: i32,
            ) => common::function::set_kernel_attribute;
            accepted cuKernelSetCacheConfig;
            quiet cuFuncGetAttribute(
                value: Out<i32>, attribute: i32, function: Address,
            ) => common::function::get_attribute;
            quiet cuFuncSetAttribute(
                function: Address, attribute: i32, value: i32,
            ) => common::function::set_attribute;
            quiet cuFuncSetCacheConfig(function: Address, config: i32) => common::function::hint;
            quiet cuFuncSetSharedMemConfig(function: Address, config: i32) => common::function::hint;
            quiet cuFuncGetName(name: Out<u64>, function: Address) => common::function::name;
            quiet cuFuncGetParamInfo(
                function: Address, index: usize, offset: Out<u64>, size: Out<u64>,
            ) => common::function::parameter_info;
            accepted cuFuncLoad;
            recorded cuLaunchKernel(
                function: Address, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32,
                block_z: u32, shared: u32, stream: Address, parameters: In<u64>, extra: In<u64>,
            ) => launch::kernel;
            recorded cuLaunchKernelEx(
                config: In<DriverLaunchConfig>, function: Address, parameters: In<u64>, extra: In<u64>,
            ) => launch::extended;
            recorded cuLaunchCooperativeKernel(
                function: Address, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32,
                block_z: u32, shared: u32, stream: Address, parameters: In<u64>,
            ) => launch::cooperative;
            quiet cuOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: Out<i32>, function: Address, threads: i32, dynamic: usize,
            ) => common::occupancy::max_blocks;
            quiet cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                blocks: Out<i32>, function: Address, threads: i32, dynamic: usize, flags: u32,
            ) => common::occupancy::max_blocks_with_flags;
            quiet cuOccupancyMaxPotentialBlockSize(
                grid: Out<i32>, block: Out<i32>, function: Address, shared_of: Address, dynamic: usize,
                limit: i32,
            ) => common::occupancy::potential_block_size;
            quiet cuOccupancyAvailableDynamicSMemPerBlock(
                bytes: Out<u64>, function: Address, blocks: i32, threads: i32,
            ) => common::occupancy::available_shared;
            quiet cuOccupancyMaxActiveClusters(
                clusters: Out<i32>, function: Address, config: In<DriverLaunchConfig>,
            ) => launch::max_clusters;
            quiet cuOccupancyMaxPotentialClusterSize(
                size: Out<i32>, function: Address, config: In<DriverLaunchConfig>,
            ) => launch::potential_cluster;
            recorded cuLinkCreate_v2(
                count: u32, options: Address, values: Address, state: Out<u64>,
            ) => link::create;
            recorded cuLinkAddData_v2(
                state: Address, kind: i32, data: Address, bytes: usize, name: Address, count: u32,
                options: Address, values: Address,
            ) => link::add_data;
            recorded cuLinkComplete(state: Address, image: Out<u64>, bytes: Out<u64>) => link::complete;
            recorded cuLinkDestroy(state: Address) => link::destroy;
            quiet cuTensorMapEncodeTiled(
                map: Out<[u8; 128]>, data_type: i32, rank: u32, address: Address, extents: In<u64>,
                strides: In<u64>, tile: In<u32>, element_strides: In<u32>, interleave: i32, swizzle: i32,
                promotion: i32, fill: i32,
            ) => tensor_map::encode_tiled;
            quiet cuTensorMapReplaceAddress(map: Out<u64>, address: Address) => tensor_map::replace_address;

            // Between processes.
            recorded cuIpcGetMemHandle(
                handle: Out<IpcHandle>, address: Address,
            ) => common::ipc::memory_handle;
            recorded cuIpcOpenMemHandle_v2(
                address: Out<u64>, handle: IpcHandle, flags: u32,
            ) => common::ipc::open_memory;
            recorded cuIpcCloseMemHandle(address: Address) => common::ipc::close_memory;
            recorded cuIpcGetEventHandle(handle: Out<IpcHandle>, event: Address) => common::ipc::event_handle;
            recorded cuIpcOpenEventHandle(event: Out<u64>, handle: IpcHandle) => common::ipc::open_event;
        }
    };
}

for_each_cuda!(rows);
