//! The kernel database: what the cubins of a framework build say, in one file that is searched as it lies.
//!
//! ```text
//! header    magic 8 · version u32 · architecture u32 · kernels u32 · layout words u32 · key u128 · checksum u64
//! kernels   sorted by hash, 40 bytes each: name hash u128 · layout u32 · registers u16 · max threads u16 ·
//!           static shared u32 · local memory u32 · constant bank u32 · code u32
//! layouts   u32 words: a count, then `offset << 16 | size` per parameter; equal layouts are stored once
//! ```
//! All little endian. Names are not kept: 128 bits of SipHash-1-3 tell them apart. The key identifies the
//! libraries that the facts came from; the checksum covers everything after the header.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher128};

use crate::SmArch;
use crate::cubin::{KernelInfo, Parameter};

const MAGIC: [u8; 8] = *b"TROMPEKD";
const VERSION: u32 = 1;
const HEADER: usize = 48;
const RECORD: usize = 40;

/// Why a kernel database could not be used. All but `Io` are mended by building it again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelDbError {
    /// The file could not be read or written.
    #[error("kernel database `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("not a kernel database: it begins with {found:02x?}; delete it and it is built again")]
    Magic {
        /// First bytes of the file.
        found: Vec<u8>,
    },
    /// Written by another version of this code.
    #[error(
        "kernel database of version {found}, this program reads version {VERSION}; delete it and it is built again"
    )]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// Cut short or changed on disk.
    #[error("kernel database is damaged: {reason}; delete it and it is built again")]
    Damaged {
        /// What does not add up.
        reason: String,
    },
}

/// A loaded kernel database.
#[derive(Clone, Debug)]
pub struct KernelDb {
    bytes: Vec<u8>,
    arch: SmArch,
    key: u128,
    kernels: usize,
}

impl KernelDb {
    /// Reads the database at `path`: one read, one pass of checksum, no unpacking.
    ///
    /// # Errors
    /// When the file cannot be read or is not a whole database of this version.
    pub fn load(path: &Path) -> Result<Self, KernelDbError> {
        let bytes =
            std::fs::read(path).map_err(|source| KernelDbError::Io { path: path.to_owned(), source })?;
        Self::from_bytes(bytes)
    }

    /// Takes a database from memory.
    ///
    /// # Errors
    /// When `bytes` is not a whole database of this version.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, KernelDbError> {
        let damaged = |reason: String| KernelDbError::Damaged { reason };
        if !bytes.starts_with(&MAGIC) {
            return Err(KernelDbError::Magic { found: bytes[..bytes.len().min(8)].to_vec() });
        }
        if bytes.len() < HEADER {
            return Err(damaged(format!("{} bytes, the header alone has {HEADER}", bytes.len())));
        }
        let version = word(&bytes, 8);
        if version != VERSION {
            return Err(KernelDbError::Version { found: version });
        }
        let kernels = word(&bytes, 16) as usize;
        let expected = HEADER as u64 + kernels as u64 * RECORD as u64 + u64::from(word(&bytes, 20)) * 4;
        if expected != bytes.len() as u64 {
            return Err(damaged(format!("{} bytes, the header promises {expected}", bytes.len())));
        }
        if checksum(&bytes[HEADER..]).to_le_bytes() != bytes[40..48] {
            return Err(damaged("the checksum does not match".to_owned()));
        }
        let (arch, key) = (SmArch(word(&bytes, 12)), hash_at(&bytes, 24));
        Ok(Self { bytes, arch, key, kernels })
    }

    /// The architecture that the kernels were chosen for.
    #[must_use]
    pub const fn arch(&self) -> SmArch {
        self.arch
    }

    /// Identity of the libraries that the facts came from.
    #[must_use]
    pub const fn key(&self) -> u128 {
        self.key
    }

    /// Number of kernels.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.kernels
    }

    /// Whether there is no kernel at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kernels == 0
    }

    /// The kernel with the given mangled name.
    #[must_use]
    pub fn lookup(&self, mangled: &str) -> Option<KernelInfo> {
        let wanted = name_hash(mangled);
        let (mut low, mut high) = (0, self.kernels);
        while low < high {
            let middle = usize::midpoint(low, high);
            let at = HEADER + middle * RECORD;
            match hash_at(&self.bytes, at).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.record(at)),
            }
        }
        None
    }

    fn record(&self, at: usize) -> KernelInfo {
        let bytes = &self.bytes;
        let half =
            |offset: usize| u32::from(u16::from_le_bytes([bytes[at + offset], bytes[at + offset + 1]]));
        KernelInfo {
            parameters: self.layout(word(bytes, at + 16) as usize),
            registers: half(20),
            max_threads: half(22),
            static_shared: word(bytes, at + 24),
            local_memory: word(bytes, at + 28),
            constant_bank: word(bytes, at + 32),
            code: word(bytes, at + 36),
            ..KernelInfo::default()
        }
    }

    fn layout(&self, index: usize) -> Vec<Parameter> {
        let words = self.bytes[HEADER + self.kernels * RECORD..].as_chunks::<4>().0;
        let word = |at: usize| words.get(at).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let count = (word(index) as usize).min(words.len());
        (index + 1..=index + count)
            .map(|at| Parameter { offset: word(at) >> 16, size: word(at) & 0xffff })
            .collect()
    }
}

