//! The fat binary: a 16-byte header, then entries of one architecture each, each with a header of its own.
//!
//! Read off the binaries that `nvcc` and `fatbinary` of CUDA 11 to 13 write (NVIDIA publishes no specification):
//!
//! | header | | entry header | |
//! |---|---|---|---|
//! | 0 | u32 magic `0xBA55ED50` | 0 | u16 kind: 1 PTX, 2 cubin |
//! | 4 | u16 version | 4 | u32 size of this header, 64 or more |
//! | 6 | u16 size of this header | 8 | u64 size of the payload with padding |
//! | 8 | u64 size of what follows | 16 | u32 size of the compressed payload |
//! | | | 28 | u32 architecture |
//! | | | 40 | u64 flags: 0x8000 zstd, 0x2000 LZ4 |
//! | | | 56 | u64 size after decompression |

use crate::SmArch;

/// First word of a fat binary.
pub const MAGIC: u32 = 0xBA55_ED50;
/// Size in bytes of the fixed part of a fat binary's header.
pub const HEADER: usize = 16;
/// Size in bytes of the fixed part of an entry's header.
pub const ENTRY_HEADER: usize = 64;

const FLAG_ZSTD: u64 = 0x8000;
const FLAG_LZ4: u64 = 0x2000;

/// Header of a fat binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes from the start of this header to the first entry.
    pub size: u64,
    /// Bytes of all entries together.
    pub entries: u64,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` when there is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let magic = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        let size = u64::from(u16::from_le_bytes(bytes.get(6..8)?.try_into().ok()?));
        let entries = u64_at(bytes, 8)?;
        (magic == MAGIC && size >= HEADER as u64).then_some(Self { size, entries })
    }

    /// Bytes of header and entries.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.size.saturating_add(self.entries)
    }
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// Something newer than this code.
    Other(u16),
}

/// How the payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    None,
    /// One zstd frame.
    Zstd,
    /// One LZ4 block, as CUDA 12 and earlier store them.
    Lz4,
}

/// Header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the payload is.
    pub kind: Kind,
    /// What it was compiled for.
    pub arch: SmArch,
    /// How it is stored.
    pub compression: Compression,
    /// Bytes from the start of this header to the payload.
    pub header: u64,
    /// Bytes from the payload to the next entry.
    pub padded: u64,
    /// Bytes of the payload as stored.
    pub stored: u64,
    /// Bytes of the payload when decompressed.
    pub raw: u64,
}

impl Entry {
    /// Reads the entry header at the start of `bytes`; `None` when it is cut short or nonsense.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..ENTRY_HEADER)?;
        let kind = match u16::from_le_bytes([bytes[0], bytes[1]]) {
            1 => Kind::Ptx,
            2 => Kind::Cubin,
            other => Kind::Other(other),
        };
        let header = u64::from(u32_at(bytes, 4)?);
        let padded = u64_at(bytes, 8)?;
        let flags = u64_at(bytes, 40)?;
        let compression = match (flags & FLAG_ZSTD != 0, flags & FLAG_LZ4 != 0) {
            (true, _) => Compression::Zstd,
            (false, true) => Compression::Lz4,
            (false, false) => Compression::None,
        };
        let (stored, raw) = match compression {
            Compression::None => (padded, padded),
            Compression::Zstd | Compression::Lz4 => (u64::from(u32_at(bytes, 16)?), u64_at(bytes, 56)?),
        };
        let sane = header >= ENTRY_HEADER as u64 && stored <= padded;
        sane.then_some(Self {
            kind,
            arch: SmArch(u32_at(bytes, 28)?),
            compression,
            header,
            padded,
            stored,
            raw,
        })
    }

    /// Bytes from the start of this header to the next entry.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.header.saturating_add(self.padded)
    }
}

/// The entries of the fat binary at the start of `bytes`, with their payloads as stored; ends where the bytes
/// stop making sense.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = (Entry, &[u8])> {
    let mut rest = Header::parse(bytes).map_or(&[][..], |header| {
        let end = usize::try_from(header.total()).unwrap_or(usize::MAX).min(bytes.len());
        bytes.get(header.size as usize..end).unwrap_or(&[])
    });
    std::iter::from_fn(move || {
        let entry = Entry::parse(rest)?;
        let start = usize::try_from(entry.header).ok()?;
        let payload = rest.get(start..start.checked_add(usize::try_from(entry.stored).ok()?)?)?;
        rest = usize::try_from(entry.total()).ok().and_then(|size| rest.get(size..)).unwrap_or(&[]);
        Some((entry, payload))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
