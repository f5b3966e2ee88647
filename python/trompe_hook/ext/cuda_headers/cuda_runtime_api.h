// The few declarations of the CUDA runtime that PyTorch's allocator header
// mentions, so that the observer compiles on a machine without a CUDA toolkit.
//
// The observer itself calls none of these functions: what matters is that the
// names exist for the inline functions of PyTorch's headers, and that the handle
// types mangle to the same symbols as the real ones (`CUstream_st*`, ...).
// Enumerations list only the members those headers name.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif
#define CUDART_VERSION CUDA_VERSION

#define CUDART_CB

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct CUuserObject_st* cudaUserObject_t;
typedef void (*cudaHostFn_t)(void*);

typedef enum cudaError { cudaSuccess = 0, cudaErrorNotReady = 600 } cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost = 0, cudaMemcpyDefault = 4 };

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};

typedef enum cudaUserObjectFlags { cudaUserObjectNoDestructorSync = 1 } cudaUserObjectFlags;
typedef enum cudaUserObjectRetainFlags { cudaGraphUserObjectMove = 1 } cudaUserObjectRetainFlags;

struct cudaDeviceProp;
struct cudaGraphEdgeData;

extern "C" {
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaMemGetInfo(size_t*, size_t*);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, enum cudaMemcpyKind, cudaStream_t = 0);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamGetPriority(cudaStream_t, int*);
cudaError_t cudaDeviceGetStreamPriorityRange(int*, int*);
cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus*);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, enum cudaStreamCaptureStatus*,
                                     unsigned long long*, cudaGraph_t* = 0,
                                     const cudaGraphNode_t** = 0, const cudaGraphEdgeData** = 0,
                                     size_t* = 0);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, enum cudaStreamCaptureStatus*,
                                        unsigned long long*, cudaGraph_t* = 0,
                                        const cudaGraphNode_t** = 0, size_t* = 0);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode*);
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned int,
                                 unsigned int);
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned int = 1);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned int = 1,
                                      unsigned int = 0);
}
