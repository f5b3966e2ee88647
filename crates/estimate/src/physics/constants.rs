//! The constants of each device generation: data files, each table with its source.

use std::collections::BTreeMap;

use serde::Deserialize;
use trompe_hardware::Architecture;

use crate::Basis;

/// Constants of one generation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Constants {
    pub(crate) kernel: Kernel,
    pub(crate) gemm: Gemms,
    pub(crate) convolution: Convolution,
    pub(crate) attention: Attention,
    pub(crate) streaming: BTreeMap<String, Streaming>,
    pub(crate) transfer: Transfer,
    pub(crate) recurrent: Recurrent,
    pub(crate) unknown: Unknown,
}

/// What every kernel that streams through memory shares.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// Duration of the shortest kernel, in microseconds.
    pub(crate) floor_us: f64,
    /// Share of the level-2 cache up to which an operand is found there.
    pub(crate) resident: f64,
    /// Rate out of that cache in units of 64 bytes per multiprocessor and cycle.
    pub(crate) resident_rate: f64,
    /// Elements that index kernels move per multiprocessor and cycle.
    pub(crate) index_rate: f64,
    /// Elements that element-wise kernels without wide accesses move per multiprocessor and cycle.
    pub(crate) scalar_rate: f64,
    /// Where the numbers come from.
    pub(crate) source: String,
}

/// Matrix products on tensor cores and on the ordinary lanes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gemms {
    pub(crate) tensor: Gemm,
    pub(crate) lanes: Gemm,
}

/// One kind of matrix product; the formula is in `gemm.rs`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gemm {
    pub(crate) floor_us: f64,
    /// Sustained share of the memory bandwidth.
    pub(crate) memory: f64,
    /// Rate of tile loads out of the level-2 cache, in units of 64 bytes per multiprocessor and cycle.
    pub(crate) tile_rate: f64,
    /// Cost of a split contraction, in microseconds.
    pub(crate) split_us: f64,
    /// Exponent that blends the three bounds: large is a hard maximum.
    pub(crate) blend: f64,
    /// Contraction length whose time a tile's start and end take.
    pub(crate) prologue: f64,
    pub(crate) resident: f64,
    pub(crate) resident_rate: f64,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) spread: [f64; 2],
    pub(crate) basis: Basis,
    pub(crate) source: String,
}

/// A tile of the result and the sustained share of a multiprocessor's peak that it reaches.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tile {
    pub(crate) rows: f64,
    pub(crate) cols: f64,
    pub(crate) efficiency: f64,
}

/// Convolutions on tensor cores and on the ordinary lanes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Convolution {
    /// Times over the equal matrix product on tensor cores: forward, input gradient, weight gradient.
    pub(crate) tensor: [f64; 3],
    /// The same on the lanes, over the product priced with `lanes_product`.
    pub(crate) lanes: [f64; 3],
    pub(crate) lanes_product: Gemm,
    /// Arithmetic of a Winograd convolution over that of its batched product.
    pub(crate) winograd: f64,
    /// Share of the transformed tensors that goes through memory.
    pub(crate) winograd_traffic: f64,
    /// Whether tensors stored channels first are turned round for tensor cores by kernels of their own.
    pub(crate) turns: bool,
    /// Share of the bandwidth at which depthwise convolutions and layout changes stream.
    pub(crate) streaming: f64,
    /// Share of the vector peak that depthwise convolutions reach.
    pub(crate) depthwise: f64,
    pub(crate) spread: [f64; 2],
    pub(crate) basis: Basis,
    pub(crate) source: String,
}

/// Fused attention; the formula is in `attention.rs`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attention {
    pub(crate) floor_us: f64,
    /// Share of the longest block that is not hidden by the others.
    pub(crate) balance: f64,
    /// Key positions whose time a block's start and end take.
    pub(crate) prologue: f64,
    pub(crate) memory: f64,
    /// Sustained share of the tensor peak at head width 64, 96, 128, 192 and 256.
    pub(crate) efficiency: [f64; 5],
    /// Efficiency of the backward pass over that of the forward pass.
    pub(crate) backward: f64,
    /// Efficiency of an implementation over the one that was fitted.
    pub(crate) flash: f64,
    pub(crate) flash3: f64,
    pub(crate) cudnn: f64,
    pub(crate) memory_efficient: f64,
    pub(crate) spread: [f64; 2],
    pub(crate) basis: Basis,
    pub(crate) source: String,
}

/// A family bounded by memory traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Streaming {
    /// Sustained share of the memory bandwidth.
    pub(crate) efficiency: f64,
    /// Whether operands in the level-2 cache make it faster.
    #[serde(default)]
    pub(crate) cached: bool,
    pub(crate) spread: [f64; 2],
    pub(crate) basis: Basis,
    pub(crate) source: String,
}

