//! cuFile: files read into and written from device memory, here through host memory.

#![expect(unsafe_code, reason = "borrows the caller's file descriptor and memory")]

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use trompe_cuda_abi::pointer::{In, Out};

use crate::common::copy::PERFORMED;
use crate::door::Call;

/// `CUfileError_t` for success; the library's error in its lower half.
const SUCCESS: u64 = 0;
const INVALID_VALUE: u64 = 5022;
/// cuFile 1.17.
const VERSION: i32 = 1170;
/// `CU_FILE_HANDLE_TYPE_OPAQUE_FD`.
const FILE_DESCRIPTOR: i32 = 1;
/// File handles are this plus the descriptor.
const FIRST_HANDLE: u64 = 0x0041_0000_0000_0000;

/// `cuFileDriverOpen`, `cuFileDriverClose`.
pub(crate) fn driver(_: &mut Call<'_>) -> u64 {
    SUCCESS
}

/// `cuFileHandleRegister`: `CUfileDescr_t` is a kind, then a descriptor.
pub(crate) fn register(_: &mut Call<'_>, handle: Out<u64>, description: u64) -> u64 {
    let words = In::<i32>::new(description as usize);
    match (words.read_at(0), words.read_at(2)) {
        (Ok(FILE_DESCRIPTOR), Ok(descriptor)) if descriptor >= 0 => {
            handle.write(FIRST_HANDLE + descriptor as u64).map_or(INVALID_VALUE, |()| SUCCESS)
        }
        _ => INVALID_VALUE,
    }
}

/// `cuFileHandleDeregister`.
pub(crate) fn deregister(_: &mut Call<'_>, _handle: u64) {}

/// `cuFileBufRegister`.
pub(crate) fn register_buffer(_: &mut Call<'_>, _buffer: u64, _bytes: usize, _flags: i32) -> u64 {
    SUCCESS
}

/// `cuFileBufDeregister`.
pub(crate) fn deregister_buffer(_: &mut Call<'_>, _buffer: u64) -> u64 {
    SUCCESS
}

/// `cuFileGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, version: Out<i32>) -> u64 {
    version.write(VERSION).map_or(INVALID_VALUE, |()| SUCCESS)
}

fn file(handle: u64) -> Option<ManuallyDrop<File>> {
    let descriptor = handle.checked_sub(FIRST_HANDLE).and_then(|number| i32::try_from(number).ok())?;
    // SAFETY: the caller promises that a registered descriptor stays open; it is never closed here.
    Some(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// The caller's buffer as a place in memory that may be touched; `None` when it is not.
fn place(call: &Call<'_>, buffer: u64, offset: i64, bytes: usize) -> Option<u64> {
    let start = buffer.checked_add_signed(offset)?;
    call.machine().memory.is_accessible(start, bytes as u64).then_some(start)
}

/// `cuFileRead`: bytes read, or minus one. Reads above the copy limit are only measured against the file's length.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn read(
    call: &mut Call<'_>,
    handle: u64,
    buffer: u64,
    bytes: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> i64 {
    let (Some(file), Some(to), Ok(offset)) =
        (file(handle), place(call, buffer, buffer_offset, bytes), u64::try_from(file_offset))
    else {
        return -1;
    };
    if bytes as u64 > PERFORMED {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        call.machine().memory.freshen(to, bytes as u64);
        return length.saturating_sub(offset).min(bytes as u64) as i64;
    }
    let mut content = vec![0; bytes];
    let Ok(count) = file.read_at(&mut content, offset) else { return -1 };
    call.machine().memory.mark_written(to, count as u64);
    Out::<u8>::new(to as usize).write_bytes(&content[..count]).map_or(-1, |()| count as i64)
}

/// `cuFileWrite`: bytes written, or minus one. Beyond the copy limit zeros are not written out, only the file's end is set.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn write(
    call: &mut Call<'_>,
    handle: u64,
    buffer: u64,
    bytes: usize,
    file_offset: i64,
    buffer_offset: i64,
) -> i64 {
    let (Some(file), Some(from), Ok(offset)) =
        (file(handle), place(call, buffer, buffer_offset, bytes), u64::try_from(file_offset))
    else {
        return -1;
    };
    if bytes as u64 > PERFORMED {
        let end = offset.saturating_add(bytes as u64);
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        return file.set_len(length.max(end)).map_or(-1, |()| bytes as i64);
    }
    let mut content = Vec::new();
    if In::<u8>::new(from as usize).append_to(&mut content, bytes).is_err() {
        return -1;
    }
    file.write_at(&content, offset).map_or(-1, |count| count as i64)
}
