//! The backend interface.

#![expect(clippy::too_many_arguments, reason = "the library's own signatures")]

use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::dnn::backend::{TYPE_DESCRIPTOR, element_size};

use super::record_operation;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// `cudnnBackendCreateDescriptor`.
pub(crate) fn create(_: &mut Call<'_>, kind: i32, descriptor: Out<u64>) -> Outcome {
    let created = libraries().dnn.create_backend(kind)?;
    Ok(descriptor.write(created)?)
}

/// `cudnnBackendFinalize`.
pub(crate) fn finalize(_: &mut Call<'_>, descriptor: u64) -> Outcome {
    Ok(libraries().dnn.finalize(descriptor)?)
}

/// `cudnnBackendSetAttribute`.
pub(crate) fn set_attribute(
    _: &mut Call<'_>, descriptor: u64, name: i32, kind: i32, count: i64, elements: In<u8>,
) -> Outcome {
    let count = usize::try_from(count).map_err(|_| LibraryFailure::InvalidValue)?;
    let mut bytes = Vec::new();
    elements
        .append_to(&mut bytes, count.checked_mul(element_size(kind)).ok_or(LibraryFailure::InvalidValue)?)?;
    Ok(libraries().dnn.set_attribute(descriptor, name, kind, &bytes)?)
}

/// `cudnnBackendGetAttribute`.
pub(crate) fn get_attribute(
    _: &mut Call<'_>, descriptor: u64, name: i32, kind: i32, requested: i64, count: Out<i64>,
    elements: Out<u8>,
) -> Outcome {
    let requested = if elements.is_null() { 0 } else { requested };
    let places = if kind == TYPE_DESCRIPTOR {
        In::<u64>::new(elements.address()).read_many(usize::try_from(requested).unwrap_or(0))?
    } else {
        Vec::new()
    };
    let answer = libraries().dnn.get_attribute(descriptor, name, requested, &places)?;
    count.write_if_given(answer.count);
    let room = usize::try_from(requested).unwrap_or(0).saturating_mul(element_size(kind));
    let bytes = &answer.bytes[..answer.bytes.len().min(room)];
    if !bytes.is_empty() {
        elements.write_bytes(bytes)?;
    }
    Ok(())
}

/// `cudnnBackendExecute`.
pub(crate) fn execute(call: &mut Call<'_>, handle: u64, plan: u64, _variant_pack: u64) -> Outcome {
    let operation = libraries().dnn.plan(plan)?;
    record_operation(call, handle, &operation)
}
