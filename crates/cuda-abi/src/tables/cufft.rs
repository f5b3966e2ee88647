//! cuFFT.

/// Hands the rows of cuFFT to the macro `$with`.
#[macro_export]
macro_rules! for_each_cufft {
    ($with:ident) => {
        $with! {
            accepted cufftCreate;
            accepted cufftDestroy;
            accepted cufftSetAutoAllocation;
            accepted cufftSetStream;
            accepted cufftSetWorkArea;
            accepted cufftXtExec;
            accepted cufftXtMakePlanMany;
        }
    };
}

for_each_cufft!(rows);
