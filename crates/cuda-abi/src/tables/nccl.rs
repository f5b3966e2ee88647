//! NCCL.

/// Hands the rows of NCCL to the macro `$with`.
#[macro_export]
macro_rules! for_each_nccl {
    ($with:ident) => {
        $with! {
            quiet ncclGetVersion(version: Out<i32>) => communicator::version;
            recorded ncclGetUniqueId(id: Out<NcclUniqueId>) => communicator::unique_id;
            recorded ncclCommGetUniqueId(communicator: Address, id: Out<NcclUniqueId>) => communicator::unique_id_of;
            recorded ncclCommInitRank(communicator: Out<u64>, size: i32, id: NcclUniqueId, rank: i32) => communicator::init;
            recorded ncclCommInitRankConfig(communicator: Out<u64>, size: i32, id: NcclUniqueId, rank: i32, config: Address) => communicator::init_with_config;
            recorded ncclCommInitRankScalable(communicator: Out<u64>, size: i32, rank: i32, id_count: i32, ids: In<NcclUniqueId>, config: Address) => communicator::init_scalable;
            recorded ncclCommInitAll(communicators: Out<u64>, count: i32, devices: In<i32>) => communicator::init_all;
            recorded ncclCommSplit(parent: Address, color: i32, key: i32, communicator: Out<u64>, config: Address) => communicator::split;
            recorded ncclCommShrink(parent: Address, excluded: In<i32>, excluded_count: i32, communicator: Out<u64>, config: Address, flags: i32) => communicator::shrink;
            recorded ncclCommGrow(parent: Address, size: i32, id: In<NcclUniqueId>, rank: i32, communicator: Out<u64>, config: Address) => communicator::grow;
            recorded ncclCommFinalize(communicator: Address) => communicator::check;
            recorded ncclCommDestroy(communicator: Address) => communicator::destroy;
            recorded ncclCommAbort(communicator: Address) => communicator::destroy;
            recorded ncclCommRevoke(communicator: Address, flags: i32) => communicator::check_with;
            recorded ncclCommSuspend(communicator: Address, flags: i32) => communicator::check_with;
            recorded ncclCommResume(communicator: Address) => communicator::check;
            quiet ncclCommCount(communicator: Address, count: Out<i32>) => communicator::count;
            quiet ncclCommCuDevice(communicator: Address, device: Out<i32>) => communicator::device;
            quiet ncclCommUserRank(communicator: Address, rank: Out<i32>) => communicator::rank;
            quiet ncclCommGetAsyncError(communicator: Address, error: Out<i32>) => communicator::async_error;
            quiet ncclCommMemStats(communicator: Address, statistic: i32, value: Out<u64>) => communicator::memory_statistic;
            quiet ncclGetErrorString(code: i32) -> Address => communicator::error_text;
            quiet ncclGetLastError(communicator: Address) -> Address => communicator::last_error;
            quiet ncclResetDebugInit() -> () => communicator::nothing;
            recorded ncclCommRegister(communicator: Address, buffer: Address, bytes: usize, handle: Out<u64>) => buffer::register;
            recorded ncclCommDeregister(communicator: Address, handle: Address) => buffer::deregister;
            recorded ncclCommWindowRegister(communicator: Address, buffer: Address, bytes: usize, window: Out<u64>, flags: i32) => buffer::register_window;
            recorded ncclCommWindowDeregister(communicator: Address, window: Address) => buffer::deregister;
            quiet ncclWinGetUserPtr(communicator: Address, window: Address, pointer: Out<u64>) => buffer::window_pointer;
            recorded ncclMemAlloc(address: Out<u64>, bytes: usize) => buffer::allocate;
            recorded ncclMemFree(address: Address) => buffer::free;
            recorded ncclRedOpCreatePreMulSum(operator: Out<i32>, scalar: Address, dtype: i32, residence: i32, communicator: Address) => communicator::create_operator;
            recorded ncclRedOpDestroy(operator: i32, communicator: Address) => communicator::destroy_operator;
            quiet ncclGroupStart() => group::start;
            quiet ncclGroupEnd() => group::end;
            recorded ncclGroupSimulateEnd(information: Address) => group::simulate_end;
            recorded ncclAllReduce(send: Address, receive: Address, count: usize, dtype: i32, operator: i32, communicator: Address, stream: Address) => collective::all_reduce;
            recorded ncclReduce(send: Address, receive: Address, count: usize, dtype: i32, operator: i32, root: i32, communicator: Address, stream: Address) => collective::reduce;
            recorded ncclBroadcast(send: Address, receive: Address, count: usize, dtype: i32, root: i32, communicator: Address, stream: Address) => collective::broadcast;
            recorded ncclBcast(buffer: Address, count: usize, dtype: i32, root: i32, communicator: Address, stream: Address) => collective::broadcast_in_place;
            recorded ncclAllGather(send: Address, receive: Address, count: usize, dtype: i32, communicator: Address, stream: Address) => collective::all_gather;
            recorded ncclReduceScatter(send: Address, receive: Address, count: usize, dtype: i32, operator: i32, communicator: Address, stream: Address) => collective::reduce_scatter;
            recorded ncclAlltoAll(send: Address, receive: Address, count: usize, dtype: i32, communicator: Address, stream: Address) => collective::all_to_all;
            recorded ncclGather(send: Address, receive: Address, count: usize, dtype: i32, root: i32, communicator: Address, stream: Address) => collective::gather;
            recorded ncclScatter(send: Address, receive: Address, count: usize, dtype: i32, root: i32, communicator: Address, stream: Address) => collective::scatter;
            recorded ncclSend(send: Address, count: usize, dtype: i32, peer: i32, communicator: Address, stream: Address) => collective::send;
            recorded ncclRecv(receive: Address, count: usize, dtype: i32, peer: i32, communicator: Address, stream: Address) => collective::receive;
            unsupported ncclCommQueryProperties;
            unsupported ncclDevCommCreate;
            unsupported ncclDevCommDestroy;
            unsupported ncclGetLsaDevicePointer;
            unsupported ncclGetLsaMultimemDevicePointer;
            unsupported ncclGetMultimemDevicePointer;
            unsupported ncclGetPeerDevicePointer;
            unsupported ncclGinBarrierCreateRequirement;
            unsupported ncclGinInboxA2ACreateRequirement;
            unsupported ncclGinOutboxCreateRequirement;
            unsupported ncclLLA2ACalcSlots;
            unsupported ncclLLA2ACreateRequirement;
            unsupported ncclLsaBarrierCreateRequirement;
            unsupported ncclParamBind;
            unsupported ncclParamDumpAll;
            unsupported ncclParamGet;
            unsupported ncclParamGetAllParameterKeys;
            unsupported ncclParamGetI16;
            unsupported ncclParamGetI32;
            unsupported ncclParamGetI64;
            unsupported ncclParamGetI8;
            unsupported ncclParamGetParameter;
            unsupported ncclParamGetStr;
            unsupported ncclParamGetU16;
            unsupported ncclParamGetU32;
            unsupported ncclParamGetU64;
            unsupported ncclParamGetU8;
            unsupported ncclPutSignal;
            unsupported ncclSignal;
            unsupported ncclTeamLsa;
            unsupported ncclTeamRail;
            unsupported ncclTeamRankToLsa;
            unsupported ncclTeamRankToWorld;
            unsupported ncclTeamWorld;
            unsupported ncclWaitSignal;
        }
    };
}

for_each_nccl!(rows);
