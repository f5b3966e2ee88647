use proptest::prelude::*;

use super::*;

fn info(registers: u32, sizes: &[u32]) -> KernelInfo {
    let mut offset = 0;
    let parameters = sizes.iter().map(|&size| {
        let parameter = Parameter { offset, size };
        offset += size;
        parameter
    });
    KernelInfo {
        parameters: parameters.collect(),
        registers,
        max_threads: 1024,
        code: 256,
        ..KernelInfo::default()
    }
}

fn database(kernels: &[(String, KernelInfo)]) -> Vec<u8> {
    let mut builder = Builder::new();
    for (name, info) in kernels {
        builder.add(name, info.clone());
    }
    builder.finish(SmArch(90), 7)
}

#[test]
fn finds_each_kernel_again_and_no_other() {
    let kernels: Vec<_> = (0..500).map(|n| (format!("_Z1k{n}"), info(n, &vec![8; n as usize % 5]))).collect();
    let db = KernelDb::from_bytes(database(&kernels)).unwrap();
    assert_eq!((db.len(), db.arch(), db.key()), (500, SmArch(90), 7));
    for (name, info) in &kernels {
        assert_eq!(db.lookup(name).as_ref(), Some(info));
    }
    assert_eq!(db.lookup("_Z1k500"), None);
    assert_eq!(db.lookup(""), None);
}

#[test]
fn stores_equal_layouts_once() {
    let kernels: Vec<_> = (0..100).map(|n| (n.to_string(), info(n, &[8, 8, 4]))).collect();
    assert_eq!(database(&kernels).len(), HEADER + 100 * RECORD + 4 * 4);
}

#[test]
fn does_not_depend_on_order() {
    let mut kernels: Vec<_> = (0..20).map(|n| ((n % 10).to_string(), info(n, &[8]))).collect();
    let forward = database(&kernels);
    kernels.reverse();
    assert_eq!(forward, database(&kernels));
}

#[test]
fn says_what_is_wrong() {
    let good = database(&[("k".to_owned(), info(1, &[8]))]);
    let check = |bytes: &[u8], expect: &str| {
        let message = KernelDb::from_bytes(bytes.to_vec()).unwrap_err().to_string();
        assert!(message.contains(expect), "{message}");
    };
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    check(b"", "not a kernel database");
    check(b"#!/bin/sh", "not a kernel database");
    check(&good[..20], "20 bytes, the header alone has 48");
    check(&good[..good.len() - 1], "the header promises 96");
    check(&changed(8), "version 0, this program reads version 1");
    check(&changed(16), "the header promises");
    check(&changed(50), "checksum");
    check(&changed(41), "checksum");
}

#[test]
fn names_the_file_that_is_missing() {
    let error = KernelDb::load(Path::new("/nonexistent/kernels.db")).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/kernels.db"), "{error}");
}

proptest! {
    #[test]
    fn survives_garbage(bytes in prop::collection::vec(any::<u8>(), 0..200), layout: u32) {
        let mut image = MAGIC.to_vec();
        image.extend(&bytes);
        prop_assert!(KernelDb::from_bytes(image).is_err());

        // A well-summed file with a layout index that points anywhere.
        let mut image = database(&[("k".to_owned(), info(1, &[8]))]);
        image[HEADER + 16..HEADER + 20].copy_from_slice(&layout.to_le_bytes());
        let sum = checksum(&image[HEADER..]).to_le_bytes();
        image[40..48].copy_from_slice(&sum);
        let _ = KernelDb::from_bytes(image).unwrap().lookup("k");
    }
}
