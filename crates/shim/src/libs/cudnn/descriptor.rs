//! Legacy descriptors: what is set is what is read back.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::dnn::Dnn;
use trompe_device::dnn::legacy::{
    ConvolutionDescriptor, Descriptor, DropoutDescriptor, FilterDescriptor, MAXIMUM_RANK, TensorDescriptor,
};
use trompe_device::dnn::recurrent::{RnnData, RnnSettings};

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// `CUDNN_TENSOR_NHWC`.
const FORMAT_CHANNELS_LAST: i32 = 1;
/// Bytes of dropout generator state: one XORWOW state of 48 bytes for each of the threads that fill the largest device
/// (132 multiprocessors of 2048 threads). cuDNN documents neither; nothing but the size of one allocation hangs on it.
const DROPOUT_STATE_BYTES: u64 = 132 * 2048 * 48;

fn create(place: Out<u64>, descriptor: Descriptor) -> Outcome {
    let created = libraries().dnn.create_legacy(descriptor);
    Ok(place.write(created)?)
}

/// `cudnnCreateTensorDescriptor`.
pub(crate) fn create_tensor(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Tensor(TensorDescriptor::default()))
}

/// `cudnnCreateFilterDescriptor`.
pub(crate) fn create_filter(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Filter(FilterDescriptor::default()))
}

/// `cudnnCreateConvolutionDescriptor`.
pub(crate) fn create_convolution(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Convolution(ConvolutionDescriptor::default()))
}

/// `cudnnCreateDropoutDescriptor`.
pub(crate) fn create_dropout(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Dropout(DropoutDescriptor::default()))
}

/// `cudnnCreateRNNDescriptor`.
pub(crate) fn create_rnn(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Rnn(RnnSettings::default()))
}

/// `cudnnCreateRNNDataDescriptor`.
pub(crate) fn create_rnn_data(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::RnnData(RnnData::default()))
}

/// `cudnnCreateActivationDescriptor` and its like.
pub(crate) fn create_settings(_: &mut Call<'_>, place: Out<u64>) -> Outcome {
    create(place, Descriptor::Settings(Vec::new()))
}

/// `cudnnDestroy…Descriptor`. Destroying nothing is no error, as in the library.
pub(crate) fn destroy(_: &mut Call<'_>, descriptor: u64) -> Outcome {
    if descriptor == 0 {
        return Ok(());
    }
    Ok(libraries().dnn.destroy_descriptor(descriptor)?)
}

fn rank(count: i32) -> Result<usize, LibraryFailure> {
    usize::try_from(count).ok().filter(|rank| *rank <= MAXIMUM_RANK).ok_or(LibraryFailure::InvalidValue)
}

fn set(descriptor: u64, content: Descriptor) -> Outcome {
    Ok(libraries().dnn.set_legacy(descriptor, content)?)
}

/// `cudnnSetTensorNdDescriptor`.
pub(crate) fn set_tensor(
    _: &mut Call<'_>, tensor: u64, dtype: i32, count: i32, dimensions: In<i32>, strides: In<i32>,
) -> Outcome {
    let rank = rank(count)?;
    let (dimensions, strides) = (dimensions.read_many(rank)?, strides.read_many(rank)?);
    set(tensor, Descriptor::Tensor(TensorDescriptor { dtype, dimensions, strides }))
}

fn packed(format: i32, dimensions: &[i32]) -> Vec<i32> {
    if format != FORMAT_CHANNELS_LAST || dimensions.len() < 3 {
        return Dnn::packed_strides(dimensions);
    }
    // Batch, spatial …, channels.
    let mut order = vec![dimensions[0]];
    order.extend(&dimensions[2..]);
    order.push(dimensions[1]);
    let inner = Dnn::packed_strides(&order);
    let mut strides = vec![inner[0], 1];
    strides.extend(&inner[1..inner.len() - 1]);
    strides
}

/// `cudnnSetTensorNdDescriptorEx`.
pub(crate) fn set_tensor_packed(
    _: &mut Call<'_>, tensor: u64, format: i32, dtype: i32, count: i32, dimensions: In<i32>,
) -> Outcome {
    let dimensions = dimensions.read_many(rank(count)?)?;
    let strides = packed(format, &dimensions);
    set(tensor, Descriptor::Tensor(TensorDescriptor { dtype, dimensions, strides }))
}

