//! What library calls leave in the record file: full descriptions of products, convolutions and recurrent networks.
//!
//! The test runs this program again as the job.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::process::Command;

use support::*;
use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Direction, Epilogue, Gemm, ImageLayout, Rnn};
use trompe_trace::reader::WorkerTrace;
use trompe_trace::record::Record;

unsafe extern "C" {
    fn cublasCreate_v2(handle: *mut u64) -> i32;
    fn cublasSetStream_v2(handle: u64, stream: u64) -> i32;
    fn cublasSetMathMode(handle: u64, mode: u32) -> i32;
    fn cublasSgemm_v2(
        handle: u64,
        transpose_a: i32,
        transpose_b: i32,
        m: i32,
        n: i32,
        k: i32,
        alpha: *const f32,
        a: u64,
        lda: i32,
        b: u64,
        ldb: i32,
        beta: *const f32,
        c: u64,
        ldc: i32,
    ) -> i32;
    fn cublasGemmStridedBatchedEx(
        handle: u64,
        transpose_a: i32,
        transpose_b: i32,
        m: i32,
        n: i32,
        k: i32,
        alpha: *const f32,
        a: u64,
        a_type: i32,
        lda: i32,
        stride_a: i64,
        b: u64,
        b_type: i32,
        ldb: i32,
        stride_b: i64,
        beta: *const f32,
        c: u64,
        c_type: i32,
        ldc: i32,
        stride_c: i64,
        batch: i32,
        compute: i32,
        algorithm: i32,
    ) -> i32;
    fn cublasLtMatrixLayoutCreate(layout: *mut u64, dtype: i32, rows: u64, columns: u64, leading: i64)
    -> i32;
    fn cublasLtMatmulDescCreate(operation: *mut u64, compute: i32, scale: i32) -> i32;
    fn cublasLtMatmulDescSetAttribute(operation: u64, name: i32, value: *const i32, bytes: usize) -> i32;
    fn cublasLtMatmulPreferenceCreate(preference: *mut u64) -> i32;
    fn cublasLtMatmulAlgoGetHeuristic(
        handle: u64,
        operation: u64,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        preference: u64,
        requested: i32,
        results: *mut [u8; 96],
        returned: *mut i32,
    ) -> i32;
    fn cublasLtMatmul(
        handle: u64,
        operation: u64,
        alpha: *const f32,
        a: u64,
        a_layout: u64,
        b: u64,
        b_layout: u64,
        beta: *const f32,
        c: u64,
        c_layout: u64,
        d: u64,
        d_layout: u64,
        algorithm: *const u8,
        workspace: u64,
        bytes: usize,
        stream: u64,
    ) -> i32;
    fn cudnnCreate(handle: *mut u64) -> i32;
    fn cudnnCreateTensorDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnCreateFilterDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnCreateConvolutionDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnCreateRNNDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnCreateRNNDataDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnSetTensor4dDescriptor(
        tensor: u64,
        format: i32,
        dtype: i32,
        n: i32,
        c: i32,
        h: i32,
        w: i32,
    ) -> i32;
    fn cudnnSetFilter4dDescriptor(
        filter: u64,
        dtype: i32,
        format: i32,
        k: i32,
        c: i32,
        h: i32,
        w: i32,
    ) -> i32;
    fn cudnnSetConvolution2dDescriptor(
        convolution: u64,
        pad_h: i32,
        pad_w: i32,
        stride_h: i32,
        stride_w: i32,
        dilation_h: i32,
        dilation_w: i32,
        mode: i32,
        compute: i32,
    ) -> i32;
    fn cudnnSetConvolutionGroupCount(convolution: u64, groups: i32) -> i32;
    fn cudnnConvolutionBackwardFilter(
        handle: u64,
        alpha: u64,
        x_desc: u64,
        x: u64,
        dy_desc: u64,
        dy: u64,
        convolution: u64,
        algorithm: i32,
        workspace: u64,
        bytes: usize,
        beta: u64,
        dw_desc: u64,
        dw: u64,
    ) -> i32;
    fn cudnnSetRNNDescriptor_v8(
        rnn: u64,
        algorithm: i32,
        mode: i32,
        bias: i32,
        direction: i32,
        input_mode: i32,
        dtype: i32,
        precision: i32,
        math: i32,
        input: i32,
        hidden: i32,
        projection: i32,
        layers: i32,
        dropout: u64,
        flags: u32,
    ) -> i32;
    fn cudnnSetRNNDataDescriptor(
        data: u64,
        dtype: i32,
        layout: i32,
        steps: i32,
        batch: i32,
        width: i32,
        lengths: *const i32,
        fill: u64,
    ) -> i32;
    fn cudnnGetRNNWeightSpaceSize(handle: u64, rnn: u64, bytes: *mut usize) -> i32;
    fn cudnnRNNForward(
        handle: u64,
        rnn: u64,
        mode: i32,
        lengths: u64,
        x_desc: u64,
        x: u64,
        y_desc: u64,
        y: u64,
        h_desc: u64,
        hx: u64,
        hy: u64,
        c_desc: u64,
        cx: u64,
        cy: u64,
        weight_bytes: usize,
        weights: u64,
        workspace_bytes: usize,
        workspace: u64,
        reserve_bytes: usize,
        reserve: u64,
    ) -> i32;
}

