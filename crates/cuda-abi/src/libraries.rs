//! Status codes of the libraries above the runtime.
//!
//! Numbers and names are the libraries' own; the texts are ours.

crate::status! {
    /// A `cublasStatus_t` other than success (cuBLAS and cuBLASLt).
    BlasError: not_supported = NOT_SUPPORTED, internal = INTERNAL_ERROR, null = INVALID_VALUE;
    NOT_INITIALIZED = 1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized";
    ALLOC_FAILED = 3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed";
    INVALID_VALUE = 7, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as an argument";
    ARCH_MISMATCH = 8, "CUBLAS_STATUS_ARCH_MISMATCH", "a feature is absent from the device architecture";
    MAPPING_ERROR = 11, "CUBLAS_STATUS_MAPPING_ERROR", "access to device memory space failed";
    EXECUTION_FAILED = 13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the device";
    INTERNAL_ERROR = 14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed";
    NOT_SUPPORTED = 15, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported";
}

crate::status! {
    /// A `cudnnStatus_t` other than success.
    DnnStatus: not_supported = NOT_SUPPORTED, internal = INTERNAL_ERROR, null = BAD_PARAM_NULL_POINTER;
    NOT_INITIALIZED = 1001, "CUDNN_STATUS_NOT_INITIALIZED", "the library was not initialized";
    BAD_PARAM = 2000, "CUDNN_STATUS_BAD_PARAM", "a parameter is invalid";
    BAD_PARAM_NULL_POINTER = 2002, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER", "a required pointer is null";
    BAD_PARAM_NOT_FINALIZED = 2004, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED", "a descriptor is not finalized";
    BAD_PARAM_SIZE_INSUFFICIENT = 2006, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT", "a buffer is too small";
    NOT_SUPPORTED = 3000, "CUDNN_STATUS_NOT_SUPPORTED", "the operation is not supported";
    INTERNAL_ERROR = 4000, "CUDNN_STATUS_INTERNAL_ERROR", "an internal operation failed";
    DEVICE_ALLOCATION_FAILED = 4004, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "no device memory";
    EXECUTION_FAILED = 5000, "CUDNN_STATUS_EXECUTION_FAILED", "the execution failed";
}

crate::status! {
    /// A `cufftResult` other than success.
    FftError: not_supported = NOT_SUPPORTED, internal = INTERNAL_ERROR, null = INVALID_VALUE;
    INVALID_PLAN = 1, "CUFFT_INVALID_PLAN", "the plan handle is invalid";
    ALLOC_FAILED = 2, "CUFFT_ALLOC_FAILED", "memory could not be allocated";
    INVALID_VALUE = 4, "CUFFT_INVALID_VALUE", "an argument is invalid";
    INTERNAL_ERROR = 5, "CUFFT_INTERNAL_ERROR", "an internal operation failed";
    NOT_SUPPORTED = 16, "CUFFT_NOT_SUPPORTED", "the operation is not supported";
}

crate::status! {
    /// A `cusolverStatus_t` other than success.
    SolverError: not_supported = NOT_SUPPORTED, internal = INTERNAL_ERROR, null = INVALID_VALUE;
    NOT_INITIALIZED = 1, "CUSOLVER_STATUS_NOT_INITIALIZED", "the library was not initialized";
    ALLOC_FAILED = 2, "CUSOLVER_STATUS_ALLOC_FAILED", "the resource allocation failed";
    INVALID_VALUE = 3, "CUSOLVER_STATUS_INVALID_VALUE", "an argument is invalid";
    INTERNAL_ERROR = 7, "CUSOLVER_STATUS_INTERNAL_ERROR", "an internal operation failed";
    NOT_SUPPORTED = 9, "CUSOLVER_STATUS_NOT_SUPPORTED", "the operation is not supported";
}

crate::status! {
    /// A `cusparseStatus_t` other than success (cuSPARSE and cuSPARSELt).
    SparseError: not_supported = NOT_SUPPORTED, internal = INTERNAL_ERROR, null = INVALID_VALUE;
    NOT_INITIALIZED = 1, "CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error";
    ALLOC_FAILED = 2, "CUSPARSE_STATUS_ALLOC_FAILED", "out of memory";
    INVALID_VALUE = 3, "CUSPARSE_STATUS_INVALID_VALUE", "invalid value";
    INTERNAL_ERROR = 7, "CUSPARSE_STATUS_INTERNAL_ERROR", "internal error";
    NOT_SUPPORTED = 10, "CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported";
}