/// Copies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    /// Start of a copy over a link, in microseconds.
    pub(crate) latency_us: f64,
    /// Sustained share of a link's rate.
    pub(crate) link: f64,
    /// Rate of pageable copies in bytes per second.
    pub(crate) pageable: f64,
    pub(crate) spread: [f64; 2],
    pub(crate) source: String,
}

/// Recurrent networks in one call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recurrent {
    /// Time that one dependent step takes beyond its arithmetic, in microseconds.
    pub(crate) step_us: f64,
    pub(crate) spread: [f64; 2],
    pub(crate) source: String,
}

/// The rule for kernels of which only the geometry is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unknown {
    /// Bytes charged per thread.
    pub(crate) bytes_per_thread: f64,
    /// Share of the vector peak charged for known operations.
    pub(crate) arithmetic: f64,
    pub(crate) spread: [f64; 2],
    pub(crate) source: String,
}

/// The constants of all generations.
#[derive(Clone, Debug)]
pub(crate) struct Generations(BTreeMap<Architecture, Constants>);

impl Generations {
    pub(crate) fn builtin() -> Self {
        let files = [
            (Architecture::Volta, include_str!("../../constants/volta.toml")),
            // No measured part of this generation is better known than Volta's.
            (Architecture::Turing, include_str!("../../constants/volta.toml")),
            (Architecture::Ampere, include_str!("../../constants/ampere.toml")),
            (Architecture::AmpereGraphics, include_str!("../../constants/ampere_graphics.toml")),
            (Architecture::Ada, include_str!("../../constants/ada.toml")),
            (Architecture::Hopper, include_str!("../../constants/hopper.toml")),
            (Architecture::Blackwell, include_str!("../../constants/blackwell.toml")),
            (Architecture::BlackwellGraphics, include_str!("../../constants/blackwell_graphics.toml")),
        ];
        Self(
            files
                .into_iter()
                .map(|(architecture, text)| {
                    let constants = toml::from_str(text)
                        .unwrap_or_else(|error| panic!("constants of {architecture:?}: {error}"));
                    (architecture, constants)
                })
                .collect(),
        )
    }

    pub(crate) fn of(&self, architecture: Architecture) -> &Constants {
        &self.0[&architecture]
    }
}

impl Constants {
    /// The streaming family called `name`.
    pub(crate) fn streaming(&self, name: &str) -> &Streaming {
        &self.streaming[name]
    }

    /// A name per table and its source.
    pub(crate) fn sources(&self) -> Vec<(String, &str)> {
        let tables = [
            ("kernel", &self.kernel.source),
            ("gemm.tensor", &self.gemm.tensor.source),
            ("gemm.lanes", &self.gemm.lanes.source),
            ("convolution", &self.convolution.source),
            ("convolution.lanes_product", &self.convolution.lanes_product.source),
            ("attention", &self.attention.source),
            ("transfer", &self.transfer.source),
            ("rnn", &self.recurrent.source),
            ("unknown", &self.unknown.source),
        ];
        let families = self.streaming.iter().map(|(name, family)| (name.clone(), family.source.as_str()));
        tables.into_iter().map(|(name, source)| (name.to_owned(), source.as_str())).chain(families).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_has_every_family_with_a_source_and_sane_numbers() {
        let share = |x: f64| x > 0.0 && x <= 1.0;
        let spread = |s: [f64; 2]| s[0] > 0.0 && s[0] <= 1.0 && s[1] >= 1.0;
        for (architecture, c) in Generations::builtin().0 {
            let families = super::super::streaming::FAMILIES;
            assert_eq!(
                c.streaming.keys().map(String::as_str).collect::<Vec<_>>(),
                families,
                "{architecture:?}"
            );
            for (name, source) in c.sources() {
                assert!(source.len() > 20, "{architecture:?}: `{source}` is no source of {name}");
            }
            for family in c.streaming.values() {
                assert!(share(family.efficiency) && spread(family.spread), "{architecture:?}: {family:?}");
            }
            for gemm in [&c.gemm.tensor, &c.gemm.lanes, &c.convolution.lanes_product] {
                assert!(
                    gemm.tiles.iter().all(|t| share(t.efficiency)) && share(gemm.memory),
                    "{architecture:?}"
                );
                assert!(spread(gemm.spread) && gemm.blend >= 1.0, "{architecture:?}");
            }
            assert!(c.attention.efficiency.iter().all(|e| share(*e)), "{architecture:?}");
        }
    }
}