/// Collects kernels and writes them as a database. Equal kernels in any order give equal bytes.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    kernels: BTreeMap<u128, KernelInfo>,
}

impl Builder {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of distinct kernels so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// The kernels so far, in the order of the file.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.kernels.values()
    }

    /// Adds a kernel. The same name with other facts (two libraries may hold an inline template each): the one that compares
    /// greater by parameters, then registers stays, whatever the order of the calls.
    pub fn add(&mut self, mangled: &str, info: KernelInfo) {
        let rank = |info: &KernelInfo| {
            (
                info.parameters.clone(),
                info.registers,
                info.static_shared,
                info.local_memory,
                info.max_threads,
                info.constant_bank,
                info.code,
            )
        };
        self.kernels
            .entry(name_hash(mangled))
            .and_modify(|old| {
                if *old != info && rank(old) < rank(&info) {
                    *old = info.clone();
                }
            })
            .or_insert(info);
    }

    /// The bytes of the database.
    #[must_use]
    pub fn finish(&self, arch: SmArch, key: u128) -> Vec<u8> {
        let mut layouts = Vec::<u32>::new();
        let mut known = BTreeMap::<&[Parameter], u32>::new();
        let mut body = Vec::with_capacity(self.kernels.len() * RECORD);
        for (hash, info) in &self.kernels {
            let layout = *known.entry(&info.parameters).or_insert_with(|| {
                let index = layouts.len() as u32;
                layouts.push(info.parameters.len() as u32);
                layouts
                    .extend(info.parameters.iter().map(|parameter| parameter.offset << 16 | parameter.size));
                index
            });
            body.extend(hash.to_le_bytes());
            body.extend(layout.to_le_bytes());
            for small in [info.registers, info.max_threads] {
                body.extend(u16::try_from(small).unwrap_or(u16::MAX).to_le_bytes());
            }
            for wide in [info.static_shared, info.local_memory, info.constant_bank, info.code] {
                body.extend(wide.to_le_bytes());
            }
        }
        body.extend(layouts.iter().flat_map(|word| word.to_le_bytes()));
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(MAGIC);
        for field in [VERSION, arch.0, self.kernels.len() as u32, layouts.len() as u32] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(key.to_le_bytes());
        bytes.extend(checksum(&body).to_le_bytes());
        bytes.extend(body);
        bytes
    }
}

fn name_hash(mangled: &str) -> u128 {
    let mut hasher = SipHasher128::new();
    std::hash::Hasher::write(&mut hasher, mangled.as_bytes());
    hasher.finish128().as_u128()
}

fn checksum(bytes: &[u8]) -> u64 {
    SipHasher13::new().hash(bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn hash_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

#[cfg(test)]
mod tests;
