//! NVML.

/// Hands the rows of NVML to the macro `$with`.
#[macro_export]
macro_rules! for_each_nvml {
    ($with:ident) => {
        $with! {
            accepted nvmlInit_v2;
            accepted nvmlShutdown;
        }
    };
}

for_each_nvml!(rows);
