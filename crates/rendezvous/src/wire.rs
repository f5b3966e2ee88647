//! Requests as PyTorch's `TCPStore` client writes them: a number for the operation, then its arguments, all little
//! endian; byte strings with a 64-bit length in front. The server answers in the same way, without a header.

use std::io::{self, Read};

/// What a connection begins with (`torch/csrc/distributed/c10d/store/TCPStoreBackend.hpp`).
pub(crate) const MAGIC: u32 = 0x3C85_F7CE;

/// Answers to [`Request::Check`].
pub(crate) const READY: u8 = 0;
/// See [`READY`].
pub(crate) const NOT_READY: u8 = 1;
/// Answers to [`Request::Wait`] and [`Request::Barrier`].
pub(crate) const STOP_WAITING: u8 = 0;
/// See [`STOP_WAITING`].
pub(crate) const WAIT_CANCELED: u8 = 1;

/// PyTorch's own limits are 8 KiB for a key and 8 MiB for a value.
const LONGEST_KEY: u64 = 64 << 10;
const LONGEST_VALUE: u64 = 256 << 20;
const MOST_KEYS: u64 = 1 << 20;

/// A request, in the order of `QueryType`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The first message, with [`MAGIC`].
    Validate(u32),
    Set(Vec<u8>, Vec<u8>),
    CompareSet {
        key: Vec<u8>,
        expected: Vec<u8>,
        desired: Vec<u8>,
    },
    Get(Vec<u8>),
    Add(Vec<u8>, i64),
    Check(Vec<Vec<u8>>),
    Wait(Vec<Vec<u8>>),
    CountKeys,
    Delete(Vec<u8>),
    Append(Vec<u8>, Vec<u8>),
    MultiGet(Vec<Vec<u8>>),
    MultiSet(Vec<(Vec<u8>, Vec<u8>)>),
    CancelWait,
    Ping([u8; 4]),
    QueuePush(Vec<u8>, Vec<u8>),
    QueuePop(Vec<u8>),
    QueueLength(Vec<u8>),
    ListKeys,
    Barrier(Vec<u8>, i64),
}

impl Request {
    /// Reads the next request; `None` at the end of the stream.
    pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut number = [0];
        if input.read(&mut number)? == 0 {
            return Ok(None);
        }
        let request = match number[0] {
            0 => Self::Validate(u32::from_le_bytes(array(input)?)),
            1 => Self::Set(key(input)?, value(input)?),
            2 => Self::CompareSet { key: key(input)?, expected: value(input)?, desired: value(input)? },
            3 => Self::Get(key(input)?),
            4 => Self::Add(key(input)?, i64::from_le_bytes(array(input)?)),
            5 => Self::Check(keys(input)?),
            6 => Self::Wait(keys(input)?),
            7 => Self::CountKeys,
            8 => Self::Delete(key(input)?),
            9 => Self::Append(key(input)?, value(input)?),
            10 => Self::MultiGet(keys(input)?),
            11 => {
                let count = count(input)?;
                let pairs = (0..count).map(|_| Ok((key(input)?, value(input)?)));
                Self::MultiSet(pairs.collect::<io::Result<_>>()?)
            }
            12 => Self::CancelWait,
            13 => Self::Ping(array(input)?),
            14 => Self::QueuePush(key(input)?, value(input)?),
            15 => Self::QueuePop(key(input)?),
            16 => Self::QueueLength(key(input)?),
            17 => Self::ListKeys,
            18 => Self::Barrier(key(input)?, i64::from_le_bytes(array(input)?)),
            other => return Err(invalid(format!("operation {other} is not one of the store's"))),
        };
        Ok(Some(request))
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn bytes(input: &mut impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let length = u64::from_le_bytes(array(input)?);
    if length > longest {
        return Err(invalid(format!("a string of {length} bytes is longer than {longest}")));
    }
    let mut bytes = Vec::new();
    if input.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn key(input: &mut impl Read) -> io::Result<Vec<u8>> {
    bytes(input, LONGEST_KEY)
}

fn value(input: &mut impl Read) -> io::Result<Vec<u8>> {
    bytes(input, LONGEST_VALUE)
}

fn count(input: &mut impl Read) -> io::Result<u64> {
    let count = u64::from_le_bytes(array(input)?);
    if count > MOST_KEYS {
        Err(invalid(format!("{count} keys are more than {MOST_KEYS}")))
    } else {
        Ok(count)
    }
}

fn keys(input: &mut impl Read) -> io::Result<Vec<Vec<u8>>> {
    let count = count(input)?;
    (0..count).map(|_| key(input)).collect()
}

/// Adds a byte string with its length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, text.as_bytes());
        out
    }

    #[track_caller]
    fn check(parts: &[&[u8]], expect: Request) {
        let bytes = parts.concat();
        assert_eq!(Request::read(&mut bytes.as_slice()).unwrap(), Some(expect));
        // Every shorter message is an error, none is a panic.
        for end in 1..bytes.len() {
            assert!(Request::read(&mut &bytes[..end]).is_err(), "{end} bytes");
        }
    }

    /// Messages as a client of PyTorch 2.15 was seen to send them.
    #[test]
    fn messages_of_the_client_are_understood() {
        let (k, v) = (string("/k"), string("v"));
        let one = 1_u64.to_le_bytes();
        check(&[b"\x00\xce\xf7\x85\x3c"], Request::Validate(MAGIC));
        check(&[b"\x01", &k, &v], Request::Set(b"/k".to_vec(), b"v".to_vec()));
        check(&[b"\x03", &k], Request::Get(b"/k".to_vec()));
        check(&[b"\x04", &k, &3_i64.to_le_bytes()], Request::Add(b"/k".to_vec(), 3));
        check(&[b"\x05", &one, &k], Request::Check(vec![b"/k".to_vec()]));
        check(&[b"\x06", &one, &k], Request::Wait(vec![b"/k".to_vec()]));
        check(&[b"\x07"], Request::CountKeys);
        check(&[b"\x0b", &one, &k, &v], Request::MultiSet(vec![(b"/k".to_vec(), b"v".to_vec())]));
        check(&[b"\x0d\xd3\x61\x00\x00"], Request::Ping([0xd3, 0x61, 0, 0]));
        check(&[b"\x12", &k, &2_i64.to_le_bytes()], Request::Barrier(b"/k".to_vec(), 2));
    }

    #[test]
    fn nonsense_is_refused() {
        let check = |bytes: &[u8]| assert!(Request::read(&mut &*bytes).is_err());
        check(&[19]);
        check(&[b"\x03".as_slice(), &u64::MAX.to_le_bytes()].concat());
        check(&[b"\x06".as_slice(), &u64::MAX.to_le_bytes()].concat());
        assert_eq!(Request::read(&mut &b""[..]).unwrap(), None);
    }
}
