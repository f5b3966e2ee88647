//! NCCL.

/// Hands the rows of NCCL to the macro `$with`.
#[macro_export]
macro_rules! for_each_nccl {
    ($with:ident) => {
        $with! {
            accepted ncclAllGather;
            accepted ncclAllReduce;
            accepted ncclAlltoAll;
            accepted ncclBcast;
            accepted ncclBroadcast;
            accepted ncclCommAbort;
            accepted ncclCommCount;
            accepted ncclCommDeregister;
            accepted ncclCommDestroy;
            accepted ncclCommFinalize;
            accepted ncclCommGetAsyncError;
            accepted ncclCommGetUniqueId;
            accepted ncclCommGrow;
            accepted ncclCommInitAll;
            accepted ncclCommInitRank;
            accepted ncclCommInitRankConfig;
            accepted ncclCommInitRankScalable;
            accepted ncclCommMemStats;
            accepted ncclCommRegister;
            accepted ncclCommResume;
            accepted ncclCommRevoke;
            accepted ncclCommShrink;
            accepted ncclCommSplit;
            accepted ncclCommSuspend;
            accepted ncclCommUserRank;
            accepted ncclCommWindowDeregister;
            accepted ncclCommWindowRegister;
            accepted ncclDevCommCreate;
            accepted ncclDevCommDestroy;
            accepted ncclGather;
            accepted ncclGetErrorString;
            accepted ncclGetLastError;
            accepted ncclGetLsaMultimemDevicePointer;
            accepted ncclGetPeerDevicePointer;
            accepted ncclGetUniqueId;
            accepted ncclGetVersion;
            accepted ncclGroupEnd;
            accepted ncclGroupSimulateEnd;
            accepted ncclGroupStart;
            accepted ncclMemAlloc;
            accepted ncclMemFree;
            accepted ncclPutSignal;
            accepted ncclRecv;
            accepted ncclRedOpCreatePreMulSum;
            accepted ncclRedOpDestroy;
            accepted ncclReduce;
            accepted ncclReduceScatter;
            accepted ncclSend;
            accepted ncclSignal;
            accepted ncclWaitSignal;
            accepted ncclWinGetUserPtr;
        }
    };
}

for_each_nccl!(rows);
