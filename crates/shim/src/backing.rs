//! Host memory behind the emulated device: lazily backed reservations.

#![expect(unsafe_code, reason = "maps, unmaps and clears memory")]

use trompe_device::memory::Backing;

/// The process's own address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostBacking;

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const LAZY: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

impl Backing for HostBacking {
    fn reserve_at(&self, address: u64, bytes: u64) -> bool {
        let wanted = address as *mut libc::c_void;
        // SAFETY: a new anonymous mapping that replaces nothing (`MAP_FIXED_NOREPLACE`).
        let got = unsafe {
            libc::mmap(wanted, bytes as usize, READ_WRITE, LAZY | libc::MAP_FIXED_NOREPLACE, -1, 0)
        };
        if got != libc::MAP_FAILED && got != wanted {
            // SAFETY: the mapping made just now; kernels before 4.17 take the address as a hint only.
            unsafe { libc::munmap(got, bytes as usize) };
        }
        if got == wanted {
            advise(address, bytes);
        }
        got == wanted
    }

    fn reserve(&self, bytes: u64) -> Option<u64> {
        // SAFETY: a new anonymous mapping where the system likes.
        let got = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, READ_WRITE, LAZY, -1, 0) };
        if got == libc::MAP_FAILED {
            return None;
        }
        advise(got as u64, bytes);
        Some(got as u64)
    }

    fn is_mapped(&self, address: u64, bytes: u64) -> bool {
        let first = address / 4096 * 4096;
        let length = (address + bytes).next_multiple_of(4096) - first;
        // SAFETY: writes nothing; the answer is an error where the range has a hole.
        unsafe { libc::msync(first as *mut libc::c_void, length as usize, libc::MS_ASYNC) == 0 }
    }

    fn release(&self, address: u64, bytes: u64) {
        // SAFETY: the caller names a reservation of its own, which nobody refers to any more.
        unsafe { libc::munmap(address as *mut libc::c_void, bytes as usize) };
    }

    fn discard(&self, address: u64, bytes: u64) {
        // SAFETY: whole pages of a reservation; they read zero afterwards.
        unsafe { libc::madvise(address as *mut libc::c_void, bytes as usize, libc::MADV_DONTNEED) };
    }

    fn zero(&self, address: u64, bytes: u64) {
        // SAFETY: bytes inside a readable and writable reservation.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes as usize) };
    }
}

/// Keeps a reservation small: no huge page where one byte was touched, and nothing of it in a core dump.
fn advise(address: u64, bytes: u64) {
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: a reservation made just now; the advice changes no content.
        unsafe { libc::madvise(address as *mut libc::c_void, bytes as usize, advice) };
    }
}
