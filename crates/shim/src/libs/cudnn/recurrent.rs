//! Recurrent networks.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::dnn::Dnn;
use trompe_device::dnn::legacy::{Descriptor, TensorDescriptor};
use trompe_device::dnn::recurrent::{Place, RnnData, RnnSettings};
use trompe_trace::descriptor::Direction;
use trompe_trace::record::Record;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, enqueue, libraries};

/// `CUDNN_FWD_MODE_TRAINING`.
const TRAINING: i32 = 1;
/// Most sequences in a batch whose lengths are kept.
const LONGEST_BATCH: usize = 1 << 24;

/// `cudnnSetRNNDescriptor_v8`.
pub(crate) fn set(
    _: &mut Call<'_>, rnn: u64, _algorithm: i32, mode: i32, bias: i32, direction: i32, input_mode: i32,
    dtype: i32, _precision: i32, _math: i32, input: i32, hidden: i32, projection: i32, layers: i32,
    _dropout: u64, _flags: u32,
) -> Outcome {
    let settings =
        RnnSettings { mode, bias, direction, input_mode, dtype, input, hidden, projection, layers };
    if !settings.are_sane() {
        return Err(LibraryFailure::InvalidValue);
    }
    Ok(libraries().dnn.set_legacy(rnn, Descriptor::Rnn(settings))?)
}

/// `cudnnSetRNNDataDescriptor`.
pub(crate) fn set_data(
    _: &mut Call<'_>, data: u64, dtype: i32, _layout: i32, steps: i32, batch: i32, width: i32,
    lengths: In<i32>, _fill: u64,
) -> Outcome {
    let count = usize::try_from(batch).ok().filter(|count| *count <= LONGEST_BATCH);
    let lengths = lengths.read_many(count.ok_or(LibraryFailure::InvalidValue)?)?;
    Ok(libraries()
        .dnn
        .set_legacy(data, Descriptor::RnnData(RnnData { dtype, steps, batch, width, lengths }))?)
}

/// `cudnnGetRNNWeightSpaceSize`.
pub(crate) fn weight_space(_: &mut Call<'_>, _handle: u64, rnn: u64, bytes: Out<u64>) -> Outcome {
    let settings = libraries().dnn.rnn(rnn)?;
    Ok(bytes.write(settings.weight_bytes())?)
}

/// `cudnnGetRNNWeightParams`: address and shape of one gate's matrix and bias; address 0 where there is none.
pub(crate) fn weight_parameters(
    _: &mut Call<'_>, _handle: u64, rnn: u64, pseudo_layer: i32, _bytes: usize, weights: u64, id: i32,
    matrix: u64, matrix_address: Out<u64>, bias: u64, bias_address: Out<u64>,
) -> Outcome {
    let mut libraries = libraries();
    let settings = libraries.dnn.rnn(rnn)?;
    let number = |value: i32| u64::try_from(value).map_err(|_| LibraryFailure::InvalidValue);
    let places = settings.places(number(pseudo_layer)?, number(id)?).ok_or(LibraryFailure::InvalidValue)?;
    let element = settings.weight_bytes() / settings.weight_elements().max(1);
    let mut tell = |descriptor: u64, address: Out<u64>, place: Option<Place>| -> Outcome {
        address.write_if_given(place.map_or(0, |place| weights + place.offset * element));
        if descriptor == 0 {
            return Ok(());
        }
        let dimensions =
            place.map_or_else(Vec::new, |place| vec![1, place.rows as i32, place.columns as i32]);
        let strides = Dnn::packed_strides(&dimensions);
        let tensor = TensorDescriptor { dtype: settings.dtype, dimensions, strides };
        Ok(libraries.dnn.set_legacy(descriptor, Descriptor::Tensor(tensor))?)
    };
    tell(matrix, matrix_address, places.matrix)?;
    tell(bias, bias_address, places.bias)
}

/// `cudnnGetRNNTempSpaceSizes`.
pub(crate) fn scratch(
    _: &mut Call<'_>, _handle: u64, rnn: u64, mode: i32, data: u64, workspace: Out<u64>, reserve: Out<u64>,
) -> Outcome {
    let scratch = {
        let libraries = libraries();
        let (settings, data) = (libraries.dnn.rnn(rnn)?, libraries.dnn.rnn_data(data)?);
        let size = |value: i32| u64::try_from(value).unwrap_or(0);
        settings.scratch(size(data.steps), size(data.batch), mode == TRAINING)
    };
    workspace.write_if_given(scratch.workspace);
    reserve.write_if_given(scratch.reserve);
    Ok(())
}

fn run(call: &mut Call<'_>, handle: u64, rnn: u64, data: u64, direction: Direction) -> Outcome {
    let (stream, described) = {
        let libraries = libraries();
        let stream = libraries.dnn.library(handle)?.stream;
        (stream, libraries.dnn.rnn(rnn)?.describe(libraries.dnn.rnn_data(data)?, direction))
    };
    let (stream, _) = enqueue(call, stream)?;
    for rnn in described {
        call.record(&Record::Rnn { api: call.api.0, stream, rnn });
    }
    Ok(())
}

/// `cudnnRNNForward`.
pub(crate) fn forward(
    call: &mut Call<'_>, handle: u64, rnn: u64, _mode: i32, _lengths: In<i32>, x_desc: u64, _x: u64,
    _y_desc: u64, _y: u64, _h_desc: u64, _hx: u64, _hy: u64, _c_desc: u64, _cx: u64, _cy: u64,
    _weight_bytes: usize, _weights: u64, _workspace_bytes: usize, _workspace: u64, _reserve_bytes: usize,
    _reserve: u64,
) -> Outcome {
    run(call, handle, rnn, x_desc, Direction::Forward)
}

/// `cudnnRNNBackwardData_v8`.
pub(crate) fn backward_data(
    call: &mut Call<'_>, handle: u64, rnn: u64, _lengths: In<i32>, _y_desc: u64, _y: u64, _dy: u64,
    x_desc: u64, _dx: u64, _h_desc: u64, _hx: u64, _dhy: u64, _dhx: u64, _c_desc: u64, _cx: u64, _dcy: u64,
    _dcx: u64, _weight_bytes: usize, _weights: u64, _workspace_bytes: usize, _workspace: u64,
    _reserve_bytes: usize, _reserve: u64,
) -> Outcome {
    run(call, handle, rnn, x_desc, Direction::Backward)
}

/// `cudnnRNNBackwardWeights_v8`.
pub(crate) fn backward_weights(
    call: &mut Call<'_>, handle: u64, rnn: u64, _add: i32, _lengths: In<i32>, x_desc: u64, _x: u64,
    _h_desc: u64, _hx: u64, _y_desc: u64, _y: u64, _weight_bytes: usize, _dw: u64, _workspace_bytes: usize,
    _workspace: u64, _reserve_bytes: usize, _reserve: u64,
) -> Outcome {
    run(call, handle, rnn, x_desc, Direction::WeightGradient)
}
