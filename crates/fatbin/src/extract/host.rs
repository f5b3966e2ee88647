//! A host library: an ELF file on disk with fat binaries in it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};

use super::ExtractError;
use crate::container::{ENTRY_HEADER, Entry, HEADER, Header, MAGIC};

/// Sections that hold fat binaries: ordinary code and relocatable device code.
const FAT_BINARY_SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// Bytes that are searched at once for the next fat binary.
const SEARCH: u64 = 1 << 16;

/// An opened shared library, its section table read.
#[derive(Debug)]
pub struct HostLibrary {
    path: PathBuf,
    file: File,
    /// File offset and size of each section with fat binaries.
    sections: Vec<(u64, u64)>,
    build_id: Vec<u8>,
}

impl HostLibrary {
    /// Opens the library and reads its section table.
    ///
    /// # Errors
    /// When the file cannot be read or is no ELF file.
    pub fn open(path: &Path) -> Result<Self, ExtractError> {
        let io = |source| ExtractError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let (sections, build_id) =
            read_sections(&file).map_err(|reason| ExtractError::NotElf { path: path.to_owned(), reason })?;
        let mut library = Self { path: path.to_owned(), file, sections, build_id: Vec::new() };
        if let Some((offset, size)) = build_id {
            library.build_id = library.read(offset, size.min(256))?;
        }
        Ok(library)
    }

    /// Whether there is any section with fat binaries.
    #[must_use]
    pub fn has_device_code(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Bytes that tell this file from another version of it: name, size, and build id or modification time.
    ///
    /// # Errors
    /// When the file's metadata cannot be read.
    pub fn identity(&self) -> Result<Vec<u8>, ExtractError> {
        let metadata = self.file.metadata().map_err(|source| self.error(source))?;
        let mut bytes = self.path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        bytes.push(0);
        bytes.extend(metadata.size().to_le_bytes());
        if self.build_id.is_empty() {
            bytes.extend(metadata.mtime().to_le_bytes());
            bytes.extend(metadata.mtime_nsec().to_le_bytes());
        } else {
            bytes.extend(&self.build_id);
        }
        Ok(bytes)
    }

    /// Reads `size` bytes at `offset`.
    ///
    /// # Errors
    /// When the file is shorter or cannot be read.
    pub fn read(&self, offset: u64, size: u64) -> Result<Vec<u8>, ExtractError> {
        let length = self.file.metadata().map_err(|source| self.error(source))?.size();
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(self.error(io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|source| self.error(source))?;
        Ok(bytes)
    }

    /// Calls `visit` for each fat binary with the file offset and header of each of its entries.
    ///
    /// # Errors
    /// When the file cannot be read, or what `visit` returns.
    pub fn fat_binaries(
        &self,
        mut visit: impl FnMut(&[(u64, Entry)]) -> Result<(), ExtractError>,
    ) -> Result<(), ExtractError> {
        for &(start, size) in &self.sections {
            let end = start.saturating_add(size);
            let mut at = start;
            while let Some((offset, header)) = self.next_header(at, end)? {
                let stop = offset.saturating_add(header.total()).min(end);
                visit(&self.entries(offset.saturating_add(header.size), stop)?)?;
                at = stop.next_multiple_of(8);
            }
        }
        Ok(())
    }

    fn next_header(&self, mut at: u64, end: u64) -> Result<Option<(u64, Header)>, ExtractError> {
        let mut window = HEADER as u64;
        while at.saturating_add(HEADER as u64) <= end {
            let bytes = self.read(at, window.min(end - at))?;
            for place in (0..=bytes.len() - HEADER).step_by(8) {
                if let Some(header) = Header::parse(&bytes[place..])
                    .filter(|_| bytes[place..].starts_with(&MAGIC.to_le_bytes()))
                {
                    return Ok(Some((at + place as u64, header)));
                }
            }
            at += ((bytes.len() - HEADER) as u64 / 8 + 1) * 8;
            window = SEARCH;
        }
        Ok(None)
    }

    fn entries(&self, mut at: u64, end: u64) -> Result<Vec<(u64, Entry)>, ExtractError> {
        let mut entries = Vec::new();
        while at.saturating_add(ENTRY_HEADER as u64) <= end {
            let Some(entry) = Entry::parse(&self.read(at, ENTRY_HEADER as u64)?) else { break };
            let next = at.saturating_add(entry.total());
            if next > end {
                break;
            }
            entries.push((at, entry));
            at = next;
        }
        Ok(entries)
    }

    fn error(&self, source: io::Error) -> ExtractError {
        ExtractError::Io { path: self.path.clone(), source }
    }
}

type Place = (u64, u64);

fn read_sections(file: &File) -> object::read::Result<(Vec<Place>, Option<Place>)> {
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, &cache)?;
    let place = |name: &[u8]| {
        let found =
            sections.iter().find(|section| sections.section_name(endian, section).is_ok_and(|n| n == name));
        found.and_then(|section| section.file_range(endian)).filter(|(_, size)| *size > 0)
    };
    Ok((FAT_BINARY_SECTIONS.iter().filter_map(|name| place(name)).collect(), place(b".note.gnu.build-id")))
}
