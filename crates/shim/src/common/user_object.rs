//! User objects: resources of the program that live as long as a graph refers to them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;
use trompe_device::{HandleTable, Kind};

use super::{Outcome, host};
use crate::door::Call;
use crate::failure::Failure;

struct UserObject {
    references: u32,
    destroy: u64,
    argument: u64,
}

fn objects() -> MutexGuard<'static, HandleTable<UserObject>> {
    static OBJECTS: Mutex<HandleTable<UserObject>> = Mutex::new(HandleTable::new(Kind::UserObject));
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cudaUserObjectCreate`, `cuUserObjectCreate`.
pub(crate) fn create(
    _: &mut Call<'_>,
    out: Out<u64>,
    argument: Address,
    destroy: Address,
    references: u32,
    _: u32,
) -> Outcome {
    if destroy == 0 || references == 0 {
        return Err(Failure::InvalidValue);
    }
    out.write(objects().insert(UserObject { references, destroy, argument }).0)?;
    Ok(())
}

/// `cudaUserObjectRelease`, `cuUserObjectRelease`.
pub(crate) fn release(_: &mut Call<'_>, object: Address, count: u32) -> Outcome {
    objects().get(object)?;
    release_all(&references(object, count)?);
    Ok(())
}

/// As many references to one object.
///
/// # Errors
/// When there are more of them than a program has.
pub(crate) fn references(object: Address, count: u32) -> Result<Vec<u64>, Failure> {
    const MOST: u32 = 1 << 20;
    if count > MOST { Err(Failure::InvalidValue) } else { Ok(vec![object; count as usize]) }
}

/// `cudaUserObjectRetain`, `cuUserObjectRetain`.
pub(crate) fn retain(_: &mut Call<'_>, object: Address, count: u32) -> Outcome {
    let mut objects = objects();
    let object = objects.get_mut(object)?;
    object.references = object.references.checked_add(count).ok_or(Failure::InvalidValue)?;
    Ok(())
}

/// One more reference to each object; dead handles are ignored.
pub(crate) fn retain_all(handles: &[u64]) {
    let mut objects = objects();
    for &handle in handles {
        if let Ok(object) = objects.get_mut(handle) {
            object.references += 1;
        }
    }
}

/// One reference fewer to each object; the last one calls the program's destructor.
pub(crate) fn release_all(handles: &[u64]) {
    let mut ended = Vec::new();
    let mut objects = objects();
    for &handle in handles {
        if let Ok(object) = objects.get_mut(handle) {
            object.references -= 1;
            if object.references == 0 {
                ended.extend(objects.remove(handle));
            }
        }
    }
    drop(objects);
    for object in ended {
        host::run(object.destroy, object.argument);
    }
}
