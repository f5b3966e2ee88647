//! NVRTC.

/// Hands the rows of NVRTC to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvrtc {
    ($with:ident) => {
        $with! {
            accepted nvrtcAddNameExpression;
            accepted nvrtcCompileProgram;
            accepted nvrtcCreateProgram;
            accepted nvrtcDestroyProgram;
            accepted nvrtcGetCUBIN;
            accepted nvrtcGetCUBINSize;
            accepted nvrtcGetErrorString;
            accepted nvrtcGetLoweredName;
            accepted nvrtcGetPTX;
            accepted nvrtcGetPTXSize;
            accepted nvrtcGetProgramLog;
            accepted nvrtcGetProgramLogSize;
            accepted nvrtcVersion;
        }
    };
}

for_each_nvrtc!(rows);
