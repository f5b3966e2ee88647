//! cuSPARSELt.

/// Hands the rows of cuSPARSELt to the macro `$with`.
#[macro_export]
macro_rules! for_each_cusparselt {
    ($with:ident) => {
        $with! {
            accepted cusparseLtDenseDescriptorInit;
            accepted cusparseLtInit;
            accepted cusparseLtMatDescriptorDestroy;
            accepted cusparseLtMatmul;
            accepted cusparseLtMatmulAlgGetAttribute;
            accepted cusparseLtMatmulAlgSelectionInit;
            accepted cusparseLtMatmulAlgSetAttribute;
            accepted cusparseLtMatmulDescSetAttribute;
            accepted cusparseLtMatmulDescriptorInit;
            accepted cusparseLtMatmulGetWorkspace;
            accepted cusparseLtMatmulPlanDestroy;
            accepted cusparseLtMatmulPlanInit;
            accepted cusparseLtMatmulSearch;
            accepted cusparseLtSpMMACompress2;
            accepted cusparseLtSpMMACompressedSize2;
            accepted cusparseLtStructuredDescriptorInit;
        }
    };
}

for_each_cusparselt!(rows);
