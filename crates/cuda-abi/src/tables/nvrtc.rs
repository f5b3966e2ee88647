//! NVRTC.

/// Hands the rows of NVRTC to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvrtc {
    ($with:ident) => {
        $with! {
            quiet nvrtcAddNameExpression(program: Address, expression: Text) => compiler::add_name;
            recorded nvrtcCompileProgram(program: Address, option_count: i32, options: Address) => compiler::compile;
            recorded nvrtcCreateProgram(program: Out<u64>, source: Text, name: Text, header_count: i32, headers: In<u64>, include_names: Address) => compiler::create;
            recorded nvrtcDestroyProgram(program: Out<u64>) => compiler::destroy;
            quiet nvrtcGetCUBIN(program: Address, image: Out<u8>) => compiler::image;
            quiet nvrtcGetCUBINSize(program: Address, bytes: Out<u64>) => compiler::image_size;
            quiet nvrtcGetErrorString(code: i32) -> Address => compiler::error_text;
            quiet nvrtcGetLTOIR(program: Address, image: Out<u8>) => compiler::image;
            quiet nvrtcGetLTOIRSize(program: Address, bytes: Out<u64>) => compiler::image_size;
            quiet nvrtcGetLoweredName(program: Address, expression: Text, lowered: Out<u64>) => compiler::lowered_name;
            quiet nvrtcGetNumSupportedArchs(count: Out<i32>) => compiler::architecture_count;
            unsupported nvrtcGetOptiXIR;
            unsupported nvrtcGetOptiXIRSize;
            unsupported nvrtcGetPCHCreateStatus;
            unsupported nvrtcGetPCHHeapSize;
            unsupported nvrtcGetPCHHeapSizeRequired;
            quiet nvrtcGetPTX(program: Address, image: Out<u8>) => compiler::image;
            quiet nvrtcGetPTXSize(program: Address, bytes: Out<u64>) => compiler::image_size;
            quiet nvrtcGetProgramLog(program: Address, log: Out<u8>) => compiler::log;
            quiet nvrtcGetProgramLogSize(program: Address, bytes: Out<u64>) => compiler::log_size;
            quiet nvrtcGetSupportedArchs(architectures: Out<i32>) => compiler::architectures;
            unsupported nvrtcGetTileIR;
            unsupported nvrtcGetTileIRSize;
            unsupported nvrtcSetPCHHeapSize;
            quiet nvrtcVersion(major: Out<i32>, minor: Out<i32>) => compiler::version;
        }
    };
}

for_each_nvrtc!(rows);
