//! Recurrent networks: where the weights lie in their buffer, how much scratch memory a call takes, what it computes.
//!
//! The weight buffer holds, layer after layer and direction after direction, the input matrices of all gates, the
//! recurrent matrices of all gates and, for an LSTM with projection, the projection matrix; after all matrices come all
//! biases in the same order. Frameworks copy each parameter to the place that `cudnnGetRNNWeightParams` names, so
//! what matters is that places do not overlap and that equal gates lie side by side.

use trompe_base::DType;
use trompe_trace::descriptor::{Direction, Rnn};

use super::legacy::Descriptor;
use super::tensor::product;
use super::{Dnn, DnnError};

/// `CUDNN_LSTM` and `CUDNN_GRU` among `cudnnRNNMode_t`; 0 and 1 are plain cells.
const MODE_LSTM: i32 = 2;
const MODE_GRU: i32 = 3;
/// `CUDNN_BIDIRECTIONAL`.
const BIDIRECTIONAL: i32 = 1;
/// `CUDNN_SKIP_INPUT`: the first layer has no input matrix.
const SKIP_INPUT: i32 = 1;
/// `cudnnRNNBiasMode_t`: 0 none, 1 input only, 2 both, 3 recurrent only.
const BIAS_BOTH: i32 = 2;

/// What `cudnnSetRNNDescriptor_v8` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RnnSettings {
    /// `cudnnRNNMode_t`.
    pub mode: i32,
    /// `cudnnRNNBiasMode_t`.
    pub bias: i32,
    /// `cudnnDirectionMode_t`.
    pub direction: i32,
    /// `cudnnRNNInputMode_t`.
    pub input_mode: i32,
    /// `cudnnDataType_t` of weights and data.
    pub dtype: i32,
    /// Width of the input.
    pub input: i32,
    /// Width of the cell.
    pub hidden: i32,
    /// Width of the projected state; `hidden` without projection.
    pub projection: i32,
    /// Layers.
    pub layers: i32,
}

/// What `cudnnSetRNNDataDescriptor` sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RnnData {
    /// `cudnnDataType_t`.
    pub dtype: i32,
    /// Longest sequence.
    pub steps: i32,
    /// Sequences.
    pub batch: i32,
    /// Width.
    pub width: i32,
    /// Length of each sequence.
    pub lengths: Vec<i32>,
}

/// A matrix or bias in the weight buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Elements from the start of the buffer.
    pub offset: u64,
    /// Extents; a bias has one column.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
}

/// The matrix and bias of one gate; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightPlaces {
    /// The matrix.
    pub matrix: Option<Place>,
    /// The bias.
    pub bias: Option<Place>,
}

/// Scratch memory of a call in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// During the call.
    pub workspace: u64,
    /// From the forward to the backward call.
    pub reserve: u64,
}

/// Widest input or cell, and most layers, that are believed.
const LARGEST_WIDTH: i32 = 1 << 20;
const MOST_LAYERS: i32 = 1 << 10;

impl RnnSettings {
    /// Whether all sizes make sense. Only such settings are kept, so that sizes of buffers stay within what a number can say.
    #[must_use]
    pub fn are_sane(&self) -> bool {
        let widths = [self.input, self.hidden, self.projection];
        widths.iter().all(|width| (0..=LARGEST_WIDTH).contains(width))
            && (0..=MOST_LAYERS).contains(&self.layers)
    }

    /// Gates per cell.
    #[must_use]
    pub const fn gates(&self) -> u64 {
        match self.mode {
            MODE_LSTM => 4,
            MODE_GRU => 3,
            _ => 1,
        }
    }

    /// Directions.
    #[must_use]
    pub const fn directions(&self) -> u64 {
        if self.direction == BIDIRECTIONAL { 2 } else { 1 }
    }

    fn width(value: i32) -> u64 {
        u64::try_from(value).unwrap_or(0)
    }

    fn hidden(&self) -> u64 {
        Self::width(self.hidden)
    }

    /// Width of the state that is handed on.
    fn state(&self) -> u64 {
        if self.has_projection() { Self::width(self.projection) } else { self.hidden() }
    }

    const fn has_projection(&self) -> bool {
        self.mode == MODE_LSTM && self.projection > 0 && self.projection < self.hidden
    }

