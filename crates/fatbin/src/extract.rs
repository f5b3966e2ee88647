//! Walks the fat binaries of host libraries and builds kernel databases from them.
//!
//! A library is never read whole: section headers first, then entry headers one by one, then only the payloads
//! chosen. At most one payload, stored and raw, is in memory at a time.

mod host;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::container::{Compression, Entry, Kind};
use crate::db::Builder;
use crate::{Choice, SmArch, cubin};

pub use self::host::HostLibrary;

/// Largest payload, raw, that is unpacked: 1 GiB. The largest in PyTorch's libraries is some tens of MiB.
const RAW_LIMIT: u64 = 1 << 30;

/// Why fat binaries could not be extracted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// A library could not be read, or the database not written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A library is no 64-bit ELF file.
    #[error("`{}` is not a shared library: {reason}", path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What the ELF reader stumbled over.
        reason: object::read::Error,
    },
}

/// What was found while extracting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Host libraries that carry device code.
    pub libraries: usize,
    /// Fat binaries in them.
    pub fat_binaries: usize,
    /// Cubins chosen and read.
    pub cubins: usize,
    /// Cubins among these whose architecture the device could not run; see [`SmArch::choose`].
    pub foreign: usize,
    /// Entries that did not decompress or are no cubin.
    pub broken: usize,
    /// Distinct kernels.
    pub kernels: usize,
    /// Kernels among these that take no parameter or whose layout is not known.
    pub without_parameters: usize,
    /// Bytes read of chosen payloads.
    pub stored_bytes: u64,
    /// Bytes of the same after decompression.
    pub raw_bytes: u64,
}

/// Identity of a set of libraries for an architecture: names, sizes and build ids (modification times where
/// there is no build id). The path does not count, so a moved environment keeps its database.
///
/// # Errors
/// When a library cannot be read.
pub fn key(libraries: &[PathBuf], arch: SmArch) -> Result<u128, ExtractError> {
    let mut parts = BTreeSet::new();
    for path in libraries {
        parts.insert(HostLibrary::open(path)?.identity()?);
    }
    let mut hasher = SipHasher13::new();
    std::hash::Hasher::write(&mut hasher, &arch.0.to_le_bytes());
    for part in parts {
        std::hash::Hasher::write(&mut hasher, &(part.len() as u64).to_le_bytes());
        std::hash::Hasher::write(&mut hasher, &part);
    }
    Ok(hasher.finish128().as_u128())
}

/// Reads every fat binary of `libraries` and gives the database's bytes.
///
/// # Errors
/// When a library cannot be read. Broken or unreadable entries are counted, not reported as errors.
pub fn build(libraries: &[PathBuf], arch: SmArch) -> Result<(Vec<u8>, Stats), ExtractError> {
    let key = key(libraries, arch)?;
    let mut extraction =
        Extraction { arch, builder: Builder::new(), stats: Stats::default(), raw: Vec::new() };
    for path in libraries {
        extraction.library(&HostLibrary::open(path)?)?;
    }
    let Extraction { builder, mut stats, .. } = extraction;
    stats.kernels = builder.len();
    stats.without_parameters = builder.kernels().filter(|info| info.parameters.is_empty()).count();
    Ok((builder.finish(arch, key), stats))
}

/// [`build`], written to `destination`: first to a temporary file beside it, then renamed, so that readers see the old
/// file or the whole new one. Missing folders are made.
///
/// # Errors
/// When a library cannot be read or the file cannot be written.
pub fn build_file(libraries: &[PathBuf], arch: SmArch, destination: &Path) -> Result<Stats, ExtractError> {
    let (bytes, stats) = build(libraries, arch)?;
    write_atomically(destination, &bytes)
        .map_err(|source| ExtractError::Io { path: destination.to_owned(), source })?;
    Ok(stats)
}

fn write_atomically(destination: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match destination.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(destination).map_err(|error| error.error)?;
    Ok(())
}

struct Extraction {
    arch: SmArch,
    builder: Builder,
    stats: Stats,
    raw: Vec<u8>,
}

impl Extraction {
    fn library(&mut self, library: &HostLibrary) -> Result<(), ExtractError> {
        let mut found = false;
        library.fat_binaries(|entries| {
            found = true;
            self.fat_binary(library, entries)
        })?;
        self.stats.libraries += usize::from(found);
        Ok(())
    }

    fn fat_binary(&mut self, library: &HostLibrary, entries: &[(u64, Entry)]) -> Result<(), ExtractError> {
        self.stats.fat_binaries += 1;
        let cubins = entries.iter().filter(|(_, entry)| entry.kind == Kind::Cubin);
        let Some(choice) = self.arch.choose(cubins.clone().map(|(_, entry)| entry.arch)) else {
            return Ok(());
        };
        for (at, entry) in cubins.filter(|(_, entry)| entry.arch == choice.arch()) {
            let stored = library.read(at + entry.header, entry.stored)?;
            self.stats.stored_bytes += entry.stored;
            if self.cubin(*entry, &stored).is_none() {
                self.stats.broken += 1;
                continue;
            }
            self.stats.cubins += 1;
            self.stats.foreign += usize::from(choice != Choice::Native(choice.arch()));
        }
        Ok(())
    }

    fn cubin(&mut self, entry: Entry, stored: &[u8]) -> Option<()> {
        let image = match entry.compression {
            Compression::None => stored,
            Compression::Zstd | Compression::Lz4 => {
                if entry.raw > RAW_LIMIT {
                    return None;
                }
                let raw = usize::try_from(entry.raw).ok()?;
                self.raw.clear();
                if entry.compression == Compression::Zstd {
                    self.raw.reserve(raw);
                    zstd::bulk::Decompressor::new().ok()?.decompress_to_buffer(stored, &mut self.raw).ok()?;
                } else {
                    self.raw.resize(raw, 0);
                    let written = lz4_flex::block::decompress_into(stored, &mut self.raw).ok()?;
                    self.raw.truncate(written);
                }
                &self.raw
            }
        };
        self.stats.raw_bytes += image.len() as u64;
        for (name, info) in cubin::kernels(image).ok()? {
            self.builder.add(name, info);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
