//! The two clocks of a process: the counter that stamps records, and the system clocks that it is paired with.

#![expect(unsafe_code, reason = "reads the processor's counter and the system clocks")]

/// The processor's time-stamp counter: the cheapest clock there is, constant-rate on every processor of the last decade.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: the virtual counter is readable from user space on Linux.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_ns() -> u64 {
    system(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    system(libc::CLOCK_REALTIME)
}

fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