/// `cudnnSetTensor4dDescriptor`.
pub(crate) fn set_tensor_4d(
    _: &mut Call<'_>, tensor: u64, format: i32, dtype: i32, n: i32, c: i32, h: i32, w: i32,
) -> Outcome {
    let dimensions = vec![n, c, h, w];
    let strides = packed(format, &dimensions);
    set(tensor, Descriptor::Tensor(TensorDescriptor { dtype, dimensions, strides }))
}

/// `cudnnSetTensor4dDescriptorEx`.
pub(crate) fn set_tensor_4d_strided(
    _: &mut Call<'_>, tensor: u64, dtype: i32, n: i32, c: i32, h: i32, w: i32, n_stride: i32, c_stride: i32,
    h_stride: i32, w_stride: i32,
) -> Outcome {
    let (dimensions, strides) = (vec![n, c, h, w], vec![n_stride, c_stride, h_stride, w_stride]);
    set(tensor, Descriptor::Tensor(TensorDescriptor { dtype, dimensions, strides }))
}

fn write_many(place: Out<i32>, values: &[i32], requested: i32) -> Outcome {
    for (index, value) in values.iter().take(usize::try_from(requested).unwrap_or(0)).enumerate() {
        place.write_at(index, *value)?;
    }
    Ok(())
}

/// `cudnnGetTensorNdDescriptor`.
pub(crate) fn tensor(
    _: &mut Call<'_>, tensor: u64, requested: i32, dtype: Out<i32>, count: Out<i32>, dimensions: Out<i32>,
    strides: Out<i32>,
) -> Outcome {
    let descriptor = libraries().dnn.tensor_descriptor(tensor)?.clone();
    dtype.write(descriptor.dtype)?;
    count.write(descriptor.dimensions.len() as i32)?;
    write_many(dimensions, &descriptor.dimensions, requested)?;
    write_many(strides, &descriptor.strides, requested)
}

/// `cudnnSetFilterNdDescriptor`.
pub(crate) fn set_filter(
    _: &mut Call<'_>, filter: u64, dtype: i32, format: i32, count: i32, dimensions: In<i32>,
) -> Outcome {
    let dimensions = dimensions.read_many(rank(count)?)?;
    set(filter, Descriptor::Filter(FilterDescriptor { dtype, format, dimensions }))
}

/// `cudnnSetFilter4dDescriptor`.
pub(crate) fn set_filter_4d(
    _: &mut Call<'_>, filter: u64, dtype: i32, format: i32, k: i32, c: i32, h: i32, w: i32,
) -> Outcome {
    set(filter, Descriptor::Filter(FilterDescriptor { dtype, format, dimensions: vec![k, c, h, w] }))
}

/// `cudnnGetFilterNdDescriptor`.
pub(crate) fn filter(
    _: &mut Call<'_>, filter: u64, requested: i32, dtype: Out<i32>, format: Out<i32>, count: Out<i32>,
    dimensions: Out<i32>,
) -> Outcome {
    let descriptor = libraries().dnn.filter_descriptor(filter)?.clone();
    dtype.write(descriptor.dtype)?;
    format.write(descriptor.format)?;
    count.write(descriptor.dimensions.len() as i32)?;
    write_many(dimensions, &descriptor.dimensions, requested)
}

/// `cudnnSetConvolutionNdDescriptor`.
pub(crate) fn set_convolution(
    _: &mut Call<'_>, convolution: u64, length: i32, padding: In<i32>, stride: In<i32>, dilation: In<i32>,
    _mode: i32, compute: i32,
) -> Outcome {
    let rank = rank(length)?;
    let (padding, stride, dilation) =
        (padding.read_many(rank)?, stride.read_many(rank)?, dilation.read_many(rank)?);
    let mut libraries = libraries();
    let descriptor = libraries.dnn.convolution_descriptor(convolution)?;
    *descriptor = ConvolutionDescriptor { padding, stride, dilation, compute, ..descriptor.clone() };
    Ok(())
}

