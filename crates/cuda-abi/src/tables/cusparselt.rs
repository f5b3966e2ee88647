//! cuSPARSELt.

/// Hands the rows of cuSPARSELt to the macro `$with`.
#[macro_export]
macro_rules! for_each_cusparselt {
    ($with:ident) => {
        $with! {
            recorded cusparseLtDenseDescriptorInit(handle: Address, matrix: Address, rows: i64, columns: i64, leading: i64, alignment: u32, dtype: i32, order: i32) => structured::init_matrix;
            accepted cusparseLtDestroy;
            quiet cusparseLtGetVersion(handle: Address, version: Out<i32>) => structured::version;
            accepted cusparseLtInit;
            accepted cusparseLtMatDescSetAttribute;
            accepted cusparseLtMatDescriptorDestroy;
            recorded cusparseLtMatmul(handle: Address, plan: Address, alpha: Address, a: Address, b: Address, beta: Address, c: Address, d: Address, workspace: Address, streams: In<u64>, stream_count: i32) => structured::multiply;
            quiet cusparseLtMatmulAlgGetAttribute(handle: Address, selection: Address, attribute: i32, value: Out<u8>, bytes: usize) => structured::algorithm_attribute;
            accepted cusparseLtMatmulAlgSelectionDestroy;
            accepted cusparseLtMatmulAlgSelectionInit;
            accepted cusparseLtMatmulAlgSetAttribute;
            accepted cusparseLtMatmulDescSetAttribute;
            recorded cusparseLtMatmulDescriptorInit(handle: Address, operation: Address, op_a: i32, op_b: i32, a: Address, b: Address, c: Address, d: Address, compute: i32) => structured::init_operation;
            accepted cusparseLtMatmulGetWorkspace [2: zero_usize];
            accepted cusparseLtMatmulPlanDestroy;
            recorded cusparseLtMatmulPlanInit(handle: Address, plan: Address, operation: Address, selection: Address) => structured::init_plan;
            accepted cusparseLtMatmulSearch;
            unsupported cusparseLtSpMMACompress;
            recorded cusparseLtSpMMACompress2(handle: Address, matrix: Address, is_a: i32, operation: i32, dense: Address, compressed: Address, buffer: Address, stream: Address) => structured::compress;
            unsupported cusparseLtSpMMACompressedSize;
            quiet cusparseLtSpMMACompressedSize2(handle: Address, matrix: Address, compressed: Out<u64>, buffer: Out<u64>) => structured::compressed_size;
            unsupported cusparseLtSpMMAPrune;
            unsupported cusparseLtSpMMAPrune2;
            unsupported cusparseLtSpMMAPruneCheck;
            unsupported cusparseLtSpMMAPruneCheck2;
            recorded cusparseLtStructuredDescriptorInit(handle: Address, matrix: Address, rows: i64, columns: i64, leading: i64, alignment: u32, dtype: i32, order: i32) => structured::init_matrix;
        }
    };
}

for_each_cusparselt!(rows);
