//! File descriptors that stand for device memory of another process: a small anonymous file that says what it is.

#![expect(unsafe_code, reason = "makes and reads an anonymous file")]

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;

const MAGIC: [u8; 8] = *b"trompevm";

/// A new descriptor for an allocation; the caller owns it.
pub(crate) fn export(bytes: u64, device: u32) -> Option<i32> {
    // SAFETY: the name is a C string; the descriptor that comes back is ours.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"trompe-device-memory".as_ptr(), libc::MFD_CLOEXEC);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor))
    }?;
    let mut content = MAGIC.to_vec();
    content.extend(bytes.to_le_bytes());
    content.extend(device.to_le_bytes());
    file.write_all(&content).ok()?;
    Some(file.into_raw_fd())
}

/// Bytes and device of the allocation that a descriptor stands for; `None` when it is no descriptor of ours.
pub(crate) fn import(descriptor: i32) -> Option<(u64, u32)> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor belongs to the caller; it is only read from and not closed here. A wrong one is an error.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    let mut content = [0; 20];
    file.read_exact_at(&mut content, 0).ok()?;
    let bytes = u64::from_le_bytes(content[8..16].try_into().ok()?);
    let device = u32::from_le_bytes(content[16..20].try_into().ok()?);
    (content[..8] == MAGIC).then_some((bytes, device))
}
