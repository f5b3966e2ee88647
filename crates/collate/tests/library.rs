//! Library calls: what they become with and without operators.

use trompe_base::{Bytes, DType, StreamId};
use trompe_collate::{Options, collate};
use trompe_testkit::TraceBuilder;
use trompe_testkit::values::tensor;
use trompe_trace::descriptor::{Copy, Descriptor, Direction, Place};
use trompe_trace::job::{Action, JobTrace, Operation};
use trompe_trace::record::Record;

fn library(t: &mut TraceBuilder, symbol: &str, read: u64) {
    let api = t.api(&format!("cudnn/{symbol}/emulated"));
    t.record(&Record::Library { api, stream: StreamId(0), read, written: 0, detail: "" });
}

fn only(t: TraceBuilder) -> (JobTrace, Operation) {
    let mut job = collate(&[t.finish()], &Options::default()).unwrap();
    let operation = job.templates[0].operations.remove(0);
    (job, operation)
}

#[test]
fn batch_norm_takes_its_shape_from_the_operator() {
    let mut t = TraceBuilder::default();
    let image = tensor(DType::F16, &[8, 64, 7, 7], 4096);
    let weight = tensor(DType::F32, &[64], 8192);
    t.operator("aten::cudnn_batch_norm_backward", &[image.clone(), image, weight], |t| {
        library(t, "cudnnBatchNormalizationBackwardEx", 0);
        vec![]
    });
    let (_, operation) = only(t);
    let Descriptor::Normalization(norm) = &operation.descriptor else { panic!("{operation:?}") };
    assert_eq!((norm.rows, norm.cols, norm.direction), (64, 392, Direction::Backward));
    assert_eq!((norm.work.read, norm.work.written), (Bytes(4 * 50176), Bytes(50176)));
    assert_eq!(operation.short_name, "batch_norm_backward<64x392, fp16>");
}

#[test]
fn other_calls_keep_their_bytes_or_take_the_operator_s() {
    let mut t = TraceBuilder::default();
    library(&mut t, "cufftExecC2C", 123);
    let (_, operation) = only(t);
    let Descriptor::Other(other) = &operation.descriptor else { panic!("{operation:?}") };
    assert_eq!((other.work.read, operation.short_name.as_str()), (Bytes(123), "cufftExecC2C"));

    let mut t = TraceBuilder::default();
    t.operator("aten::_fft_r2c", &[tensor(DType::F32, &[1000], 4096)], |t| {
        library(t, "cufftExecR2C", 0);
        vec![tensor(DType::C64, &[501], 8192)]
    });
    let (_, operation) = only(t);
    let Descriptor::Other(other) = &operation.descriptor else { panic!("{operation:?}") };
    assert_eq!((other.work.read, other.work.written), (Bytes(4000), Bytes(4008)));
}

#[test]
fn copies_say_where_from_and_where_to_and_whether_the_host_waits() {
    let mut t = TraceBuilder::default();
    let api = t.api("cudart/cudaMemcpyAsync/emulated");
    let copy = Copy { from: Place::Device, to: Place::Pageable, bytes: Bytes(4) };
    t.record(&Record::Copy { api, stream: StreamId(0), copy, blocking: true });
    let (job, operation) = only(t);
    assert_eq!(
        (operation.name.as_str(), operation.short_name.as_str()),
        ("cudaMemcpyAsync", "copy<device to pageable>")
    );
    assert!(matches!(job.templates[0].events[0].action, Action::Enqueue { blocking: true, .. }));
}
