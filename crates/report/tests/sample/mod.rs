//! A sample report and the timeline of one of its steps.

use trompe_base::Rng;
use trompe_results::{Argument, Kind, Report, Span, Timeline, TimelineBuilder, TrackKind};

/// The report of a GPT-2 training job.
pub(crate) fn report() -> Report {
    serde_json::from_str(include_str!("../../../results/tests/fixtures/gpt2.json")).unwrap()
}

/// A step of twelve layers, forward and backward, with its launches.
pub(crate) fn timeline() -> Timeline {
    const FORWARD: [(&str, &str, Kind, u64); 9] = [
        ("aten::native_layer_norm", "layer norm forward", Kind::Norm, 110),
        ("aten::addmm", "gemm bf16 128x256x64 TN", Kind::Gemm, 480),
        ("aten::_flash_attention_forward", "flash attention forward, head 64", Kind::Attention, 460),
        ("aten::addmm", "gemm bf16 128x256x64 TN", Kind::Gemm, 190),
        ("aten::add", "vectorized elementwise add bf16", Kind::Elementwise, 70),
        ("aten::native_layer_norm", "layer norm forward", Kind::Norm, 110),
        ("aten::addmm", "gemm bf16 128x256x64 TN", Kind::Gemm, 610),
        ("aten::gelu", "gelu forward, tanh", Kind::Elementwise, 260),
        ("aten::addmm", "gemm bf16 256x128x64 NT", Kind::Gemm, 590),
    ];
    let mut build = TimelineBuilder::new();
    let host = build.track(0, TrackKind::Host, 0, "main thread");
    let backward = build.track(0, TrackKind::Host, 1, "autograd thread");
    let stream = build.track(0, TrackKind::Stream, 7, "stream 7 (compute)");
    let mut rng = Rng::new(3);
    let (mut clock, mut device, mut correlation) = (0_u64, 40_000_000_u64, 0);
    let mut launch = |build: &mut TimelineBuilder,
                      track,
                      (op, kernel, kind, micros): (&str, &str, Kind, u64)| {
        let (op, call, kernel) = (build.name(op), build.name("cudaLaunchKernel"), build.name(kernel));
        let (shape, grid) = (build.name("input shapes"), build.name("grid"));
        let length = (250_000_000.0 + 90_000_000.0 * rng.unit()) as u64;
        correlation += 1;
        let arguments = vec![(shape, Argument::Text("[16384, 768], [768, 3072]".to_owned()))];
        build.push(
            track,
            Span { name: op, start_ps: clock, duration_ps: length, arguments, ..Span::default() },
        );
        let start_ps = clock + length / 2;
        let correlation = Some(correlation);
        build.push(
            track,
            Span { name: call, start_ps, duration_ps: length / 3, correlation, ..Span::default() },
        );
        device = device.max(start_ps + length / 3 + 3_000_000);
        let duration_ps = micros * 1_000_000;
        let arguments = vec![(grid, Argument::Text("768, 1, 1".to_owned()))];
        let kind = Some(kind);
        build
            .push(stream, Span { name: kernel, kind, start_ps: device, duration_ps, correlation, arguments });
        device += duration_ps;
        clock += length + 2_000_000;
    };
    for _ in 0..12 {
        for row in FORWARD {
            launch(&mut build, host, row);
        }
    }
    for _ in 0..12 {
        for (op, kernel, kind, micros) in FORWARD.into_iter().rev() {
            launch(&mut build, backward, (op, kernel, kind, micros * 2));
        }
    }
    for _ in 0..6 {
        let row = ("aten::_fused_adamw_", "fused AdamW step, float32", Kind::Optimizer, 350);
        launch(&mut build, host, row);
    }
    build.mark(0, "step 4");
    build.finish()
}
