//! The exported functions, made from the tables, and the look-up of functions by name.

#![expect(unsafe_code, reason = "exports symbols under the libraries' own names")]

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// An exported function by name.
pub(crate) struct Entry {
    symbol: &'static str,
    function: *const (),
}

// SAFETY: the address of a function.
unsafe impl Sync for Entry {}

/// The address of an exported function; `None` when there is none of that name.
pub(crate) fn find(symbol: &str) -> Option<usize> {
    static BY_NAME: OnceLock<BTreeMap<&'static str, usize>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        all()
            .iter()
            .flat_map(|entries| entries.iter())
            .map(|entry| (entry.symbol, entry.function as usize))
            .collect()
    });
    by_name.get(symbol).copied()
}

macro_rules! export_row {
    (recorded $name:ident ($($arg:ident : $ty:ty),*) => $handler:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::door::enter::<Error, _>(Symbol::$name.id(), |call| $handler(call, $($arg),*))
        }
    };
    (quiet $name:ident ($($arg:ident : $ty:ty),*) => $handler:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::door::enter_quiet::<Error, _>(Symbol::$name.id(), |call| $handler(call, $($arg),*))
        }
    };
    (recorded $name:ident ($($arg:ident : $ty:ty),*) -> $ret:ty => $handler:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> $ret {
            $crate::door::enter_value::<$ret>(Symbol::$name.id(), |call| $handler(call, $($arg),*))
        }
    };
    (quiet $name:ident ($($arg:ident : $ty:ty),*) -> $ret:ty => $handler:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> $ret {
            $crate::door::enter_quiet_value::<$ret>(Symbol::$name.id(), |call| $handler(call, $($arg),*))
        }
    };
    (accepted $name:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> i32 {
            $crate::door::accept(Symbol::$name.id(), [0; 4], &[])
        }
    };
    // Callers pass fewer arguments than are declared. Those that no action names are never read, so what lies in their
    // registers and stack slots does not matter.
    (accepted $name:ident [$($index:literal : $action:ident),*]) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            a0: u64, a1: u64, a2: u64, a3: u64, a4: u64, a5: u64, a6: u64, a7: u64, a8: u64, a9: u64,
            a10: u64, a11: u64, a12: u64, a13: u64, a14: u64, a15: u64, a16: u64, a17: u64, a18: u64, a19: u64,
        ) -> i32 {
            let arguments = [
                a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
            ];
            $crate::door::accept(
                Symbol::$name.id(),
                [0; 4],
                &[$((arguments[$index], export_action!($action))),*],
            )
        }
    };
    (unsupported $name:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> i32 {
            $crate::door::refuse::<Error>(Symbol::$name.id())
        }
    };
    (data $name:ident) => {
        #[unsafe(no_mangle)]
        pub static $name: ::std::sync::atomic::AtomicI32 = ::std::sync::atomic::AtomicI32::new(0);
    };
}

macro_rules! export_action {
    (zero_usize) => {
        ::trompe_cuda_abi::Action::ZeroUsize
    };
    (zero_i32) => {
        ::trompe_cuda_abi::Action::ZeroI32
    };
    (one_i32) => {
        ::trompe_cuda_abi::Action::OneI32
    };
    (handle) => {
        ::trompe_cuda_abi::Action::Handle
    };
}

macro_rules! entry_address {
    (data $name:ident) => {
        (&raw const $name).cast::<()>()
    };
    ($class:ident $name:ident) => {
        $name as *const ()
    };
}

/// Expands a table into exported functions and `ENTRIES`.
macro_rules! export_rows {
    ($(
        $class:ident $name:ident
        $(( $($arg:ident : $ty:ty),* $(,)? ))?
        $(-> $ret:ty)?
        $(=> $handler:path)?
        $([ $($index:literal : $action:ident),* $(,)? ])?
        ;
    )*) => {
        $(export_row! {
            $class $name $(($($arg : $ty),*))? $(-> $ret)? $(=> $handler)? $([$($index : $action),*])?
        })*

        pub(super) static ENTRIES: &[$crate::export::Entry] = &[
            $($crate::export::Entry { symbol: stringify!($name), function: entry_address!($class $name) },)*
        ];
    };
}

