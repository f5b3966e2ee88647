//! The linker of device code: what is linked keeps its kernels' names.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::Address;
use trompe_device::{HandleTable, Kind};

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;

fn links() -> MutexGuard<'static, HandleTable<Vec<u8>>> {
    static LINKS: Mutex<HandleTable<Vec<u8>>> = Mutex::new(HandleTable::new(Kind::Link));
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cuLinkCreate`.
pub(crate) fn create(_: &mut Call<'_>, _: u32, _: Address, _: Address, state: Out<u64>) -> Outcome {
    state.write(links().insert(Vec::new()).0)?;
    Ok(())
}

/// `cuLinkAddData`: the last image added is what a module is made of.
pub(crate) fn add_data(
    _: &mut Call<'_>,
    state: Address,
    _: i32,
    data: Address,
    bytes: usize,
    _: Address,
    _: u32,
    _: Address,
    _: Address,
) -> Outcome {
    let mut links = links();
    let image = links.get_mut(state)?;
    image.clear();
    In::<u8>::new(data as usize).append_to(image, bytes)?;
    // Text must end like a C string.
    image.push(0);
    Ok(())
}

/// `cuLinkComplete`: the image lives until the link is destroyed.
pub(crate) fn complete(_: &mut Call<'_>, state: Address, image: Out<u64>, bytes: Out<u64>) -> Outcome {
    let links = links();
    let content = links.get(state)?;
    if content.is_empty() {
        return Err(Failure::InvalidValue);
    }
    image.write(content.as_ptr() as u64)?;
    bytes.write_if_given(content.len() as u64);
    Ok(())
}

/// `cuLinkDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, state: Address) -> Outcome {
    links().remove(state)?;
    Ok(())
}