    /// Layers times directions.
    #[must_use]
    pub fn pseudo_layers(&self) -> u64 {
        Self::width(self.layers) * self.directions()
    }

    fn layer_input(&self, pseudo_layer: u64) -> u64 {
        match pseudo_layer / self.directions() {
            0 if self.input_mode == SKIP_INPUT => 0,
            0 => Self::width(self.input),
            _ => self.state() * self.directions(),
        }
    }

    fn layer_matrices(&self, pseudo_layer: u64) -> u64 {
        let projection = if self.has_projection() { self.hidden() * self.state() } else { 0 };
        self.gates() * self.hidden() * (self.layer_input(pseudo_layer) + self.state()) + projection
    }

    fn layer_biases(&self) -> u64 {
        let sets = match self.bias {
            0 => 0,
            BIAS_BOTH => 2,
            _ => 1,
        };
        sets * self.gates() * self.hidden()
    }

    fn all_matrices(&self) -> u64 {
        (0..self.pseudo_layers()).map(|layer| self.layer_matrices(layer)).sum()
    }

    /// Elements of the whole weight buffer.
    #[must_use]
    pub fn weight_elements(&self) -> u64 {
        self.all_matrices() + self.pseudo_layers() * self.layer_biases()
    }

    /// Where gate `id` of a pseudo-layer lies: input gates first, then recurrent ones, then the projection.
    #[must_use]
    pub fn places(&self, pseudo_layer: u64, id: u64) -> Option<WeightPlaces> {
        let gates = self.gates();
        let is_projection = self.has_projection() && id == 2 * gates;
        if pseudo_layer >= self.pseudo_layers() || id >= 2 * gates && !is_projection {
            return None;
        }
        let (hidden, state, input) = (self.hidden(), self.state(), self.layer_input(pseudo_layer));
        let before: u64 = (0..pseudo_layer).map(|layer| self.layer_matrices(layer)).sum();
        let (gate, recurrent) = (id % gates, id >= gates);
        let matrix = if is_projection {
            let offset = before + gates * hidden * (input + state);
            Place { offset, rows: state, columns: hidden }
        } else if recurrent {
            Place {
                offset: before + gates * hidden * input + gate * hidden * state,
                rows: hidden,
                columns: state,
            }
        } else {
            Place { offset: before + gate * hidden * input, rows: hidden, columns: input }
        };
        let has_bias = match self.bias {
            1 => !recurrent,
            BIAS_BOTH => true,
            3 => recurrent,
            _ => false,
        };
        let set = u64::from(self.bias == BIAS_BOTH && recurrent);
        let bias = (has_bias && !is_projection).then(|| Place {
            offset: self.all_matrices() + pseudo_layer * self.layer_biases() + (set * gates + gate) * hidden,
            rows: hidden,
            columns: 1,
        });
        Some(WeightPlaces { matrix: (matrix.columns > 0).then_some(matrix), bias })
    }

    fn element(&self) -> u64 {
        super::dtype(self.dtype).map_or(4, DType::size)
    }

    /// Bytes of the weight buffer.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.weight_elements() * self.element()
    }

    /// Scratch memory for `steps` time steps of `batch` sequences.
    ///
    /// Rule (an assumption; cuDNN does not document it): the workspace holds all gates' pre-activations of one layer
    /// in all directions; when training, the reserve area keeps for each layer what its backward pass reads: gate
    /// activations, cell states (LSTM) and outputs. Inference keeps nothing.
    #[must_use]
    pub fn scratch(&self, steps: u64, batch: u64, training: bool) -> Scratch {
        let cells = product(&[steps, batch, self.hidden(), self.element()]);
        let kept = self.gates() + 1 + u64::from(self.mode == MODE_LSTM);
        Scratch {
            workspace: product(&[cells, self.gates(), self.directions()]),
            reserve: if training { product(&[cells, kept, self.pseudo_layers()]) } else { 0 },
        }
    }

    /// What a call over `data` computes: the first layer, and the others where their input has another width.
    #[must_use]
    pub fn describe(&self, data: &RnnData, direction: Direction) -> Vec<Rnn> {
        let layer = |layers: u64, input: u64| Rnn {
            direction,
            gates: self.gates() as u32,
            layers,
            input,
            hidden: self.hidden(),
            batch: Self::width(data.batch),
            steps: Self::width(data.steps),
            dtype: super::dtype(data.dtype).unwrap_or(DType::F32),
        };
        let (directions, all) = (self.directions(), self.pseudo_layers());
        let (first, rest) = (self.layer_input(0), self.layer_input(directions));
        if first == rest || all <= directions {
            vec![layer(all, first)]
        } else {
            vec![layer(directions, first), layer(all - directions, rest)]
        }
    }
}

