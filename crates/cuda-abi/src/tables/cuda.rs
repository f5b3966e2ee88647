//! The CUDA driver.

/// Hands the rows of the CUDA driver to the macro `$with`.
#[macro_export]
macro_rules! for_each_cuda {
    ($with:ident) => {
        $with! {
            quiet cuGetErrorName(code: i32, name: Out<u64>) => error::name;
            quiet cuGetErrorString(code: i32, text: Out<u64>) => error::text;
            unsupported cuGetExportTable;
            accepted cuCtxGetCurrent;
            accepted cuCtxSetCurrent;
            accepted cuDeviceGet;
            accepted cuDeviceGetAttribute;
            accepted cuDevicePrimaryCtxGetState;
            accepted cuDevicePrimaryCtxRetain;
            accepted cuFuncGetAttribute;
            accepted cuFuncSetAttribute;
            accepted cuFuncSetCacheConfig;
            accepted cuLaunchCooperativeKernel;
            accepted cuLaunchKernel;
            accepted cuLinkAddData_v2;
            accepted cuLinkComplete;
            accepted cuLinkCreate_v2;
            accepted cuModuleGetFunction;
            accepted cuModuleLoad;
            accepted cuModuleLoadData;
            accepted cuModuleLoadDataEx;
            accepted cuModuleUnload;
            accepted cuOccupancyMaxActiveBlocksPerMultiprocessor;
            accepted cuPointerGetAttribute;
            accepted cuTensorMapEncodeTiled;
        }
    };
}

for_each_cuda!(rows);