fn made(make: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut value = 0;
    assert_eq!(make(&raw mut value), 0);
    value
}

/// The job: does nothing unless it is run by the test below.
#[test]
#[expect(clippy::disallowed_methods, reason = "told by the test that it is the job")]
fn job() {
    if std::env::var_os("TROMPE_TEST_JOB").is_none() {
        return;
    }
    // SAFETY: valid places and live handles; addresses of operands are not followed.
    unsafe {
        products();
        fused_product();
        convolution();
        recurrent_network();
    }
}

unsafe fn products() {
    let (one, zero) = (1.0, 0.0);
    // SAFETY: as the caller says.
    unsafe {
        let blas = made(|out| cublasCreate_v2(out));
        let stream = made(|out| cudaStreamCreateWithFlags(out, 1));
        assert_eq!(cublasSetStream_v2(blas, stream), 0);
        let single = |beta| cublasSgemm_v2(blas, 1, 0, 8, 4, 16, &raw const one, 0, 16, 0, 16, beta, 0, 8);
        assert_eq!(single(&raw const zero), 0);
        assert_eq!(cublasSetMathMode(blas, 3), 0);
        assert_eq!(single(&raw const one), 0);
        let batched = cublasGemmStridedBatchedEx(
            blas,
            0,
            1,
            8,
            4,
            16,
            &raw const one,
            0,
            14,
            8,
            128,
            0,
            14,
            4,
            64,
            &raw const zero,
            0,
            0,
            8,
            32,
            6,
            68,
            99,
        );
        assert_eq!(batched, 0);
        // In a graph's capture a product is a node.
        assert_eq!(cudaStreamBeginCapture(stream, 2), 0);
        assert_eq!(single(&raw const zero), 0);
        let graph = made(|out| cudaStreamEndCapture(stream, out));
        let mut nodes = 0;
        assert_eq!(cudaGraphGetNodes(graph, std::ptr::null_mut(), &raw mut nodes), 0);
        assert_eq!(nodes, 1);
    }
}

unsafe fn fused_product() {
    let (one, zero) = (1.0, 0.0);
    // SAFETY: as the caller says.
    unsafe {
        let layout = |rows, columns| made(|out| cublasLtMatrixLayoutCreate(out, 14, rows, columns, 32));
        let (a, b, d) = (layout(16, 8), layout(16, 4), layout(8, 4));
        let operation = made(|out| cublasLtMatmulDescCreate(out, 68, 0));
        for (name, value) in [(3, 1), (7, 36)] {
            assert_eq!(cublasLtMatmulDescSetAttribute(operation, name, &raw const value, 4), 0);
        }
        let preference = made(|out| cublasLtMatmulPreferenceCreate(out));
        let (mut result, mut count) = ([9; 96], 0);
        let found = cublasLtMatmulAlgoGetHeuristic(
            0,
            operation,
            a,
            b,
            d,
            d,
            preference,
            4,
            &raw mut result,
            &raw mut count,
        );
        assert_eq!(
            (found, count, &result[64..76]),
            (0, 1, &[0; 12][..]),
            "one algorithm, no workspace, success"
        );
        let called = cublasLtMatmul(
            0,
            operation,
            &raw const one,
            0,
            a,
            0,
            b,
            &raw const zero,
            0,
            d,
            0,
            d,
            result.as_ptr(),
            0,
            0,
            0,
        );
        assert_eq!(called, 0);
    }
}

unsafe fn convolution() {
    // SAFETY: as the caller says.
    unsafe {
        let dnn = made(|out| cudnnCreate(out));
        let (x, y) =
            (made(|out| cudnnCreateTensorDescriptor(out)), made(|out| cudnnCreateTensorDescriptor(out)));
        let w = made(|out| cudnnCreateFilterDescriptor(out));
        let parameters = made(|out| cudnnCreateConvolutionDescriptor(out));
        assert_eq!(cudnnSetTensor4dDescriptor(x, 1, 2, 2, 8, 9, 10), 0);
        assert_eq!(cudnnSetTensor4dDescriptor(y, 1, 2, 2, 16, 9, 10), 0);
        assert_eq!(cudnnSetFilter4dDescriptor(w, 2, 1, 16, 4, 3, 3), 0);
        assert_eq!(cudnnSetConvolution2dDescriptor(parameters, 1, 1, 1, 1, 1, 1, 1, 0), 0);
        assert_eq!(cudnnSetConvolutionGroupCount(parameters, 2), 0);
        assert_eq!(cudnnConvolutionBackwardFilter(dnn, 0, x, 0, y, 0, parameters, 1, 0, 0, 0, w, 0), 0);
    }
}

