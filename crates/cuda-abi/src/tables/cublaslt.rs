//! cuBLASLt.

/// Hands the rows of cuBLASLt to the macro `$with`.
#[macro_export]
macro_rules! for_each_cublaslt {
    ($with:ident) => {
        $with! {
            recorded cublasLtCreate(handle: Out<u64>) => lt::create;
            recorded cublasLtDestroy(handle: Address) => lt::destroy;
            quiet cublasLtGetVersion() -> usize => lt::version;
            quiet cublasLtGetCudartVersion() -> usize => lt::cudart_version;
            quiet cublasLtGetProperty(property: i32, value: Out<i32>) => handle::property;
            quiet cublasLtGetStatusName(code: i32) -> Address => handle::status_name;
            quiet cublasLtGetStatusString(code: i32) -> Address => handle::status_text;
            quiet cublasLtMatrixLayoutCreate(layout: Out<u64>, kind: i32, rows: u64, columns: u64, leading: i64) => lt::create_layout;
            quiet cublasLtMatrixLayoutInit_internal(layout: Out<u64>, size: usize, kind: i32, rows: u64, columns: u64, leading: i64) => lt::init_layout;
            quiet cublasLtMatrixLayoutDestroy(layout: Address) => lt::destroy_object;
            quiet cublasLtMatrixLayoutSetAttribute(layout: Address, attribute: i32, value: In<u8>, bytes: usize) => lt::set_attribute;
            quiet cublasLtMatrixLayoutGetAttribute(layout: Address, attribute: i32, value: Out<u8>, bytes: usize, written: Out<u64>) => lt::get_attribute;
            quiet cublasLtMatmulDescCreate(operation: Out<u64>, compute: i32, scale: i32) => lt::create_operation;
            quiet cublasLtMatmulDescInit_internal(operation: Out<u64>, size: usize, compute: i32, scale: i32) => lt::init_operation;
            quiet cublasLtMatmulDescDestroy(operation: Address) => lt::destroy_object;
            quiet cublasLtMatmulDescSetAttribute(operation: Address, attribute: i32, value: In<u8>, bytes: usize) => lt::set_attribute;
            quiet cublasLtMatmulDescGetAttribute(operation: Address, attribute: i32, value: Out<u8>, bytes: usize, written: Out<u64>) => lt::get_attribute;
            quiet cublasLtMatmulPreferenceCreate(preference: Out<u64>) => lt::create_preference;
            quiet cublasLtMatmulPreferenceInit_internal(preference: Out<u64>, size: usize) => lt::init_preference;
            quiet cublasLtMatmulPreferenceDestroy(preference: Address) => lt::destroy_object;
            quiet cublasLtMatmulPreferenceSetAttribute(preference: Address, attribute: i32, value: In<u8>, bytes: usize) => lt::set_attribute;
            quiet cublasLtMatmulPreferenceGetAttribute(preference: Address, attribute: i32, value: Out<u8>, bytes: usize, written: Out<u64>) => lt::get_attribute;
            recorded cublasLtMatmulAlgoGetHeuristic(handle: Address, operation: Address, a: Address, b: Address, c: Address, d: Address, preference: Address, requested: i32, results: Out<u8>, returned: Out<i32>) => lt::heuristic;
            recorded cublasLtMatmulAlgoCheck(handle: Address, operation: Address, a: Address, b: Address, c: Address, d: Address, algorithm: Address, result: Out<u8>) => lt::check;
            quiet cublasLtMatmulAlgoGetIds(handle: Address, compute: i32, scale: i32, a: i32, b: i32, c: i32, d: i32, requested: i32, ids: Out<i32>, returned: Out<i32>) => lt::algorithm_ids;
            quiet cublasLtMatmulAlgoInit(handle: Address, compute: i32, scale: i32, a: i32, b: i32, c: i32, d: i32, id: i32, algorithm: Out<u8>) => lt::init_algorithm;
            quiet cublasLtMatmulAlgoConfigGetAttribute(algorithm: Address, attribute: i32, value: Out<u8>, bytes: usize, written: Out<u64>) => lt::get_algorithm_attribute;
            quiet cublasLtMatmulAlgoConfigSetAttribute(algorithm: Address, attribute: i32, value: In<u8>, bytes: usize) => lt::set_algorithm_attribute;
            recorded cublasLtMatmul(handle: Address, operation: Address, alpha: Address, a: Address, a_layout: Address, b: Address, b_layout: Address, beta: Address, c: Address, c_layout: Address, d: Address, d_layout: Address, algorithm: Address, workspace: Address, workspace_bytes: usize, stream: Address) => lt::matmul;
            accepted cublasLtMatrixTransformDescCreate [0: handle];
            accepted cublasLtMatrixTransformDescDestroy;
            accepted cublasLtMatrixTransformDescSetAttribute;
            accepted cublasLtHeuristicsCacheGetCapacity [0: zero_usize];
            accepted cublasLtHeuristicsCacheSetCapacity;
            accepted cublasLtLoggerSetCallback;
            accepted cublasLtLoggerSetFile;
            accepted cublasLtLoggerOpenFile;
            accepted cublasLtLoggerSetLevel;
            accepted cublasLtLoggerSetMask;
            accepted cublasLtLoggerForceDisable;
            unsupported cublasLtMatrixTransform;
            unsupported cublasLtMatmulAlgoCapGetAttribute;
        }
    };
}

for_each_cublaslt!(rows);