/// One module per library: its table expanded where its handlers and types are in scope.
macro_rules! libraries {
    ($($library:ident { $with:ident; $($import:item)* })*) => {
        $(
            #[expect(unreachable_pub, reason = "exported symbols")]
            #[allow(non_snake_case, non_upper_case_globals, unused_imports, clippy::too_many_arguments,
                reason = "the library's own names and signatures; not every table has each")]
            mod $library {
                use trompe_cuda_abi::pointer::{In, Out, Text};
                use trompe_cuda_abi::tables::$library::Symbol;
                $($import)*

                trompe_cuda_abi::$with!(export_rows);
            }
        )*

        fn all() -> Vec<&'static [Entry]> {
            vec![$($library::ENTRIES),*]
        }
    };
}

libraries! {
    cudart {
        for_each_cudart;
        use trompe_cuda_abi::runtime::{
            Address, DeviceProperties, DeviceProperties12, Dim3, FunctionAttributes, IpcHandle, LaunchConfig, PointerAttributes,
            RuntimeError as Error,
        };
        use crate::common::{self, tool};
        use crate::cudart::{copy, device, earlier, entry_point, error, function, launch, library, pointer, register, symbol};
    }
    cuda {
        for_each_cuda;
        use trompe_cuda_abi::driver::{AllocationProperties, DriverError as Error, DriverLaunchConfig};
        use trompe_cuda_abi::runtime::{Address, IpcHandle};
        use crate::common::{self, tool};
        use crate::cuda::{
            context, copy, device, entry_point, error, fill, launch, link, module, pointer, stream_memory,
            tensor_map, virtual_memory,
        };
        use crate::cudart::{device as cudart_device, library as cudart_library};
    }
    cublas {
        for_each_cublas;
        use trompe_cuda_abi::libraries::BlasError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::cublas::{grouped, handle, other, product, solve, transfer, vector};
    }
    cublaslt {
        for_each_cublaslt;
        use trompe_cuda_abi::libraries::BlasError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::cublas::{handle, lt};
    }
    cudnn {
        for_each_cudnn;
        use trompe_cuda_abi::libraries::DnnStatus as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::cudnn::{backend, convolution, descriptor, handle, passes, recurrent};
    }
    cufft {
        for_each_cufft;
        use trompe_cuda_abi::libraries::FftError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::fft;
    }
    curand {
        for_each_curand;
        use trompe_cuda_abi::libraries::RandomError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::random;
    }
    cusolver {
        for_each_cusolver;
        use trompe_cuda_abi::libraries::SolverError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::solver;
    }
    cusparse {
        for_each_cusparse;
        use trompe_cuda_abi::libraries::SparseError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::sparse;
    }
    cusparselt {
        for_each_cusparselt;
        use trompe_cuda_abi::libraries::SparseError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::structured;
    }
    nccl {
        for_each_nccl;
        use trompe_cuda_abi::libraries::{NcclError as Error, NcclUniqueId};
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::nccl::{buffer, collective, communicator, group};
    }
    nvrtc {
        for_each_nvrtc;
        use trompe_cuda_abi::libraries::CompilerError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::nvrtc::compiler;
    }
    cupti {
        for_each_cupti;
        use trompe_cuda_abi::libraries::ProfilingError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::profiling;
    }
    cufile {
        for_each_cufile;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::file;
    }
    nvshmem {
        for_each_nvshmem;
        use trompe_cuda_abi::libraries::ShmemError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::symmetric;
    }
    nvml {
        for_each_nvml;
        use trompe_cuda_abi::libraries::ManagementError as Error;
        use trompe_cuda_abi::runtime::Address;
        use crate::libs::nvml::{device, limits, links, memory, system};
    }
    nvtx {
        for_each_nvtx;
    }
}
