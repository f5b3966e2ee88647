//! Reading a file of messages.

use std::io::Read;

use prost::Message;

use super::wire::{GlobalMetadata, Node};

/// Why a file is no Chakra trace.
#[derive(Debug, thiserror::Error)]
pub enum ChakraError {
    /// The file itself.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It ends inside a message.
    #[error("ends inside message {message} (byte {at}): the file is cut short; write it again")]
    Truncated {
        /// Which message, from 0 (the head).
        message: usize,
        /// Where it begins.
        at: usize,
    },
    /// A message that is none.
    #[error(
        "message {message} (byte {at}) is no Chakra node: {detail}; is this a protobuf trace (`.et`) of schema 0.0.4?"
    )]
    Malformed {
        /// Which message, from 0 (the head).
        message: usize,
        /// Where it begins.
        at: usize,
        /// What the decoder says.
        detail: String,
    },
    /// No message at all.
    #[error("is empty")]
    Empty,
}

/// Reads a whole trace.
///
/// # Errors
/// When the stream is no such trace.
pub fn read<R: Read>(mut reader: R) -> Result<(GlobalMetadata, Vec<Node>), ChakraError> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    let mut left: &[u8] = &bytes;
    let mut nodes = Vec::new();
    let mut head = None;
    while !left.is_empty() {
        let (message, at) = (nodes.len() + usize::from(head.is_some()), bytes.len() - left.len());
        let malformed =
            |error: prost::DecodeError| ChakraError::Malformed { message, at, detail: error.to_string() };
        let truncated = ChakraError::Truncated { message, at };
        let length = match prost::decode_length_delimiter(left) {
            Ok(length) => length,
            Err(_) if left.len() < 10 => return Err(truncated),
            Err(error) => return Err(malformed(error)),
        };
        let start = prost::length_delimiter_len(length);
        let Some(end) = start.checked_add(length).filter(|end| *end <= left.len()) else {
            return Err(truncated);
        };
        if head.is_none() {
            head = Some(GlobalMetadata::decode(&left[start..end]).map_err(malformed)?);
        } else {
            nodes.push(Node::decode(&left[start..end]).map_err(malformed)?);
        }
        left = &left[end..];
    }
    Ok((head.ok_or(ChakraError::Empty)?, nodes))
}
