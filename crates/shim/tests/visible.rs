//! `CUDA_VISIBLE_DEVICES` chooses and orders the devices that the runtime and the driver see.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use support::*;

#[test]
fn two_of_eight_in_another_order() {
    const PCI_BUS: i32 = 33;
    node();
    // SAFETY: the only test of this program, before the devices are made.
    unsafe { std::env::set_var("CUDA_VISIBLE_DEVICES", "5,2") };
    let bus = |device| {
        let mut value = 0;
        // SAFETY: a valid place for the answer.
        assert_eq!(unsafe { cudaDeviceGetAttribute(&raw mut value, PCI_BUS, device) }, 0);
        value
    };
    let mut count = 0;
    // SAFETY: a valid place for the answer.
    unsafe {
        assert_eq!(cudaGetDeviceCount(&raw mut count), 0);
        assert_eq!(cudaSetDevice(1), 0);
        assert_eq!(cudaSetDevice(2), 101);
    }
    assert_eq!(count, 2);
    assert_eq!(bus(0) - bus(1), 3 * 16, "buses are sixteen apart");
}
