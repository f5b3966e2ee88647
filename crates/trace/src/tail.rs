//! Reading of a worker trace while it is written.
//!
//! The writer publishes each frame by its length, so what can be read is whole. A [`Tail`] remembers how far it has
//! read each chunk; what is new comes in a [`Batch`], chunk by chunk. An announcement may lie in a later chunk than its
//! first use, but never in a later batch, since it was written before.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::reader::{Entry, frames};
use crate::record::FORMAT_VERSION;
use crate::writer::{CHUNK_HEADER, CHUNK_MAGIC, FILE_HEADER, MAGIC};

/// A worker trace that grows.
#[derive(Debug)]
pub struct Tail {
    file: File,
    chunk: usize,
    /// Of each chunk, where its next frame begins.
    read: Vec<usize>,
}

/// What was written since the last look.
#[derive(Debug, Default)]
pub struct Batch {
    /// Thread and frames.
    pieces: Vec<(u32, Vec<u8>)>,
}

impl Tail {
    /// Opens a file; `None` when it has no header yet, or is no worker trace of this version.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut header = [0; 24];
        if file.read_at(&mut header, 0)? < header.len() || header[..8] != MAGIC {
            return Ok(None);
        }
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let chunk = word(12) as usize;
        let sound = word(8) == FORMAT_VERSION && (CHUNK_HEADER + 1..1 << 28).contains(&chunk);
        Ok(sound.then_some(Self { file, chunk, read: Vec::new() }))
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> io::Result<Batch> {
        let length = self.file.metadata()?.len();
        let chunks = length.saturating_sub(FILE_HEADER as u64).div_ceil(self.chunk as u64) as usize;
        self.read.resize(chunks.max(self.read.len()), 0);
        let mut batch = Batch::default();
        let mut header = [0; CHUNK_HEADER];
        // From the last chunk to the first: a use that is seen was announced in a chunk that is still to be read.
        for (index, at) in self.read.iter_mut().enumerate().rev() {
            let begin = (FILE_HEADER + index * self.chunk) as u64;
            if *at + CHUNK_HEADER >= self.chunk
                || self.file.read_at(&mut header, begin)? < CHUNK_HEADER
                || header[..4] != CHUNK_MAGIC
            {
                continue;
            }
            *at = (*at).max(CHUNK_HEADER);
            let mut first = [0; 4];
            let published = self.file.read_at(&mut first, begin + *at as u64)? == 4 && first != [0; 4];
            if !published {
                continue;
            }
            let mut bytes = vec![0; self.chunk - *at];
            let got = self.file.read_at(&mut bytes, begin + *at as u64)?;
            bytes.truncate(got);
            let thread = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            let mut walk = frames(&bytes, thread);
            while walk.next().is_some() {}
            let used = walk.at();
            bytes.truncate(used);
            *at += used;
            batch.pieces.push((thread, bytes));
        }
        batch.pieces.reverse();
        Ok(batch)
    }
}

impl Batch {
    /// The new records, in file order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.pieces.iter().flat_map(|(thread, bytes)| frames(bytes, *thread))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::record::{Record, Stamp};
    use crate::writer::{self, CHUNK};

    #[test]
    fn what_is_new_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.trompe");
        let mut file = File::create(&path).unwrap();
        assert!(Tail::open(&path).unwrap().is_none(), "no header yet");
        let mut header = vec![0; FILE_HEADER];
        writer::write_file_header(&mut header, 1);
        file.write_all(&header).unwrap();
        let mut tail = Tail::open(&path).unwrap().unwrap();
        assert_eq!(tail.read().unwrap().entries().count(), 0);

        let mut chunk = vec![0; CHUNK];
        let mut at = writer::begin_chunk(&mut chunk, 7, 0);
        let mut write = |chunk: &mut [u8], count: usize| {
            for _ in 0..count {
                at = writer::append(chunk, at, Stamp { begin: 3, ticks: 0 }, &Record::End).unwrap();
            }
            file.write_all_at(chunk, FILE_HEADER as u64).unwrap();
        };
        write(&mut chunk, 2);
        let batch = tail.read().unwrap();
        assert_eq!(batch.entries().map(|entry| entry.thread).collect::<Vec<_>>(), [7, 7]);
        assert_eq!(tail.read().unwrap().entries().count(), 0);
        write(&mut chunk, 3);
        assert_eq!(tail.read().unwrap().entries().count(), 3);
    }
}