crate::status! {
    /// A `curandStatus_t` other than success.
    RandomError: not_supported = TYPE_ERROR, internal = INTERNAL_ERROR, null = NOT_INITIALIZED;
    NOT_INITIALIZED = 101, "CURAND_STATUS_NOT_INITIALIZED", "the generator is not initialized";
    ALLOCATION_FAILED = 102, "CURAND_STATUS_ALLOCATION_FAILED", "memory allocation failed";
    TYPE_ERROR = 103, "CURAND_STATUS_TYPE_ERROR", "the generator is of the wrong type";
    INTERNAL_ERROR = 999, "CURAND_STATUS_INTERNAL_ERROR", "internal library error";
}

crate::status! {
    /// An `ncclResult_t` other than success.
    NcclError: not_supported = INVALID_USAGE, internal = INTERNAL_ERROR, null = INVALID_ARGUMENT;
    UNHANDLED_CUDA_ERROR = 1, "ncclUnhandledCudaError", "unhandled cuda error";
    SYSTEM_ERROR = 2, "ncclSystemError", "unhandled system error";
    INTERNAL_ERROR = 3, "ncclInternalError", "internal error";
    INVALID_ARGUMENT = 4, "ncclInvalidArgument", "invalid argument";
    INVALID_USAGE = 5, "ncclInvalidUsage", "invalid usage";
    REMOTE_ERROR = 6, "ncclRemoteError", "remote process exited or there was a network error";
}

crate::status! {
    /// An `nvrtcResult` other than success.
    CompilerError: not_supported = INVALID_OPTION, internal = INTERNAL_ERROR, null = INVALID_INPUT;
    OUT_OF_MEMORY = 1, "NVRTC_ERROR_OUT_OF_MEMORY", "out of memory";
    INVALID_INPUT = 3, "NVRTC_ERROR_INVALID_INPUT", "invalid input";
    INVALID_PROGRAM = 4, "NVRTC_ERROR_INVALID_PROGRAM", "the program handle is invalid";
    INVALID_OPTION = 5, "NVRTC_ERROR_INVALID_OPTION", "invalid option";
    NAME_EXPRESSION_NOT_VALID = 10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "the name expression is not valid";
    INTERNAL_ERROR = 11, "NVRTC_ERROR_INTERNAL_ERROR", "internal error";
}

crate::status! {
    /// A `CUptiResult` other than success.
    ProfilingError: not_supported = NOT_SUPPORTED, internal = UNKNOWN, null = INVALID_PARAMETER;
    INVALID_PARAMETER = 1, "CUPTI_ERROR_INVALID_PARAMETER", "one or more parameters is invalid";
    MAX_LIMIT_REACHED = 12, "CUPTI_ERROR_MAX_LIMIT_REACHED", "there is nothing more";
    NOT_SUPPORTED = 27, "CUPTI_ERROR_NOT_SUPPORTED", "the operation is not supported";
    UNKNOWN = 999, "CUPTI_ERROR_UNKNOWN", "unknown error";
}

crate::status! {
    /// An `nvmlReturn_t` other than success.
    ManagementError: not_supported = NOT_SUPPORTED, internal = UNKNOWN, null = INVALID_ARGUMENT;
    UNINITIALIZED = 1, "NVML_ERROR_UNINITIALIZED", "Uninitialized";
    INVALID_ARGUMENT = 2, "NVML_ERROR_INVALID_ARGUMENT", "Invalid Argument";
    NOT_SUPPORTED = 3, "NVML_ERROR_NOT_SUPPORTED", "Not Supported";
    NO_PERMISSION = 4, "NVML_ERROR_NO_PERMISSION", "Insufficient Permissions";
    NOT_FOUND = 6, "NVML_ERROR_NOT_FOUND", "Not Found";
    INSUFFICIENT_SIZE = 7, "NVML_ERROR_INSUFFICIENT_SIZE", "Insufficient Size";
    UNKNOWN = 999, "NVML_ERROR_UNKNOWN", "Unknown Error";
}

crate::status! {
    /// What NVSHMEM host functions answer other than success.
    ShmemError: not_supported = NOT_SUPPORTED, internal = INTERNAL, null = INVALID_VALUE;
    INVALID_VALUE = 1, "NVSHMEMX_ERROR_INVALID_VALUE", "invalid value";
    NOT_SUPPORTED = 5, "NVSHMEMX_ERROR_NOT_SUPPORTED", "not supported";
    INTERNAL = 7, "NVSHMEMX_ERROR_INTERNAL", "internal error";
}

/// `ncclUniqueId`, passed by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct NcclUniqueId {
    /// Opaque content.
    pub bytes: [u8; 128],
}

// SAFETY: only bytes.
#[expect(unsafe_code, reason = "states a property of the layout")]
unsafe impl crate::pointer::Plain for NcclUniqueId {}
