//! What a learned model sees of an operation: numbers, computed here and nowhere else.
//!
//! Training and inference call the same functions, so they cannot disagree. Every family has a fixed list of names
//! ([`Family::names`]) and fills a vector in that order: the shape (mostly as logarithms to the base 2), how it
//! quantises into tiles, blocks and waves, what the physics model says about it, the device's sheet, and the
//! [`Conditions`] of the measurement. Models learn the *residual* `ln(time / physics)`, so that what the physics
//! explains need not be learned, and a device that was never measured starts from it.
//!
//! [`FEATURES_VERSION`] changes with any change of meaning; a model file whose family's features have changed is refused.
//! Version 2 added the algorithms of convolutions.

mod attention;
mod conditions;
mod convolution;
mod device;
mod gemm;
mod streaming;

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::physics::Physics;
use crate::{Estimate, KernelEstimator};

pub use conditions::{Clocks, Conditions, Library};

/// Version of the meaning of all features together.
pub const FEATURES_VERSION: u32 = 2;

/// The families that one learned model each covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Matrix products, batched and grouped ones included.
    Gemm,
    /// Fused attention.
    Attention,
    /// Convolutions and their gradients.
    Convolution,
    /// Everything that streams through memory: norms, softmax, losses, element-wise passes, embeddings, optimizers.
    Streaming,
}

impl Family {
    /// All families, in order.
    pub const ALL: [Self; 4] = [Self::Gemm, Self::Attention, Self::Convolution, Self::Streaming];

    /// The family that prices `operation`; `None` for those that only physics knows.
    #[must_use]
    pub const fn of(operation: &Descriptor) -> Option<Self> {
        Some(match operation {
            Descriptor::Gemm(_) => Self::Gemm,
            Descriptor::Attention(_) => Self::Attention,
            Descriptor::Convolution(_) => Self::Convolution,
            Descriptor::Normalization(_)
            | Descriptor::Softmax(_)
            | Descriptor::CrossEntropy(_)
            | Descriptor::Elementwise(_)
            | Descriptor::Embedding(_)
            | Descriptor::Optimizer(_) => Self::Streaming,
            _ => return None,
        })
    }

    /// The name in files and methods.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Convolution => "convolution",
            Self::Streaming => "streaming",
        }
    }

    /// Names of the features, in the order of the vector.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let own = match self {
            Self::Gemm => gemm::NAMES,
            Self::Attention => attention::NAMES,
            Self::Convolution => convolution::NAMES,
            Self::Streaming => streaming::NAMES,
        };
        own.iter().chain(device::NAMES).chain(conditions::NAMES).copied().collect()
    }

    /// The features that tell whether a shape is near the training data: classes must agree, sizes (logarithms to the
    /// base 2) may differ.
    #[must_use]
    pub const fn axes(self) -> Axes {
        match self {
            Self::Gemm => gemm::AXES,
            Self::Attention => attention::AXES,
            Self::Convolution => convolution::AXES,
            Self::Streaming => streaming::AXES,
        }
    }
}

/// Features that place a shape among others.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Must agree.
    pub classes: &'static [&'static str],
    /// Measured in doublings.
    pub sizes: &'static [&'static str],
}

/// An operation as a model sees it.
#[derive(Clone, Debug)]
pub struct Features {
    /// The family.
    pub family: Family,
    /// What physics says.
    pub physics: Estimate,
    /// One number per name.
    pub values: Vec<f32>,
}

/// The features of `operation` on `device`, measured under `conditions`; `None` for operations of no learned family.
#[must_use]
pub fn features(
    physics: &Physics,
    operation: &Descriptor,
    device: &DeviceSheet,
    conditions: &Conditions,
) -> Option<Features> {
    let family = Family::of(operation)?;
    let estimate = physics.estimate(operation, device);
    let seconds = estimate.time.as_secs_f64();
    let mut row = Row { values: Vec::with_capacity(80) };
    let dtype = match operation {
        Descriptor::Gemm(g) => gemm::fill(&mut row, g, physics, device, seconds),
        Descriptor::Attention(a) => attention::fill(&mut row, a, device, seconds),
        Descriptor::Convolution(c) => convolution::fill(&mut row, c, device, seconds),
        _ => streaming::fill(&mut row, operation, device, seconds)?,
    };
    device::fill(&mut row, device, dtype);
    // Serving engines and PyTorch run the same fused attention kernels.
    let same = family == Family::Attention && conditions.library == Library::PyTorch;
    let library = if same { Library::Serving } else { conditions.library };
    Conditions { library, ..*conditions }.fill(&mut row);
    Some(Features { family, physics: estimate, values: row.values })
}