unsafe fn recurrent_network() {
    // SAFETY: as the caller says.
    unsafe {
        let dnn = made(|out| cudnnCreate(out));
        let rnn = made(|out| cudnnCreateRNNDescriptor(out));
        assert_eq!(cudnnSetRNNDescriptor_v8(rnn, 0, 3, 2, 0, 0, 0, 0, 0, 32, 64, 64, 1, 0, 0), 0);
        let data = made(|out| cudnnCreateRNNDataDescriptor(out));
        let lengths = [10; 4];
        assert_eq!(cudnnSetRNNDataDescriptor(data, 0, 1, 10, 4, 32, lengths.as_ptr(), 0), 0);
        let mut bytes = 0;
        assert_eq!(cudnnGetRNNWeightSpaceSize(dnn, rnn, &raw mut bytes), 0);
        assert_eq!(bytes, 3 * 64 * (32 + 64 + 2) * 4);
        let called =
            cudnnRNNForward(dnn, rnn, 1, 0, data, 0, data, 0, 0, 0, 0, 0, 0, 0, bytes, 0, 0, 0, 0, 0);
        assert_eq!(called, 0);
    }
}

#[test]
fn calls_are_described_in_full() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("a writable folder");
    let status = Command::new(std::env::current_exe().expect("the program's own path"))
        .args(["--exact", "job", "--nocapture", "--test-threads=1"])
        .env("TROMPE_TEST_JOB", "1")
        .env("TROMPE_CONFIG", write_node(folder.path()))
        .env("TROMPE_TRACE_DIR", &traces)
        .status()
        .expect("the program can run itself");
    assert!(status.success());
    let file = std::fs::read_dir(&traces).expect("the folder").flatten().next().expect("a trace").path();
    let trace = WorkerTrace::open(&file).expect("a whole trace");
    let (mut products, mut convolutions, mut networks) = (Vec::new(), Vec::new(), Vec::new());
    for entry in trace.sorted() {
        match entry.record {
            Record::Gemm { gemm, .. } => products.push(gemm),
            Record::Convolution { convolution, .. } => convolutions.push(convolution),
            Record::Rnn { rnn, .. } => networks.push(rnn),
            _ => {}
        }
    }
    let plain = Gemm {
        m: 8,
        n: 4,
        k: 16,
        batch: 1,
        transpose_a: true,
        transpose_b: false,
        a: DType::F32,
        b: DType::F32,
        c: DType::F32,
        compute: DType::F32,
        epilogue: Epilogue::None,
        accumulate: false,
        leading: [16, 16, 8],
        strides: [0; 3],
    };
    let tf32 = Gemm { compute: DType::Tf32, ..plain.clone() };
    let batched = Gemm {
        batch: 6,
        transpose_a: false,
        transpose_b: true,
        a: DType::Bf16,
        b: DType::Bf16,
        leading: [8, 4, 8],
        strides: [128, 64, 32],
        ..plain.clone()
    };
    let fused = Gemm {
        a: DType::Bf16,
        b: DType::Bf16,
        c: DType::Bf16,
        epilogue: Epilogue::Gelu,
        leading: [32; 3],
        ..plain.clone()
    };
    assert_eq!(products, [plain, Gemm { accumulate: true, ..tf32.clone() }, batched, tf32, fused]);
    let convolution = Convolution {
        direction: Direction::WeightGradient,
        batch: 2,
        in_channels: 8,
        out_channels: 16,
        groups: 2,
        input: vec![9, 10],
        output: vec![9, 10],
        kernel: vec![3, 3],
        stride: vec![1, 1],
        padding: vec![1, 1],
        dilation: vec![1, 1],
        dtype: DType::F16,
        compute: DType::F32,
        layout: ImageLayout::ChannelsLast,
    };
    assert_eq!(convolutions, [convolution]);
    let network = Rnn {
        direction: Direction::Forward,
        gates: 3,
        layers: 1,
        input: 32,
        hidden: 64,
        batch: 4,
        steps: 10,
        dtype: DType::F32,
    };
    assert_eq!(networks, [network]);
}
