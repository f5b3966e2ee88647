//! Whatever numbers a program passes as handles, addresses and sizes: it gets a code, and the device goes on.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use proptest::prelude::*;
use support::*;

/// A handle, address or size: small, near the emulated ranges, like one of our handles, or anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..16,
        (0u64..1 << 44).prop_map(|offset| 0x2000_0000_0000 + (offset & !0xff)),
        (0u64..1 << 44).prop_map(|offset| 0x3000_0000_0000 + (offset & !0xff)),
        (0x11u64..0x60, 0u64..4, 0u64..8)
            .prop_map(|(kind, life, index)| kind << 48 | life << 28 | (index + 1) << 4),
        any::<u64>(),
        Just(2 << 20),
    ]
}

/// Calls one function; `device` is an address that is surely on a device.
unsafe fn call(which: u8, a: u64, b: u64, c: u64) -> i32 {
    let size = (b % (64 << 20)) as usize;
    let on_device = 0x2000_0000_0000 + a % (1 << 45);
    let mut out = 0u64;
    let out = &raw mut out;
    // SAFETY: handles are only looked up; addresses that would be followed lie in the emulated ranges.
    unsafe {
        match which % 24 {
            0 => cudaFree(a),
            1 => cudaFreeHost(a),
            2 => cudaHostUnregister(a),
            3 => cudaStreamSynchronize(a),
            4 => cudaStreamDestroy(a),
            5 => cudaEventRecord(a, b),
            6 => cudaEventSynchronize(a),
            7 => cudaEventDestroy(a),
            8 => cudaStreamWaitEvent(a, b, c as u32),
            9 => cudaStreamBeginCapture(a, b as i32),
            10 => cudaStreamEndCapture(a, out),
            11 => cudaGraphLaunch(a, b),
            12 => cudaGraphDestroy(a),
            13 => cudaGraphExecDestroy(a),
            14 => cuMemRelease(a),
            15 => cuMemMap(a, size, 0, c, 0),
            16 => cuMemUnmap(a, b as usize),
            17 => cuMemAddressReserve(out, b as usize, c as usize, 0, 0),
            18 => cudaLaunchKernel(a, Dim3(b as u32, 1, 1), Dim3(c as u32, 1, 1), std::ptr::null(), size, 0),
            19 => cudaMemsetAsync(on_device, c as i32, size, 0),
            20 => cudaMemcpyAsync(on_device, on_device ^ 4096, size, 3, b),
            21 => cudaMalloc(out, size),
            22 => cudaFreeAsync(a, b),
            _ => cuCtxSetCurrent(a),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_crashes(calls in prop::collection::vec((any::<u8>(), number(), number(), number()), 1..200)) {
        node();
        for (which, a, b, c) in calls {
            // SAFETY: see `call`.
            let code = unsafe { call(which, a, b, c) };
            prop_assert!((0..=999).contains(&code));
        }
        let mut address = 0;
        // SAFETY: valid places for answers.
        unsafe {
            prop_assert_eq!(cudaSetDevice(7), 0);
            prop_assert_eq!(cudaMalloc(&raw mut address, 512), 0);
            prop_assert_eq!(cudaMemset(address, 1, 512), 0);
            prop_assert_eq!(cudaFree(address), 0);
        }
    }
}