/// `cudnnSetConvolution2dDescriptor`.
pub(crate) fn set_convolution_2d(
    _: &mut Call<'_>, convolution: u64, pad_h: i32, pad_w: i32, stride_h: i32, stride_w: i32,
    dilation_h: i32, dilation_w: i32, _mode: i32, compute: i32,
) -> Outcome {
    let mut libraries = libraries();
    let descriptor = libraries.dnn.convolution_descriptor(convolution)?;
    *descriptor = ConvolutionDescriptor {
        padding: vec![pad_h, pad_w],
        stride: vec![stride_h, stride_w],
        dilation: vec![dilation_h, dilation_w],
        compute,
        ..descriptor.clone()
    };
    Ok(())
}

/// `cudnnSetConvolutionGroupCount`.
pub(crate) fn set_groups(_: &mut Call<'_>, convolution: u64, groups: i32) -> Outcome {
    libraries().dnn.convolution_descriptor(convolution)?.groups = groups;
    Ok(())
}

/// `cudnnGetConvolutionGroupCount`.
pub(crate) fn groups(_: &mut Call<'_>, convolution: u64, groups: Out<i32>) -> Outcome {
    let value = libraries().dnn.convolution_descriptor(convolution)?.groups;
    Ok(groups.write(value)?)
}

/// `cudnnSetConvolutionMathType`.
pub(crate) fn set_math(_: &mut Call<'_>, convolution: u64, math: i32) -> Outcome {
    libraries().dnn.convolution_descriptor(convolution)?.math = math;
    Ok(())
}

/// `cudnnGetConvolutionMathType`.
pub(crate) fn math(_: &mut Call<'_>, convolution: u64, math: Out<i32>) -> Outcome {
    let value = libraries().dnn.convolution_descriptor(convolution)?.math;
    Ok(math.write(value)?)
}

fn set_settings(descriptor: u64, values: &[i32]) -> Outcome {
    set(descriptor, Descriptor::Settings(values.iter().map(|&value| i64::from(value)).collect()))
}

/// `cudnnSetActivationDescriptor`.
pub(crate) fn set_activation(
    _: &mut Call<'_>, activation: u64, mode: i32, nan: i32, _coefficient: f64,
) -> Outcome {
    set_settings(activation, &[mode, nan])
}

/// `cudnnSetPooling2dDescriptor`.
pub(crate) fn set_pooling_2d(
    _: &mut Call<'_>, pooling: u64, mode: i32, nan: i32, window_h: i32, window_w: i32, pad_h: i32,
    pad_w: i32, stride_h: i32, stride_w: i32,
) -> Outcome {
    set_settings(pooling, &[mode, nan, window_h, window_w, pad_h, pad_w, stride_h, stride_w])
}

/// `cudnnSetCTCLossDescriptorEx`.
pub(crate) fn set_ctc(
    _: &mut Call<'_>, loss: u64, compute: i32, normalization: i32, gradient: i32,
) -> Outcome {
    set_settings(loss, &[compute, normalization, gradient])
}

/// `cudnnSetCTCLossDescriptor_v9`.
pub(crate) fn set_ctc_v9(
    _: &mut Call<'_>, loss: u64, compute: i32, normalization: i32, gradient: i32, longest: i32,
) -> Outcome {
    set_settings(loss, &[compute, normalization, gradient, longest])
}

/// `cudnnSetSpatialTransformerNdDescriptor`.
pub(crate) fn set_spatial(
    _: &mut Call<'_>, transformer: u64, sampler: i32, dtype: i32, count: i32, dimensions: In<i32>,
) -> Outcome {
    let mut values = vec![sampler, dtype];
    values.extend(dimensions.read_many(rank(count)?)?);
    set_settings(transformer, &values)
}

/// `cudnnDropoutGetStatesSize`.
pub(crate) fn dropout_states(_: &mut Call<'_>, _handle: u64, bytes: Out<u64>) -> Outcome {
    Ok(bytes.write(DROPOUT_STATE_BYTES)?)
}

/// `cudnnSetDropoutDescriptor` and `cudnnRestoreDropoutDescriptor`.
pub(crate) fn set_dropout(
    _: &mut Call<'_>, dropout: u64, _handle: u64, probability: f32, states: u64, _bytes: usize, seed: u64,
) -> Outcome {
    set(dropout, Descriptor::Dropout(DropoutDescriptor { probability, states, seed }))
}
