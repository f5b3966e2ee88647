//! Inputs, runs and comparisons.

use std::collections::BTreeMap;

use half::f16;
use trompe_base::Rng;
use trompe_npu::{Device, ElementType, Input, Options, Outcome, Profile, Program, RunError, run};

/// Floats in -1..1, the same for the same seed.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| (rng.next_u64() >> 40) as f32 / (1u64 << 23) as f32 - 1.0).collect()
}

pub(crate) fn f32s(shape: &[u64], values: &[f32]) -> Input {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Input { dtype: ElementType::F32, shape: shape.to_vec(), bytes }
}

/// Values as halves; the rounded values come back.
pub(crate) fn f16s(shape: &[u64], values: &[f32]) -> (Input, Vec<f32>) {
    let halves: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
    let bytes = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    let rounded = halves.into_iter().map(f16::to_f32).collect();
    (Input { dtype: ElementType::F16, shape: shape.to_vec(), bytes }, rounded)
}

pub(crate) fn ints(dtype: ElementType, shape: &[u64], values: &[i64]) -> Input {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()[..dtype.size()].to_vec()).collect();
    Input { dtype, shape: shape.to_vec(), bytes }
}

/// A run on a 950 under the reference profile.
pub(crate) fn simulate(
    program: &Program,
    inputs: &[(&str, Input)],
    options: &Options,
) -> Result<Outcome, RunError> {
    simulate_on("ascend-950", "reference", program, inputs, options)
}

pub(crate) fn simulate_on(
    device: &str,
    profile: &str,
    program: &Program,
    inputs: &[(&str, Input)],
    options: &Options,
) -> Result<Outcome, RunError> {
    let device = Device::named(device).unwrap();
    let profile = Profile::named(profile, &device).unwrap();
    let inputs: BTreeMap<String, Input> =
        inputs.iter().map(|(name, input)| ((*name).to_owned(), input.clone())).collect();
    // The way through JSON is part of every test.
    let program = Program::from_json(&program.to_json()).unwrap();
    run(&program, &device, &profile, &inputs, options)
}

pub(crate) fn timing() -> Options {
    Options { timing_only: true, ..Options::default() }
}

/// An output's floats.
pub(crate) fn output(outcome: &Outcome, name: &str) -> Vec<f32> {
    let found = outcome.outputs.iter().find(|output| output.name == name).unwrap();
    assert_eq!(found.content.dtype, ElementType::F32);
    found.content.bytes.chunks_exact(4).map(|raw| f32::from_le_bytes(raw.try_into().unwrap())).collect()
}

#[track_caller]
pub(crate) fn close(found: &[f32], expect: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expect.len());
    for (at, (found, expect)) in found.iter().zip(expect).enumerate() {
        let error = (found - expect).abs();
        assert!(error <= tolerance * (1.0 + expect.abs()), "element {at}: {found}, expected {expect}");
    }
}
