//! cuBLASLt.

/// Hands the rows of cuBLASLt to the macro `$with`.
#[macro_export]
macro_rules! for_each_cublaslt {
    ($with:ident) => {
        $with! {
            accepted cublasLtGetVersion;
            accepted cublasLtMatmul;
            accepted cublasLtMatmulAlgoCheck;
            accepted cublasLtMatmulAlgoConfigGetAttribute;
            accepted cublasLtMatmulAlgoConfigSetAttribute;
            accepted cublasLtMatmulAlgoGetHeuristic;
            accepted cublasLtMatmulAlgoInit;
            accepted cublasLtMatmulDescCreate;
            accepted cublasLtMatmulDescDestroy;
            accepted cublasLtMatmulDescSetAttribute;
            accepted cublasLtMatmulPreferenceCreate;
            accepted cublasLtMatmulPreferenceDestroy;
            accepted cublasLtMatmulPreferenceSetAttribute;
            accepted cublasLtMatrixLayoutCreate;
            accepted cublasLtMatrixLayoutDestroy;
            accepted cublasLtMatrixLayoutSetAttribute;
        }
    };
}

for_each_cublaslt!(rows);
