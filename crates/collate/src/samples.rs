//! How many samples and tokens a step processes, read off the shapes of its first operators.
//!
//! A step may consist of several micro-batches: each stretch of forward work after backward or optimizer work is one.
//! In each, the first operator that sees the input tells: an embedding's indices (batch × sequence), a convolution's
//! or a linear layer's input. The sum over a step's micro-batches is what the step processes. A launch of a CUDA graph
//! stands for the operators of its capture.

use std::collections::BTreeMap;

use trompe_trace::job::{Phase, Steps};
use trompe_trace::values::{Tensor, Value};

use crate::interpret::Replay;
use crate::operator::{Frame, FrameKind, decode};

/// What one micro-batch brings.
struct Input {
    samples: Option<u64>,
    tokens: Option<u64>,
    from: String,
}

/// Fills in samples and tokens of the first steady step; `rows` maps events of the walk to events of the job.
pub(crate) fn fill(
    steps: &mut Steps,
    frames: &[Frame<'_>],
    rows: &[usize],
    replays: &BTreeMap<usize, Replay>,
) {
    let Some(range) = steps.boundaries.windows(2).nth(steps.warmup) else { return };
    let row = |frame: &Frame<'_>| rows.get(frame.begin).copied().unwrap_or(usize::MAX);
    // The step in the order in which its operators ran: its own events, with the captures of its launches between.
    let mut parts = Vec::new();
    let mut begin = range[0];
    for (launch, replay) in replays.range(range[0]..range[1]) {
        parts.extend([begin..*launch, replay.captured.clone()]);
        begin = *launch;
    }
    parts.push(begin..range[1]);
    // Frames are in the order of their begins.
    let within = parts.into_iter().flat_map(|part| {
        let begin = frames.partition_point(|frame| row(frame) < part.start);
        let end = frames.partition_point(|frame| row(frame) < part.end);
        &frames[begin..end.max(begin)]
    });
    let mut inputs: Vec<Input> = Vec::new();
    let mut waiting = true;
    for frame in within.filter(|frame| frame.kind == FrameKind::Operator || frame.phase != Phase::Forward) {
        if frame.phase != Phase::Forward {
            waiting = true;
        } else if waiting && let Some(input) = input(frame) {
            inputs.push(input);
            waiting = false;
        }
    }
    let Some(first) = inputs.first() else { return };
    let batches = if inputs.len() > 1 { format!(", {} micro-batches", inputs.len()) } else { String::new() };
    steps.samples_from = Some(format!("{}{batches}", first.from));
    steps.samples = inputs.iter().map(|input| input.samples).sum();
    steps.tokens = inputs.iter().map(|input| input.tokens).sum();
}

fn input(frame: &Frame<'_>) -> Option<Input> {
    let (position, what) = match frame.name {
        "aten::embedding" => (1, "embedding indices"),
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" | "aten::convolution" => (0, "convolution input"),
        "aten::linear" | "aten::addmm" => (usize::from(frame.name == "aten::addmm"), "linear input"),
        "aten::lstm" | "aten::gru" | "aten::_cudnn_rnn" => (0, "recurrent input"),
        _ => return None,
    };
    let values = decode(frame.inputs);
    let Some(Value::Tensor(tensor)) = values.get(position) else { return None };
    let shape = shape(tensor);
    let (samples, tokens) = match (frame.name, tensor.sizes.as_slice()) {
        // Positions and other look-ups without a batch do not tell.
        ("aten::embedding", &[batch, sequence]) => (Some(batch), Some(batch * sequence)),
        ("aten::embedding", _) => return None,
        ("aten::linear" | "aten::addmm", &[batch, _]) => (Some(batch), None),
        // Batch first or sequence first: the shape does not say.
        ("aten::linear" | "aten::addmm", &[a, b, _]) => (None, Some(a * b)),
        ("aten::linear" | "aten::addmm", _) => return None,
        ("aten::lstm" | "aten::gru" | "aten::_cudnn_rnn", &[a, b, _]) => (None, Some(a * b)),
        (_, sizes) => (Some(*sizes.first()?), None),
    };
    (samples != Some(0) && tokens != Some(0)).then(|| Input {
        samples,
        tokens,
        from: format!("{what} {shape}"),
    })
}

fn shape(tensor: &Tensor) -> String {
    let sizes: Vec<_> = tensor.sizes.iter().map(u64::to_string).collect();
    format!("[{}]", sizes.join(", "))
}
