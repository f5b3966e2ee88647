use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::KernelDb;
use crate::container::entries;
use crate::fixture::{Store, cubin, entry, fat_binary, host_library, parameter};

const PTX: u16 = 1;
const CUBIN: u16 = 2;

fn library(folder: &TempDir, name: &str, fat_binaries: &[Vec<u8>]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, host_library(fat_binaries)).unwrap();
    path
}

fn kernel(name: &str, size: u32) -> Vec<u8> {
    cubin(name, &[parameter(0, 0, size)])
}

#[test]
fn chooses_decompresses_and_counts() {
    let folder = TempDir::new().unwrap();
    let first = fat_binary(&[
        entry(CUBIN, 80, &kernel("a", 4), Store::Zstd),
        entry(CUBIN, 90, &kernel("a", 8), Store::Zstd),
        entry(CUBIN, 90, &kernel("b", 16), Store::Plain),
        entry(PTX, 90, b".version 8.0", Store::Zstd),
    ]);
    let second = fat_binary(&[
        entry(CUBIN, 75, &kernel("c", 8), Store::Zstd),
        entry(CUBIN, 90, b"not one", Store::Plain),
    ]);
    let third = fat_binary(&[
        entry(CUBIN, 80, &kernel("d", 8), Store::Zstd),
        entry(CUBIN, 90, &kernel("e", 24), Store::Lz4),
    ]);
    let fourth = fat_binary(&[entry(CUBIN, 80, &kernel("f", 8), Store::Lz4)]);
    let path = library(&folder, "libdevice.so", &[first, second, third, fourth]);
    let destination = folder.path().join("cache/kernels.db");
    let stats = build_file(std::slice::from_ref(&path), SmArch(90), &destination).unwrap();

    assert_eq!((stats.libraries, stats.fat_binaries, stats.cubins, stats.kernels), (1, 4, 4, 4));
    assert_eq!((stats.broken, stats.foreign, stats.without_parameters), (1, 1, 0));
    let db = KernelDb::load(&destination).unwrap();
    let size = |name: &str| db.lookup(name).map(|info| info.parameter_bytes());
    assert_eq!(["a", "b", "c", "d", "e", "f"].map(size), [Some(8), Some(16), None, None, Some(24), Some(8)]);
    assert_eq!(db.key(), key(&[path], SmArch(90)).unwrap());
    assert_eq!(std::fs::read_dir(destination.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn equal_libraries_give_equal_bytes_wherever_they_lie() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let content = [fat_binary(&[entry(CUBIN, 90, &kernel("a", 8), Store::Zstd)])];
    let (first, second) = (library(&here, "lib.so", &content), library(&there, "lib.so", &content));
    let time = std::fs::metadata(&first).unwrap().modified().unwrap();
    std::fs::File::options().append(true).open(&second).unwrap().set_modified(time).unwrap();
    let all = [first, second];
    assert_eq!(build(&all[..1], SmArch(90)).unwrap(), build(&all[1..], SmArch(90)).unwrap());

    assert_ne!(key(&all[..1], SmArch(90)).unwrap(), key(&all[..1], SmArch(80)).unwrap());
    let later = time + std::time::Duration::from_secs(1);
    std::fs::File::options().append(true).open(&all[1]).unwrap().set_modified(later).unwrap();
    assert_ne!(key(&all[..1], SmArch(90)).unwrap(), key(&all[1..], SmArch(90)).unwrap());
}

#[test]
fn libraries_without_device_code_are_fine_and_other_files_are_named() {
    let folder = TempDir::new().unwrap();
    let plain = library(&folder, "plain.so", &[]);
    assert_eq!(build(&[plain], SmArch(90)).unwrap().1, Stats::default());
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "hello").unwrap();
    let error = build(&[text], SmArch(90)).unwrap_err().to_string();
    assert!(error.contains("notes.txt"), "{error}");
    let error = build(&[folder.path().join("absent.so")], SmArch(90)).unwrap_err().to_string();
    assert!(error.contains("absent.so"), "{error}");
}

#[test]
fn walks_a_fat_binary_in_memory() {
    let payload = kernel("a", 8);
    let bytes = fat_binary(&[entry(PTX, 90, b"ptx", Store::Plain), entry(CUBIN, 90, &payload, Store::Plain)]);
    let found: Vec<_> = entries(&bytes).map(|(entry, payload)| (entry.kind, payload.len())).collect();
    assert_eq!(found, [(Kind::Ptx, 8), (Kind::Cubin, payload.len())]);
}

/// Real libraries, when the project's own environment is installed.
#[test]
fn reads_the_installed_framework() {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let Some(torch) = std::fs::read_dir(environment).ok().and_then(|entries| {
        entries
            .flatten()
            .map(|entry| entry.path().join("site-packages/torch/lib"))
            .find(|path| path.join("libtorch_cuda_linalg.so").exists())
    }) else {
        return;
    };
    let libraries = [torch.join("libtorch_cuda_linalg.so")];
    let (bytes, stats) = build(&libraries, SmArch(90)).unwrap();
    assert!(stats.kernels > 100, "{stats:?}");
    assert_eq!(stats.broken, 0, "{stats:?}");
    assert!(stats.without_parameters * 20 < stats.kernels, "{stats:?}");
    assert_eq!(KernelDb::from_bytes(bytes).unwrap().len(), stats.kernels);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn survives_damage(at: prop::sample::Index, value: u8, cut: prop::sample::Index) {
        let folder = TempDir::new().unwrap();
        let fat = fat_binary(&[entry(CUBIN, 90, &kernel("a", 8), Store::Zstd), entry(CUBIN, 80, &kernel("b", 8), Store::Plain)]);
        let mut bytes = host_library(&[fat.clone(), fat]);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let path = folder.path().join("damaged.so");
        std::fs::write(&path, &bytes).unwrap();
        let _ = build(std::slice::from_ref(&path), SmArch(90));
        std::fs::write(&path, &bytes[..cut.index(bytes.len())]).unwrap();
        let _ = build(&[path], SmArch(90));
    }
}