/// A vector that is being filled.
struct Row {
    values: Vec<f32>,
}

impl Row {
    fn push(&mut self, value: f64) {
        let value = if value.is_finite() { value } else { 0.0 };
        self.values.push(value as f32);
    }

    fn log(&mut self, value: f64) {
        self.push(value.max(1e-12).log2());
    }

    fn flag(&mut self, value: bool) {
        self.push(f64::from(u8::from(value)));
    }

    /// How far a length is a multiple of powers of two: 9 for multiples of 512.
    fn alignment(&mut self, length: u64) {
        self.push(f64::from(length.max(1).trailing_zeros().min(9)));
    }

    /// Waves of `blocks` over `slots`: their number (logarithm) and how full they are on average.
    fn waves(&mut self, blocks: f64, slots: f64) {
        let waves = blocks / slots.max(1.0);
        self.log(waves);
        self.push(waves / waves.ceil().max(1.0));
    }
}

#[cfg(test)]
mod tests {
    use trompe_base::{Bytes, DType, Flops};
    use trompe_hardware::Catalogue;
    use trompe_trace::descriptor::{
        Attention, AttentionKind, Convolution, Direction, Elementwise, Epilogue, Gemm, ImageLayout, Work,
    };

    use super::*;

    fn operations() -> Vec<Descriptor> {
        let dtype = DType::Bf16;
        let work = Work { read: Bytes(1 << 20), written: Bytes(1 << 20), flops: Flops(0) };
        vec![
            Descriptor::Gemm(Gemm {
                m: 4096,
                n: 300,
                k: 1024,
                batch: 1,
                transpose_a: true,
                transpose_b: false,
                a: dtype,
                b: dtype,
                c: dtype,
                compute: DType::F32,
                epilogue: Epilogue::Bias,
                accumulate: false,
                leading: [1024, 1024, 4096],
                strides: [0; 3],
            }),
            Descriptor::Attention(Attention {
                direction: Direction::Forward,
                kind: AttentionKind::Flash,
                batch: 2,
                heads: 16,
                kv_heads: 4,
                seq_q: 1000,
                seq_kv: 1000,
                head_dim: 128,
                head_dim_v: 128,
                causal: true,
                dropout: false,
                dtype,
            }),
            Descriptor::Convolution(Convolution {
                direction: Direction::WeightGradient,
                batch: 8,
                in_channels: 64,
                out_channels: 128,
                groups: 1,
                input: vec![56, 56],
                output: vec![28, 28],
                kernel: vec![3, 3],
                stride: vec![2, 2],
                padding: vec![1, 1],
                dilation: vec![1, 1],
                dtype,
                compute: DType::F32,
                layout: ImageLayout::ChannelsLast,
            }),
            Descriptor::Elementwise(Elementwise { elements: 1 << 19, dtype, vectorized: true, work }),
        ]
    }

    #[test]
    fn every_family_fills_one_finite_number_per_name_and_its_axes_are_features() {
        let physics = Physics::new();
        let device = Catalogue::builtin().device("h100-sxm").unwrap();
        let mut seen = Vec::new();
        for operation in operations() {
            let found = features(&physics, &operation, &device, &Conditions::default()).unwrap();
            let names = found.family.names();
            assert_eq!(found.values.len(), names.len(), "{}", found.family.name());
            assert!(found.values.iter().all(|value| value.is_finite()), "{:?}", found.values);
            let mut unique = names.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), names.len(), "{names:?}");
            let axes = found.family.axes();
            assert!(axes.classes.iter().chain(axes.sizes).all(|axis| names.contains(axis)));
            seen.push(found.family);
        }
        assert_eq!(seen, Family::ALL);
    }
}
