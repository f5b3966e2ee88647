use proptest::prelude::*;

use super::*;
use crate::fixture::{attribute, cubin, parameter, wide_parameter};

#[track_caller]
fn check(attributes: &[Vec<u8>], parameters: &[(u32, u32)], max_threads: u32) {
    let image = cubin("k", attributes);
    let expected = KernelInfo {
        parameters: parameters.iter().map(|&(offset, size)| Parameter { offset, size }).collect(),
        registers: 40,
        static_shared: 1024,
        local_memory: 16,
        max_threads,
        constant_bank: 560,
        code: 256,
        ..KernelInfo::default()
    };
    assert_eq!(kernels(&image).unwrap(), BTreeMap::from([("k", expected)]));
}

#[test]
fn reads_parameters_and_limits() {
    check(&[], &[], 0);
    check(&[parameter(0, 0, 8)], &[(0, 8)], 0);
    check(&[parameter(1, 8, 4), parameter(0, 0, 8)], &[(0, 8), (8, 4)], 0);
    check(&[parameter(0, 0, 8), wide_parameter(1, 8, 25_700)], &[(0, 8), (8, 25_700)], 0);
    check(&[attribute(0x05, &[128, 2, 1])], &[], 256);
    check(&[attribute(0x10, &[512, 1, 1])], &[], 512);
}

#[test]
fn passes_over_unknown_attributes() {
    check(&[vec![1, 0x99, 0, 0], vec![3, 0x1b, 255, 0], parameter(0, 0, 8)], &[(0, 8)], 0);
    check(&[attribute(0x17, &[0]), parameter(0, 0, 8)], &[(0, 8)], 0);
}

#[test]
fn gives_no_layout_rather_than_a_wrong_one() {
    check(&[parameter(0, 0, 8), parameter(2, 16, 8)], &[], 0);
    check(&[wide_parameter(0, 0, 40_000)], &[], 0);
    check(&[wide_parameter(0, 32_000, u32::MAX)], &[], 0);
}

#[test]
fn knows_its_own_size() {
    let image = cubin("kernel", &[parameter(0, 0, 8)]);
    assert_eq!(image_size(&image), Some(image.len() as u64));
    assert_eq!(image_size(&image[..40]), None);
    assert_eq!(image_size(b"PTX"), None);
}

#[test]
fn refuses_what_is_no_cubin() {
    for image in [&b""[..], b"\x7fELF", b".version 8.0\n.target sm_90", &cubin("k", &[])[..100]] {
        assert!(matches!(kernels(image), Err(CubinError::Elf { bytes, .. }) if bytes == image.len()));
    }
}

proptest! {
    #[test]
    fn survives_garbage(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = kernels(&bytes);
        let _ = attributes::iterate(&bytes).count();
    }

    #[test]
    fn survives_damage(at in 0_usize..4000, value: u8, cut in 0_usize..4000) {
        let mut image = cubin("kernel", &[parameter(0, 0, 8), parameter(1, 8, 16), attribute(0x05, &[1024, 1, 1])]);
        let at = at % image.len();
        image[at] = value;
        let _ = kernels(&image);
        let _ = image_size(&image);
        let _ = kernels(&image[..cut % image.len()]);
    }
}
