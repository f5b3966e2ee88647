//! NVTX as a library, as PyTorch up to 2.5 links it. Marks are read by the Python hook, so these do nothing.

/// Hands the rows of NVTX to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvtx {
    ($with:ident) => {
        $with! {
            accepted nvtxDomainCreateA;
            accepted nvtxDomainDestroy;
            accepted nvtxDomainMarkEx;
            accepted nvtxDomainRangeEnd;
            accepted nvtxDomainRangePop;
            accepted nvtxDomainRangePushEx;
            accepted nvtxDomainRangeStartEx;
            accepted nvtxInitialize;
            accepted nvtxMarkA;
            accepted nvtxMarkEx;
            accepted nvtxMarkW;
            accepted nvtxNameOsThreadA;
            accepted nvtxRangeEnd;
            accepted nvtxRangePop;
            accepted nvtxRangePushA;
            accepted nvtxRangePushEx;
            accepted nvtxRangePushW;
            accepted nvtxRangeStartA;
            accepted nvtxRangeStartEx;
            accepted nvtxRangeStartW;
        }
    };
}

for_each_nvtx!(rows);
