//! Hand-made ELF images, cubins and fat binaries for tests.

use crate::container::{ENTRY_HEADER, HEADER, MAGIC};

/// A section of an image: name, type, `sh_info`, content.
pub(crate) struct Section {
    name: String,
    kind: u32,
    info: u32,
    data: Vec<u8>,
}

impl Section {
    pub(crate) fn new(name: impl Into<String>, data: Vec<u8>) -> Self {
        Self { name: name.into(), kind: 1, info: 0, data }
    }
}

/// A little-endian ELF64 image with the given sections and a section name table.
pub(crate) fn elf(sections: &[Section]) -> Vec<u8> {
    let mut names = vec![0_u8];
    let mut place = |name: &str| {
        let at = names.len() as u32;
        names.extend(name.bytes());
        names.push(0);
        at
    };
    let placed: Vec<u32> = sections.iter().map(|section| place(&section.name)).collect();
    let names_name = place(".shstrtab");
    let mut image = vec![0_u8; 64];
    let mut headers = vec![0_u8; 64];
    let mut header = |name: u32, section: (u32, u32), offset: u64, size: u64, link: u32| {
        headers.extend(name.to_le_bytes());
        headers.extend(section.0.to_le_bytes());
        headers.extend([0; 16]);
        headers.extend(offset.to_le_bytes());
        headers.extend(size.to_le_bytes());
        headers.extend(link.to_le_bytes());
        headers.extend(section.1.to_le_bytes());
        headers.extend([0; 8]);
        headers.extend(if section.0 == 2 { 24_u64 } else { 0 }.to_le_bytes());
    };
    let strings =
        sections.iter().position(|section| section.name == ".strtab").map_or(0, |index| index as u32 + 1);
    for (section, name) in sections.iter().zip(placed) {
        header(name, (section.kind, section.info), image.len() as u64, section.data.len() as u64, strings);
        image.extend(&section.data);
        image.resize(image.len().next_multiple_of(8), 0);
    }
    header(names_name, (3, 0), image.len() as u64, names.len() as u64, 0);
    image.extend(&names);
    image.resize(image.len().next_multiple_of(8), 0);
    let table = image.len() as u64;
    image.extend(&headers);
    image[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    image[16..20].copy_from_slice(&[2, 0, 190, 0]);
    image[20] = 1;
    image[40..48].copy_from_slice(&table.to_le_bytes());
    image[52..54].copy_from_slice(&64_u16.to_le_bytes());
    image[58..60].copy_from_slice(&64_u16.to_le_bytes());
    image[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
    image[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
    image
}

/// An attribute of format 4.
pub(crate) fn attribute(number: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![4, number];
    bytes.extend((words.len() as u16 * 4).to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// `KPARAM_INFO` of one parameter.
pub(crate) fn parameter(ordinal: u32, offset: u32, size: u32) -> Vec<u8> {
    attribute(0x17, &[0, ordinal | offset << 16, size << 18 | 0x1_f000])
}

/// `KPARAM_INFO_V2` of one parameter.
pub(crate) fn wide_parameter(ordinal: u32, offset: u32, size: u32) -> Vec<u8> {
    attribute(0x45, &[0, ordinal | offset << 16, size])
}

/// A cubin with one kernel of 40 registers, a frame of 16 bytes, 1 KiB of shared memory, `attributes` of its own.
pub(crate) fn cubin(kernel: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut strings = vec![0];
    strings.extend(kernel.bytes());
    strings.push(0);
    let mut symbols = vec![0; 24];
    symbols.extend(1_u32.to_le_bytes());
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend([0; 16]);
    let global = [attribute(0x2f, &[1, 40]), attribute(0x11, &[1, 16])].concat();
    elf(&[
        Section::new(format!(".text.{kernel}"), vec![0; 256]),
        Section::new(format!(".nv.info.{kernel}"), attributes.concat()),
        Section { kind: 8, ..Section::new(format!(".nv.shared.{kernel}"), vec![0; 1024]) },
        Section::new(format!(".nv.constant0.{kernel}"), vec![0; 560]),
        Section { kind: 0x7000_0000, ..Section::new(".nv.info", global) },
        Section { kind: 3, ..Section::new(".strtab", strings) },
        Section { kind: 2, info: 1, ..Section::new(".symtab", symbols) },
    ])
}

/// How an entry of a made-up fat binary is stored.
#[derive(Clone, Copy)]
pub(crate) enum Store {
    Plain,
    Zstd,
    Lz4,
}

/// An entry: kind, architecture and payload.
pub(crate) fn entry(kind: u16, arch: u32, payload: &[u8], store: Store) -> Vec<u8> {
    let (stored, flags) = match store {
        Store::Plain => (payload.to_vec(), 0_u64),
        Store::Zstd => (zstd::bulk::compress(payload, 1).unwrap(), 0x8000),
        Store::Lz4 => (lz4_flex::block::compress(payload), 0x2000),
    };
    let mut bytes = vec![0; ENTRY_HEADER];
    bytes[..2].copy_from_slice(&kind.to_le_bytes());
    bytes[4..8].copy_from_slice(&(ENTRY_HEADER as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&(stored.len().next_multiple_of(8) as u64).to_le_bytes());
    bytes[16..20].copy_from_slice(&(if flags == 0 { 0 } else { stored.len() as u32 }).to_le_bytes());
    bytes[28..32].copy_from_slice(&arch.to_le_bytes());
    bytes[40..48].copy_from_slice(&flags.to_le_bytes());
    bytes[56..64].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend(&stored);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A fat binary of `entries`.
pub(crate) fn fat_binary(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend(1_u16.to_le_bytes());
    bytes.extend((HEADER as u16).to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// A host library whose `.nv_fatbin` holds `fat_binaries`, with some padding between them.
pub(crate) fn host_library(fat_binaries: &[Vec<u8>]) -> Vec<u8> {
    let mut section = Vec::new();
    for fat_binary in fat_binaries {
        section.extend(fat_binary);
        section.extend([0; 24]);
    }
    elf(&[Section::new(".text", vec![0xc3; 64]), Section::new(".nv_fatbin", section)])
}
