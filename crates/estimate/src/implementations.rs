//! How far another implementation of the same operation lies: what no model can know before it was measured.
//!
//! The interval of a learned model is that of shapes that were left out, *within the libraries that were measured*. A
//! job's own library has other kernels: attention is FlashAttention's, cuDNN's or a serving engine's, eight-bit products
//! come with or without their conversions. How much that matters was read off the train rows: of operations that two
//! libraries measured on one device, the logarithm of the ratio of their times, less its median for the device and the
//! length (what a model learns as the library), over the root of two because both deviate. Its 80 % quantile is below, the
//! median over A100, H100, H200 and B200, by eightfold durations from 1 us on: attention from 47,400 pairs, eight-bit
//! products from 34,000, half-precision products from 52,800 (TensorRT-LLM against SGLang, Vidur).

/// From which durations on, in microseconds, each step eight times the one before.
const STEPS: usize = 5;

/// 80 % quantile of the deviation, by duration.
const ATTENTION: [f64; STEPS] = [0.26, 0.26, 0.23, 0.15, 0.12];
const EIGHT_BITS: [f64; STEPS] = [0.35, 0.26, 0.21, 0.21, 0.22];
const HALF: [f64; STEPS] = [0.08, 0.065, 0.045, 0.065, 0.045];

/// The 80 % quantile of `|ln(time of another implementation / time)|` of what the built-in `model` predicts; zero where it
/// is not known, as for a user's own models, which learned from the user's own kernels.
pub(crate) fn deviation(model: &str, microseconds: f64) -> f64 {
    let at = ((microseconds.max(1.0).log2() / 3.0) as usize).min(STEPS - 1);
    match model {
        "attention" => ATTENTION[at],
        "gemm.fp8" => EIGHT_BITS[at],
        "gemm.half" => HALF[at],
        _ => 0.0,
    }
}

/// `[low, high]` factors of an interval with the deviation of an independent implementation added.
pub(crate) fn widened([low, high]: [f64; 2], deviation: f64) -> [f64; 2] {
    [(-low.ln().hypot(deviation)).exp(), high.ln().hypot(deviation).exp()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_widened_on_both_sides_and_never_narrowed() {
        let [low, high] = widened([0.9, 1.2], 0.2);
        assert!(low < 0.9 && high > 1.2, "{low} {high}");
        assert_eq!(widened([0.5, 2.0], 0.0), [0.5, 2.0]);
        let [low, high] = widened([1.0, 1.0], 0.3);
        assert!((low - (-0.3_f64).exp()).abs() < 1e-12 && (high - 0.3_f64.exp()).abs() < 1e-12);
    }

    #[test]
    fn long_attention_differs_less_than_short_one() {
        assert_eq!(deviation("mine.attention", 2.0), 0.0);
        assert!(deviation("attention", 5000.0) < deviation("attention", 2.0));
    }
}