impl Dnn {
    /// Settings of a recurrent network.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn rnn(&self, handle: u64) -> Result<RnnSettings, DnnError> {
        match self.legacy(handle)? {
            Descriptor::Rnn(settings) => Ok(*settings),
            _ => Err(DnnError::BadParameter),
        }
    }

    /// Data descriptor of a recurrent network.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn rnn_data(&self, handle: u64) -> Result<&RnnData, DnnError> {
        match self.legacy(handle)? {
            Descriptor::RnnData(data) => Ok(data),
            _ => Err(DnnError::BadParameter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LSTM: RnnSettings = RnnSettings {
        mode: MODE_LSTM,
        bias: BIAS_BOTH,
        direction: 0,
        input_mode: 0,
        dtype: 0,
        input: 32,
        hidden: 64,
        projection: 64,
        layers: 2,
    };

    /// All places tile the buffer exactly.
    #[track_caller]
    fn check(settings: RnnSettings, parameters: u64) {
        assert_eq!(settings.weight_elements(), parameters);
        let ids = 2 * settings.gates() + u64::from(settings.has_projection());
        let places = (0..settings.pseudo_layers()).flat_map(|layer| {
            (0..ids).flat_map(move |id| {
                let places = settings.places(layer, id).unwrap();
                [places.matrix, places.bias]
            })
        });
        let mut spans: Vec<_> =
            places.flatten().map(|place| (place.offset, place.offset + place.rows * place.columns)).collect();
        spans.sort_unstable();
        let mut end = 0;
        for (start, stop) in spans {
            assert_eq!(start, end);
            end = stop;
        }
        assert_eq!(end, parameters);
        assert_eq!(settings.places(0, ids), None);
        assert_eq!(settings.places(settings.pseudo_layers(), 0), None);
    }

    #[test]
    fn places_tile_the_buffer() {
        check(LSTM, 4 * 64 * (32 + 64 + 2) + 4 * 64 * (64 + 64 + 2));
        check(RnnSettings { mode: MODE_GRU, ..LSTM }, 3 * 64 * (32 + 64 + 2) + 3 * 64 * (64 + 64 + 2));
        check(RnnSettings { mode: 1, bias: 0, layers: 1, ..LSTM }, 64 * (32 + 64));
        check(RnnSettings { bias: 1, layers: 1, ..LSTM }, 4 * 64 * (32 + 64 + 1));
        check(RnnSettings { bias: 3, layers: 1, ..LSTM }, 4 * 64 * (32 + 64 + 1));
        check(
            RnnSettings { direction: BIDIRECTIONAL, ..LSTM },
            2 * (4 * 64 * (32 + 64 + 2) + 4 * 64 * (128 + 64 + 2)),
        );
        check(RnnSettings { projection: 16, layers: 1, ..LSTM }, 4 * 64 * (32 + 16 + 2) + 64 * 16);
    }

    #[test]
    fn layers_of_other_width_are_told_apart() {
        let data = RnnData { dtype: 0, steps: 10, batch: 4, width: 32, lengths: vec![10; 4] };
        let told = |settings: RnnSettings| -> Vec<_> {
            settings.describe(&data, Direction::Forward).iter().map(|rnn| (rnn.layers, rnn.input)).collect()
        };
        assert_eq!(told(LSTM), [(1, 32), (1, 64)]);
        assert_eq!(told(RnnSettings { input: 64, ..LSTM }), [(2, 64)]);
        assert_eq!(told(RnnSettings { direction: BIDIRECTIONAL, layers: 3, ..LSTM }), [(2, 32), (4, 128)]);
    }
}
