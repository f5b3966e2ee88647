//! cuFFT.

/// Hands the rows of cuFFT to the macro `$with`.
#[macro_export]
macro_rules! for_each_cufft {
    ($with:ident) => {
        $with! {
            quiet cufftCreate(plan: Out<i32>) => fft::create;
            quiet cufftDestroy(plan: i32) => fft::destroy;
            unsupported cufftEstimate1d;
            unsupported cufftEstimate2d;
            unsupported cufftEstimate3d;
            unsupported cufftEstimateMany;
            recorded cufftExecC2C(plan: i32, input: Address, output: Address, direction: i32) => fft::execute;
            recorded cufftExecC2R(plan: i32, input: Address, output: Address) => fft::execute_real;
            recorded cufftExecD2Z(plan: i32, input: Address, output: Address) => fft::execute_real;
            recorded cufftExecR2C(plan: i32, input: Address, output: Address) => fft::execute_real;
            recorded cufftExecZ2D(plan: i32, input: Address, output: Address) => fft::execute_real;
            recorded cufftExecZ2Z(plan: i32, input: Address, output: Address, direction: i32) => fft::execute;
            unsupported cufftGetPlanPropertyInt64;
            unsupported cufftGetProperty;
            quiet cufftGetSize(plan: i32, bytes: Out<u64>) => fft::size;
            unsupported cufftGetSize1d;
            unsupported cufftGetSize2d;
            unsupported cufftGetSize3d;
            unsupported cufftGetSizeMany;
            unsupported cufftGetSizeMany64;
            quiet cufftGetVersion(version: Out<i32>) => fft::version;
            recorded cufftMakePlan1d(plan: i32, nx: i32, kind: i32, batch: i32, bytes: Out<u64>) => fft::make_1d;
            recorded cufftMakePlan2d(plan: i32, nx: i32, ny: i32, kind: i32, bytes: Out<u64>) => fft::make_2d;
            unsupported cufftMakePlan3d;
            unsupported cufftMakePlanMany;
            unsupported cufftMakePlanMany64;
            recorded cufftPlan1d(plan: Out<i32>, nx: i32, kind: i32, batch: i32) => fft::plan_1d;
            recorded cufftPlan2d(plan: Out<i32>, nx: i32, ny: i32, kind: i32) => fft::plan_2d;
            unsupported cufftPlan3d;
            unsupported cufftPlanMany;
            unsupported cufftResetPlanProperty;
            quiet cufftSetAutoAllocation(plan: i32, automatic: i32) => fft::check_with;
            unsupported cufftSetPlanPropertyInt64;
            quiet cufftSetStream(plan: i32, stream: Address) => fft::set_stream;
            quiet cufftSetWorkArea(plan: i32, area: Address) => fft::set_work_area;
            unsupported cufftXtClearCallback;
            recorded cufftXtExec(plan: i32, input: Address, output: Address, direction: i32) => fft::execute;
            unsupported cufftXtExecDescriptor;
            unsupported cufftXtExecDescriptorC2C;
            unsupported cufftXtExecDescriptorC2R;
            unsupported cufftXtExecDescriptorD2Z;
            unsupported cufftXtExecDescriptorR2C;
            unsupported cufftXtExecDescriptorZ2D;
            unsupported cufftXtExecDescriptorZ2Z;
            unsupported cufftXtFree;
            quiet cufftXtGetSizeMany(plan: i32, rank: i32, lengths: In<i64>, in_embed: In<i64>, in_stride: i64, in_distance: i64, input: i32, out_embed: In<i64>, out_stride: i64, out_distance: i64, output: i32, batch: i64, bytes: Out<u64>, compute: i32) => fft::make_many;
            recorded cufftXtMakePlanMany(plan: i32, rank: i32, lengths: In<i64>, in_embed: In<i64>, in_stride: i64, in_distance: i64, input: i32, out_embed: In<i64>, out_stride: i64, out_distance: i64, output: i32, batch: i64, bytes: Out<u64>, compute: i32) => fft::make_many;
            unsupported cufftXtMalloc;
            unsupported cufftXtMemcpy;
            unsupported cufftXtQueryPlan;
            unsupported cufftXtSetCallback;
            unsupported cufftXtSetCallbackSharedSize;
            unsupported cufftXtSetGPUs;
            unsupported cufftXtSetJITCallback;
            unsupported cufftXtSetWorkArea;
            unsupported cufftXtSetWorkAreaPolicy;
        }
    };
}

for_each_cufft!(rows);
