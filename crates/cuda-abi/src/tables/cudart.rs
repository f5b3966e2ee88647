//! The CUDA runtime. Names that end in `_v2` or `_v3` are CUDA 12's, which kept the plain ones for older meanings.

/// Hands the rows of the CUDA runtime to the macro `$with`.
#[macro_export]
macro_rules! for_each_cudart {
    ($with:ident) => {
        $with! {
            // Devices.
            quiet cudaGetDeviceCount(count: Out<i32>) => device::count;
            quiet cudaGetDevice(device: Out<i32>) => device::get;
            quiet cudaSetDevice(device: i32) => device::set;
            quiet cudaInitDevice(device: i32, device_flags: u32, flags: u32) => device::init;
            quiet cudaSetValidDevices(devices: In<i32>, count: i32) => device::set_valid;
            quiet cudaSetDeviceFlags(flags: u32) => device::set_flags;
            quiet cudaGetDeviceFlags(flags: Out<u32>) => device::flags;
            quiet cudaGetDeviceProperties(
                properties: Out<DeviceProperties>, device: i32,
            ) => device::properties;
            quiet cudaGetDeviceProperties_v2(
                properties: Out<DeviceProperties12>, device: i32,
            ) => earlier::properties;
            quiet cudaDeviceGetAttribute(
                value: Out<i32>, attribute: i32, device: i32,
            ) => common::device::get_attribute;
            quiet cudaDeviceGetPCIBusId(
                text: Out<u8>, length: i32, device: i32,
            ) => common::device::pci_bus_id;
            quiet cudaDeviceGetByPCIBusId(device: Out<i32>, text: Text) => common::device::by_pci_bus_id;
            quiet cudaDeviceCanAccessPeer(
                answer: Out<i32>, device: i32, peer: i32,
            ) => common::device::can_access_peer;
            recorded cudaDeviceEnablePeerAccess(peer: i32, flags: u32) => common::device::enable_peer_access;
            recorded cudaDeviceDisablePeerAccess(peer: i32) => common::device::disable_peer_access;
            quiet cudaDeviceGetP2PAttribute(
                value: Out<i32>, attribute: i32, device: i32, peer: i32,
            ) => common::device::p2p_attribute;
            quiet cudaDeviceGetStreamPriorityRange(
                least: Out<i32>, greatest: Out<i32>,
            ) => common::device::priority_range;
            recorded cudaDeviceSynchronize() => common::device::synchronize;
            recorded cudaDeviceReset() => device::reset;
            quiet cudaDeviceGetLimit(value: Out<u64>, limit: i32) => device::limit;
            quiet cudaDeviceSetLimit(limit: i32, value: usize) => device::set_limit;
            quiet cudaDeviceGetCacheConfig(config: Out<i32>) => device::no_preference;
            quiet cudaDeviceGetSharedMemConfig(config: Out<i32>) => device::no_preference;
            accepted cudaDeviceSetCacheConfig;
            accepted cudaDeviceSetSharedMemConfig;
            accepted cudaDeviceFlushGPUDirectRDMAWrites;
            quiet cudaRuntimeGetVersion(version: Out<i32>) => common::device::runtime_version;
            quiet cudaDriverGetVersion(version: Out<i32>) => common::device::driver_version;

            // Errors.
            quiet cudaGetLastError() -> i32 => error::take_last;
            quiet cudaPeekAtLastError() -> i32 => error::peek_last;
            quiet cudaGetErrorName(code: i32) -> Address => error::name;
            quiet cudaGetErrorString(code: i32) -> Address => error::text;

            // Memory.
            recorded cudaMalloc(address: Out<u64>, bytes: usize) => common::memory::malloc;
            recorded cudaMallocPitch(
                address: Out<u64>, pitch: Out<u64>, width: usize, height: usize,
            ) => common::memory::malloc_pitch;
            recorded cudaMallocManaged(
                address: Out<u64>, bytes: usize, flags: u32,
            ) => common::memory::malloc_managed;
            recorded cudaFree(address: Address) => common::memory::free;
            recorded cudaHostAlloc(address: Out<u64>, bytes: usize, flags: u32) => common::memory::host_alloc;
            recorded cudaMallocHost(address: Out<u64>, bytes: usize) => common::memory::malloc_host;
            recorded cudaFreeHost(address: Address) => common::memory::free_host;
            recorded cudaHostRegister(
                address: Address, bytes: usize, flags: u32,
            ) => common::memory::host_register;
            recorded cudaHostUnregister(address: Address) => common::memory::host_unregister;
            quiet cudaHostGetDevicePointer(
                device_address: Out<u64>, address: Address, flags: u32,
            ) => common::memory::host_device_pointer;
            quiet cudaHostGetFlags(flags: Out<u32>, address: Address) => common::memory::host_flags;
            quiet cudaMemGetInfo(free: Out<u64>, total: Out<u64>) => common::device::memory_info;
            quiet cudaPointerGetAttributes(
                attributes: Out<PointerAttributes>, address: Address,
            ) => pointer::attributes;
            accepted cudaMemAdvise;
            accepted cudaMemAdvise_v2;
            accepted cudaMemPrefetchAsync;
            accepted cudaMemPrefetchAsync_v2;
            accepted cudaStreamAttachMemAsync;

            // Memory pools.
            quiet cudaDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) => common::pool::of_device;
            quiet cudaDeviceGetMemPool(pool: Out<u64>, device: i32) => common::pool::of_device;
            quiet cudaDeviceSetMemPool(device: i32, pool: Address) => common::pool::set_of_device;
            recorded cudaMemPoolCreate(pool: Out<u64>, properties: In<[i32; 4]>) => common::pool::create;
            recorded cudaMemPoolDestroy(pool: Address) => common::pool::destroy;
            recorded cudaMemPoolTrimTo(pool: Address, bytes: usize) => common::pool::trim;
            quiet cudaMemPoolSetAccess(
                pool: Address, descriptors: Address, count: usize,
            ) => common::pool::set_access;
            quiet cudaMemPoolGetAttribute(
                pool: Address, attribute: i32, value: Address,
            ) => common::pool::get_attribute;
            quiet cudaMemPoolSetAttribute(
                pool: Address, attribute: i32, value: Address,
            ) => common::pool::set_attribute;
            recorded cudaMallocAsync(
                address: Out<u64>, bytes: usize, stream: Address,
            ) => common::pool::malloc_async;
            recorded cudaMallocFromPoolAsync(
                address: Out<u64>, bytes: usize, pool: Address, stream: Address,
            ) => common::pool::malloc_from;
            recorded cudaFreeAsync(address: Address, stream: Address) => common::pool::free_async;

            // Copies and fills.
            recorded cudaMemcpy(to: Address, from: Address, bytes: usize, kind: i32) => copy::memcpy;
            recorded cudaMemcpyAsync(
                to: Address, from: Address, bytes: usize, kind: i32, stream: Address,
            ) => copy::memcpy_async;
            recorded cudaMemcpyPeer(
                to: Address, to_device: i32, from: Address, from_device: i32, bytes: usize,
            ) => copy::memcpy_peer;
            recorded cudaMemcpyPeerAsync(
                to: Address, to_device: i32, from: Address, from_device: i32, bytes: usize,
                stream: Address,
            ) => copy::memcpy_peer_async;
            recorded cudaMemcpy2D(
                to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize,
                height: usize, kind: i32,
            ) => copy::memcpy_2d;
            recorded cudaMemcpy2DAsync(
                to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize,
                height: usize, kind: i32, stream: Address,
            ) => copy::memcpy_2d_async;
            recorded cudaMemcpyToSymbol(
                symbol: Address, from: Address, bytes: usize, offset: usize, kind: i32,
            ) => symbol::write;
            recorded cudaMemcpyToSymbolAsync(
                symbol: Address, from: Address, bytes: usize, offset: usize, kind: i32, stream: Address,
            ) => symbol::write_async;
            recorded cudaMemcpyFromSymbol(
                to: Address, symbol: Address, bytes: usize, offset: usize, kind: i32,
            ) => symbol::read;
            recorded cudaMemcpyFromSymbolAsync(
                to: Address, symbol: Address, bytes: usize, offset: usize, kind: i32, stream: Address,
            ) => symbol::read_async;
            recorded cudaMemset(to: Address, value: i32, bytes: usize) => common::fill::memset;
            recorded cudaMemsetAsync(
                to: Address, value: i32, bytes: usize, stream: Address,
            ) => common::fill::memset_async;
            quiet cudaGetSymbolAddress(address: Out<u64>, symbol: Address) => symbol::address;
            quiet cudaGetSymbolSize(bytes: Out<u64>, symbol: Address) => symbol::size;

            // Streams.
            recorded cudaStreamCreate(stream: Out<u64>) => common::stream::create;
            recorded cudaStreamCreateWithFlags(
                stream: Out<u64>, flags: u32,
            ) => common::stream::create_with_flags;
            recorded cudaStreamCreateWithPriority(
                stream: Out<u64>, flags: u32, priority: i32,
            ) => common::stream::create_with_priority;
            recorded cudaStreamDestroy(stream: Address) => common::stream::destroy;
            quiet cudaStreamGetPriority(stream: Address, priority: Out<i32>) => common::stream::priority;
            quiet cudaStreamGetFlags(stream: Address, flags: Out<u32>) => common::stream::flags;
            quiet cudaStreamGetDevice(stream: Address, device: Out<i32>) => common::stream::device;
            quiet cudaStreamGetId(stream: Address, id: Out<u64>) => common::stream::id;
            quiet cudaStreamGetAttribute(
                stream: Address, attribute: i32, value: Out<[u8; 64]>,
            ) => common::stream::get_attribute;
            quiet cudaStreamSetAttribute(
                stream: Address, attribute: i32, value: Address,
            ) => common::stream::set_attribute;
            accepted cudaStreamCopyAttributes;
            accepted cudaCtxResetPersistingL2Cache;
            recorded cudaStreamSynchronize(stream: Address) => common::stream::synchronize;
            recorded cudaStreamQuery(stream: Address) => common::stream::query;
            recorded cudaStreamWaitEvent(
                stream: Address, event: Address, flags: u32,
            ) => common::event::stream_wait;
            recorded cudaLaunchHostFunc(
                stream: Address, function: Address, argument: Address,
            ) => common::host::launch;
            recorded cudaStreamAddCallback(
                stream: Address, function: Address, argument: Address, flags: u32,
            ) => common::host::add_callback;

            // Events.
            recorded cudaEventCreate(event: Out<u64>) => common::event::create;
            recorded cudaEventCreateWithFlags(
                event: Out<u64>, flags: u32,
            ) => common::event::create_with_flags;
            recorded cudaEventDestroy(event: Address) => common::event::destroy;
            recorded cudaEventRecord(event: Address, stream: Address) => common::event::record;
            recorded cudaEventRecordWithFlags(
                event: Address, stream: Address, flags: u32,
            ) => common::event::record_with_flags;
            recorded cudaEventQuery(event: Address) => common::event::query;
            recorded cudaEventSynchronize(event: Address) => common::event::synchronize;
            recorded cudaEventElapsedTime(
                milliseconds: Out<f32>, start: Address, end: Address,
            ) => common::event::elapsed_time;

            // Capture.
            quiet cudaThreadExchangeStreamCaptureMode(mode: Out<i32>) => common::capture::exchange_mode;
            recorded cudaStreamBeginCapture(stream: Address, mode: i32) => common::capture::begin;
            recorded cudaStreamBeginCaptureToGraph(
                stream: Address, graph: Address, dependencies: In<u64>, edges: Address, count: usize,
                mode: i32,
            ) => common::capture::begin_to_graph;
            recorded cudaStreamEndCapture(stream: Address, graph: Out<u64>) => common::capture::end;
            quiet cudaStreamIsCapturing(stream: Address, status: Out<i32>) => common::capture::is_capturing;
            quiet cudaStreamGetCaptureInfo(
                stream: Address, status: Out<i32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>,
                edges: Out<u64>, count: Out<u64>,
            ) => earlier::capture_info;
            quiet cudaStreamGetCaptureInfo_v2(
                stream: Address, status: Out<i32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>,
                count: Out<u64>,
            ) => earlier::capture_info_without_edges;
            quiet cudaStreamGetCaptureInfo_v3(
                stream: Address, status: Out<i32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>,
                edges: Out<u64>, count: Out<u64>,
            ) => common::capture::info;
            quiet cudaStreamUpdateCaptureDependencies(
                stream: Address, dependencies: In<u64>, edges: Address, count: usize, flags: u32,
            ) => earlier::update_dependencies;
            quiet cudaStreamUpdateCaptureDependencies_v2(
                stream: Address, dependencies: In<u64>, edges: Address, count: usize, flags: u32,
            ) => common::capture::update_dependencies;

            // Graphs.
            recorded cudaGraphCreate(graph: Out<u64>, flags: u32) => common::graph::create;
            recorded cudaGraphDestroy(graph: Address) => common::graph::destroy;
            quiet cudaGraphGetNodes(graph: Address, nodes: Out<u64>, count: Out<u64>) => common::graph::nodes;
            quiet cudaGraphGetEdges(
                graph: Address, from: Out<u64>, to: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => earlier::edges;
            quiet cudaGraphGetEdges_v2(
                graph: Address, from: Out<u64>, to: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => common::graph::edges;
            quiet cudaGraphNodeGetType(node: Address, kind: Out<i32>) => common::graph::node_type;
            quiet cudaGraphNodeGetDependencies(
                node: Address, nodes: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => earlier::dependencies;
            quiet cudaGraphNodeGetDependencies_v2(
                node: Address, nodes: Out<u64>, edges: Out<u64>, count: Out<u64>,
            ) => common::graph::dependencies;
            recorded cudaGraphAddNode(
                node: Out<u64>, graph: Address, dependencies: In<u64>, edges: Address, count: usize,
                parameters: In<i32>,
            ) => earlier::add_node;
            recorded cudaGraphAddNode_v2(
                node: Out<u64>, graph: Address, dependencies: In<u64>, edges: Address, count: usize,
                parameters: In<i32>,
            ) => common::graph::add_node;
            recorded cudaGraphAddEmptyNode(
                node: Out<u64>, graph: Address, dependencies: In<u64>, count: usize,
            ) => common::graph::add_empty_node;
            recorded cudaGraphInstantiate(
                executable: Out<u64>, graph: Address, flags: u64,
            ) => common::graph::instantiate;
            recorded cudaGraphInstantiateWithFlags(
                executable: Out<u64>, graph: Address, flags: u64,
            ) => common::graph::instantiate;
            recorded cudaGraphExecDestroy(executable: Address) => common::graph::destroy_executable;
            recorded cudaGraphLaunch(executable: Address, stream: Address) => common::graph::launch;
            recorded cudaGraphUpload(executable: Address, stream: Address) => common::graph::upload;
            recorded cudaGraphRetainUserObject(
                graph: Address, object: Address, count: u32, flags: u32,
            ) => common::graph::retain_user_object;
            recorded cudaUserObjectCreate(
                object: Out<u64>, argument: Address, destroy: Address, references: u32, flags: u32,
            ) => common::user_object::create;
            recorded cudaUserObjectRetain(object: Address, count: u32) => common::user_object::retain;
            recorded cudaUserObjectRelease(object: Address, count: u32) => common::user_object::release;
            quiet cudaDeviceGetGraphMemAttribute(
                device: i32, attribute: i32, value: Out<u64>,
            ) => common::graph::memory_attribute;
            quiet cudaDeviceSetGraphMemAttribute(
                device: i32, attribute: i32, value: Address,
            ) => common::graph::set_memory_attribute;
            accepted cudaDeviceGraphMemTrim;
            accepted cudaGraphDebugDotPrint;
            unsupported cudaGraphConditionalHandleCreate;
            unsupported cudaGraphExecUpdate;
            unsupported cudaGraphClone;
            unsupported cudaGraphKernelNodeGetParams;
            unsupported cudaGraphKernelNodeSetParams;
            unsupported cudaGraphExecKernelNodeSetParams;
            unsupported cudaGraphAddKernelNode;
            unsupported cudaGraphAddMemcpyNode;
            unsupported cudaGraphAddMemsetNode;
            unsupported cudaGraphAddHostNode;
            unsupported cudaGraphAddChildGraphNode;
            unsupported cudaGraphAddDependencies;

            // Kernels.
            quiet __cudaRegisterFatBinary(wrapper: Address) -> Address => register::fat_binary;
            quiet __cudaRegisterFatBinaryEnd(handle: Address) -> i32 => register::nothing;
            quiet __cudaUnregisterFatBinary(handle: Address) -> i32 => register::nothing;
            quiet __cudaInitModule(handle: Address) -> i32 => register::nothing;
            quiet __cudaRegisterFunction(
                handle: Address, host: Address, device: Address, name: Address, threads: i32,
                thread: Address, block: Address, block_dim: Address, grid_dim: Address, warp: Address,
            ) -> i32 => register::function;
            quiet __cudaRegisterVar(
                handle: Address, host: Address, device: Address, name: Address, external: i32,
                bytes: usize, constant: i32, global: i32,
            ) -> i32 => register::variable;
            quiet __cudaGetKernel(kernel: Out<u64>, function: Address) => register::get_kernel;
            quiet cudaGetKernel(kernel: Out<u64>, function: Address) => register::get_kernel;
            quiet cudaGetFuncBySymbol(kernel: Out<u64>, function: Address) => register::get_kernel;
            quiet __cudaPushCallConfiguration(
                grid: Dim3, block: Dim3, shared: usize, stream: Address,
            ) -> u32 => launch::push;
            quiet __cudaPopCallConfiguration(
                grid: Out<Dim3>, block: Out<Dim3>, shared: Out<u64>, stream: Out<u64>,
            ) => launch::pop;
            recorded __cudaLaunchKernel(
                kernel: Address, grid: Dim3, block: Dim3, parameters: In<u64>, shared: usize,
                stream: Address,
            ) => launch::by_handle;
            recorded cudaLaunchKernel(
                function: Address, grid: Dim3, block: Dim3, parameters: In<u64>, shared: usize,
                stream: Address,
            ) => launch::by_function;
            recorded cudaLaunchCooperativeKernel(
                function: Address, grid: Dim3, block: Dim3, parameters: In<u64>, shared: usize,
                stream: Address,
            ) => launch::by_function;
            recorded cudaLaunchKernelExC(
                config: In<LaunchConfig>, function: Address, parameters: In<u64>,
            ) => launch::extended;
            quiet cudaFuncGetAttributes(
                attributes: Out<FunctionAttributes>, function: Address,
            ) => function::attributes;
            quiet cudaFuncSetAttribute(
                function: Address, attribute: i32, value: i32,
            ) => function::set_attribute;
            quiet cudaFuncSetCacheConfig(function: Address, config: i32) => function::hint;
            quiet cudaFuncSetSharedMemConfig(function: Address, config: i32) => function::hint;
            quiet cudaFuncGetName(name: Out<u64>, function: Address) => function::name;
            quiet cudaFuncGetParamInfo(
                function: Address, index: usize, offset: Out<u64>, size: Out<u64>,
            ) => function::parameter_info;
            quiet cudaKernelSetAttributeForDevice(
                kernel: Address, attribute: i32, value: i32, device: i32,
            ) => common::function::set_attribute_for_device;
            quiet cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                blocks: Out<i32>, function: Address, threads: i32, dynamic: usize,
            ) => function::max_blocks;
            quiet cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                blocks: Out<i32>, function: Address, threads: i32, dynamic: usize, flags: u32,
            ) => function::max_blocks_with_flags;
            quiet cudaOccupancyAvailableDynamicSMemPerBlock(
                bytes: Out<u64>, function: Address, blocks: i32, threads: i32,
            ) => function::available_shared;
            quiet cudaOccupancyMaxActiveClusters(
                clusters: Out<i32>, function: Address, config: In<LaunchConfig>,
            ) => function::max_clusters;
            quiet cudaOccupancyMaxPotentialClusterSize(
                size: Out<i32>, function: Address, config: In<LaunchConfig>,
            ) => function::potential_cluster;

            // Libraries of kernels.
            recorded cudaLibraryLoadData(
                library: Out<u64>, image: Address, options: Address, values: Address, count: u32,
                library_options: Address, library_values: Address, library_count: u32,
            ) => library::load;
            recorded cudaLibraryLoadFromFile(
                library: Out<u64>, path: Text, options: Address, values: Address, count: u32,
                library_options: Address, library_values: Address, library_count: u32,
            ) => library::load_file;
            recorded cudaLibraryUnload(library: Address) => common::module::unload;
            recorded cudaLibraryGetKernel(
                kernel: Out<u64>, library: Address, name: Text,
            ) => common::module::function;
            quiet cudaLibraryGetKernelCount(
                count: Out<u32>, library: Address,
            ) => common::module::function_count;
            recorded cudaLibraryGetGlobal(
                address: Out<u64>, bytes: Out<u64>, library: Address, name: Text,
            ) => common::module::global;
            recorded cudaLibraryGetManaged(
                address: Out<u64>, bytes: Out<u64>, library: Address, name: Text,
            ) => common::module::global;
            quiet cudaLibraryGetUnifiedFunction(
                function: Out<u64>, library: Address, name: Text,
            ) => library::unified_function;

            // Between processes.
            recorded cudaIpcGetMemHandle(
                handle: Out<IpcHandle>, address: Address,
            ) => common::ipc::memory_handle;
            recorded cudaIpcOpenMemHandle(
                address: Out<u64>, handle: IpcHandle, flags: u32,
            ) => common::ipc::open_memory;
            recorded cudaIpcCloseMemHandle(address: Address) => common::ipc::close_memory;
            recorded cudaIpcGetEventHandle(
                handle: Out<IpcHandle>, event: Address,
            ) => common::ipc::event_handle;
            recorded cudaIpcOpenEventHandle(event: Out<u64>, handle: IpcHandle) => common::ipc::open_event;

            // Driver functions by name, and tools.
            quiet cudaGetDriverEntryPointByVersion(
                symbol: Text, function: Out<u64>, version: u32, flags: u64, status: Out<i32>,
            ) => entry_point::by_version;
            quiet cudaGetDriverEntryPoint(
                symbol: Text, function: Out<u64>, flags: u64, status: Out<i32>,
            ) => entry_point::find;
            unsupported cudaGetExportTable;
            recorded cudaProfilerStart() => tool::profiler_start;
            recorded cudaProfilerStop() => tool::profiler_stop;

            // Arrays, textures, surfaces and graphics: no framework computes with them.
            unsupported cudaMalloc3D;
            unsupported cudaMalloc3DArray;
            unsupported cudaMallocArray;
            unsupported cudaFreeArray;
            unsupported cudaMemcpy3D;
            unsupported cudaMemcpy3DAsync;
            unsupported cudaMemcpy2DToArray;
            unsupported cudaMemset2D;
            unsupported cudaMemset2DAsync;
            unsupported cudaCreateTextureObject;
            unsupported cudaDestroyTextureObject;
            unsupported cudaCreateSurfaceObject;
            unsupported cudaDestroySurfaceObject;
            unsupported cudaImportExternalMemory;
            unsupported cudaImportExternalSemaphore;
        }
    };
}

for_each_cudart!(rows);
