//! Encoding of worker traces into caller-owned memory.
//!
//! The caller (the preloaded library) owns the file and its mapping; this module only says which bytes go where, and
//! allocates nothing. Layout:
//!
//! * [`FILE_HEADER`] bytes of file header, then chunks of [`CHUNK`] bytes each, all zero at first;
//! * a chunk belongs to one thread: 16 bytes of chunk header, then frames at multiples of 8;
//! * a frame: `len: u32` (of the whole frame without padding; written **last**, so a killed writer leaves a clean
//!   end), `ticks: u32`, `begin: u64`, then the postcard body. `len == 0` ends the chunk.
//!
//! All integers are little-endian.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::record::{FORMAT_VERSION, Record, Stamp};

/// First bytes of every worker trace.
pub const MAGIC: [u8; 8] = *b"TROMPE\x00T";
/// Bytes before the first chunk: one page, so that chunks can be mapped.
pub const FILE_HEADER: usize = 4096;
/// Bytes of a chunk.
pub const CHUNK: usize = 256 << 10;
/// First bytes of every chunk in use.
pub const CHUNK_MAGIC: [u8; 4] = *b"CHNK";
/// Bytes of a chunk's header.
pub const CHUNK_HEADER: usize = 16;
/// Bytes of a frame's header.
pub const FRAME_HEADER: usize = 16;

/// Why a record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It does not fit into the rest of this chunk; take a new one.
    Chunk,
    /// It would not fit into an empty chunk either.
    Record,
}

/// Writes the file header into `page`, the first [`FILE_HEADER`] bytes of the file.
///
/// # Panics
/// When `page` is shorter than the header's 24 bytes.
pub fn write_file_header(page: &mut [u8], pid: u32) {
    page[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    page[12..16].copy_from_slice(&(CHUNK as u32).to_le_bytes());
    page[16..20].copy_from_slice(&pid.to_le_bytes());
    compiler_fence(Ordering::Release);
    page[..8].copy_from_slice(&MAGIC);
}

/// Writes the chunk header for a thread (operating system id) and returns the offset of the first frame.
///
/// # Panics
/// When `chunk` is shorter than [`CHUNK_HEADER`].
pub fn begin_chunk(chunk: &mut [u8], thread: u32, sequence: u32) -> usize {
    chunk[4..8].copy_from_slice(&thread.to_le_bytes());
    chunk[8..12].copy_from_slice(&sequence.to_le_bytes());
    compiler_fence(Ordering::Release);
    chunk[..4].copy_from_slice(&CHUNK_MAGIC);
    CHUNK_HEADER
}

/// Appends one record at offset `at` (a multiple of 8) of a chunk and returns the next offset.
///
/// The rest of the chunk must still be zero. On [`NoRoom`] nothing was published, but the bytes after `at + 4` are no
/// longer zero.
pub fn append(chunk: &mut [u8], at: usize, stamp: Stamp, record: &Record<'_>) -> Result<usize, NoRoom> {
    let no_room = |at| if at == CHUNK_HEADER { NoRoom::Record } else { NoRoom::Chunk };
    let frame = chunk.get_mut(at..).filter(|rest| rest.len() > FRAME_HEADER).ok_or(NoRoom::Chunk)?;
    let (header, body) = frame.split_at_mut(FRAME_HEADER);
    let used = postcard::serialize_with_flavor(record, Bytes { body, at: 0 }).map_err(|_| no_room(at))?;
    let len = FRAME_HEADER + used;
    header[4..8].copy_from_slice(&stamp.ticks.to_le_bytes());
    header[8..16].copy_from_slice(&stamp.begin.to_le_bytes());
    // A killed process must not leave a length before the bytes that it counts.
    compiler_fence(Ordering::Release);
    header[..4].copy_from_slice(&(len as u32).to_le_bytes());
    Ok((at + len).next_multiple_of(8))
}

/// Where a body goes. postcard writes a few bytes at a time; for these, copies of a fixed length are several times
/// faster than the general one of postcard's own slice.
struct Bytes<'a> {
    body: &'a mut [u8],
    at: usize,
}

impl postcard::ser_flavors::Flavor for Bytes<'_> {
    /// Bytes written.
    type Output = usize;

    #[inline(always)]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        *self.body.get_mut(self.at).ok_or(postcard::Error::SerializeBufferFull)? = byte;
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        let end = self.at + data.len();
        let to = self.body.get_mut(self.at..end).ok_or(postcard::Error::SerializeBufferFull)?;
        self.at = end;
        match data.len() {
            0 => {}
            1 => to[0] = data[0],
            // Two copies that overlap in the middle cover every length between one and two of them.
            2..=3 => overlapping::<2>(to, data),
            4..=7 => overlapping::<4>(to, data),
            8..=16 => overlapping::<8>(to, data),
            _ => to.copy_from_slice(data),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.at)
    }
}

/// Copies `N` to `2 N` bytes.
#[inline(always)]
fn overlapping<const N: usize>(to: &mut [u8], from: &[u8]) {
    let last = from.len() - N;
    to[..N].copy_from_slice(&from[..N]);
    to[last..].copy_from_slice(&from[last..]);
}
