//! The API tables, and the list of libraries made from them.
//!
//! Each child module holds one `for_each_*!` macro, which hands all rows of a library to the macro named by its
//! argument, and the expansion of the rows into [`Row`]s and a `Symbol` enumeration. Ids run through all
//! libraries in the order of [`LIBRARIES`].

use crate::row::{ApiId, Library, Row};

macro_rules! class {
    (recorded) => {
        $crate::row::Class::Recorded
    };
    (quiet) => {
        $crate::row::Class::Quiet
    };
    (accepted) => {
        $crate::row::Class::Accepted
    };
    (unsupported) => {
        $crate::row::Class::Unsupported
    };
    (data) => {
        $crate::row::Class::Data
    };
}

macro_rules! action {
    (zero_usize) => {
        $crate::row::Action::ZeroUsize
    };
    (zero_i32) => {
        $crate::row::Action::ZeroI32
    };
    (one_i32) => {
        $crate::row::Action::OneI32
    };
    (handle) => {
        $crate::row::Action::Handle
    };
}

/// Expands a table into `Symbol` (one variant per row, numbered from 0) and `ROWS`.
macro_rules! rows {
    ($(
        $class:ident $name:ident
        $(( $($arg:ident : $ty:ty),* $(,)? ))?
        $(-> $ret:ty)?
        $(=> $handler:path)?
        $([ $($index:literal : $action:ident),* $(,)? ])?
        ;
    )*) => {
        /// Rows of this library by name; the number is the row's place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        #[expect(non_camel_case_types, missing_docs, reason = "the library's own names")]
        pub enum Symbol {
            $($name,)*
        }

        /// The rows of this library.
        pub const ROWS: &[$crate::row::Row] = &[
            $($crate::row::Row {
                symbol: stringify!($name),
                class: class!($class),
                actions: &[$($(($index, action!($action))),*)?],
            },)*
        ];
    };
}

/// Declares the libraries in id order and their base ids.
macro_rules! libraries {
    (@base $base:expr;) => {};
    (@base $base:expr; $module:ident $($rest:ident)*) => {
        impl $module::Symbol {
            /// Id of this function among all functions.
            #[must_use]
            pub const fn id(self) -> ApiId {
                ApiId(Self::BASE + self as u16)
            }

            const BASE: u16 = $base;
        }
        libraries!(@base ($base + $module::ROWS.len() as u16); $($rest)*);
    };
    ($($module:ident: $soname:literal, $node:expr;)*) => {
        $(pub mod $module;)*

        libraries!(@base 0; $($module)*);

        /// Every library, in id order.
        pub const LIBRARIES: &[Library] = &[
            $(Library {
                name: stringify!($module),
                soname: $soname,
                version_node: $node,
                base: $module::Symbol::BASE,
                rows: $module::ROWS,
            },)*
        ];
    };
}

libraries! {
    cudart: "libcudart.so.13", Some("libcudart.so.13");
    cuda: "libcuda.so.1", None;
    cublas: "libcublas.so.13", Some("libcublas.so.13");
    cublaslt: "libcublasLt.so.13", Some("libcublasLt.so.13");
    cudnn: "libcudnn.so.9", Some("libcudnn.so.9");
    cufft: "libcufft.so.12", Some("libcufft.so.12");
    curand: "libcurand.so.10", Some("libcurand.so.10");
    cusolver: "libcusolver.so.12", Some("libcusolver.so.12");
    cusparse: "libcusparse.so.12", Some("libcusparse.so.12");
    cusparselt: "libcusparseLt.so.0", None;
    nccl: "libnccl.so.2", None;
    nvrtc: "libnvrtc.so.13", Some("libnvrtc.so.13");
    cupti: "libcupti.so.13", Some("libcupti.so.13");
    cufile: "libcufile.so.0", None;
    nvshmem: "libnvshmem_host.so.3", Some("NVSHMEM");
    nvml: "libnvidia-ml.so.1", None;
    nvtx: "libnvToolsExt.so.1", Some("libnvToolsExt.so.1");
}

/// Files that a program may need beside [`LIBRARIES`], without functions of their own: the parts into which cuDNN 9 is
/// split, each with a version node of its own name.
pub const COMPANIONS: &[Library] = &[
    companion("cudnn_adv", "libcudnn_adv.so.9"),
    companion("cudnn_cnn", "libcudnn_cnn.so.9"),
    companion("cudnn_engines_precompiled", "libcudnn_engines_precompiled.so.9"),
    companion("cudnn_engines_runtime_compiled", "libcudnn_engines_runtime_compiled.so.9"),
    companion("cudnn_engines_tensor_ir", "libcudnn_engines_tensor_ir.so.9"),
    companion("cudnn_ext", "libcudnn_ext.so.9"),
    companion("cudnn_graph", "libcudnn_graph.so.9"),
    companion("cudnn_heuristic", "libcudnn_heuristic.so.9"),
    companion("cudnn_ops", "libcudnn_ops.so.9"),
];

/// The names that libraries have in CUDA 12, where they differ: the same functions stand behind both. Named after the
/// library with `_12` added.
pub const OF_CUDA_12: &[Library] = &[
    companion("cudart_12", "libcudart.so.12"),
    companion("cublas_12", "libcublas.so.12"),
    companion("cublaslt_12", "libcublasLt.so.12"),
    companion("cufft_12", "libcufft.so.11"),
    companion("cusolver_12", "libcusolver.so.11"),
    companion("nvrtc_12", "libnvrtc.so.12"),
    companion("cupti_12", "libcupti.so.12"),
];

const fn companion(name: &'static str, soname: &'static str) -> Library {
    Library { name, soname, version_node: Some(soname), base: 0, rows: &[] }
}

/// Number of functions over all libraries.
pub const COUNT: usize = {
    let mut total = 0;
    let mut i = 0;
    while i < LIBRARIES.len() {
        total += LIBRARIES[i].rows.len();
        i += 1;
    }
    total
};

/// The library and row of a function.
///
/// # Panics
/// When `id` is not one of this build.
#[must_use]
pub fn row(id: ApiId) -> (&'static Library, &'static Row) {
    let library = LIBRARIES.iter().rev().find(|library| library.base <= id.0).expect("the first base is 0");
    (library, &library.rows[(id.0 - library.base) as usize])
}
