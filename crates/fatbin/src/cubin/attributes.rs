//! The attribute lists of `.nv.info` sections.
//!
//! An attribute is `format: u8, number: u8`, then by format: nothing (1), one byte and one of padding (2), a u16 (3),
//! or a u16 length and as many bytes (4). All little endian.

/// One attribute, as far as this crate cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `KPARAM_INFO` or its second version.
    Parameter { ordinal: u16, offset: u16, size: u32 },
    /// `MAX_THREADS` or `REQNTID`: the product of the three extents.
    ThreadLimit(u32),
    /// An attribute of the global section about one symbol.
    OfSymbol { symbol: u32, fact: SymbolFact },
    /// Anything else.
    Other,
}

/// What the global attribute section says about a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymbolFact {
    /// `REGCOUNT`.
    Registers(u32),
    /// `FRAME_SIZE`, bytes.
    FrameSize(u32),
}

const MAX_THREADS: u8 = 0x05;
const REQNTID: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const KPARAM_INFO: u8 = 0x17;
const REGCOUNT: u8 = 0x2f;
const KPARAM_INFO_V2: u8 = 0x45;

/// The attributes of one section; ends quietly where the bytes stop making sense.
pub(super) fn iterate(mut data: &[u8]) -> impl Iterator<Item = Attribute> {
    std::iter::from_fn(move || {
        let (&[format, number, low, high], rest) = data.split_first_chunk::<4>()?;
        let value = match format {
            1..=3 => &[],
            4 => rest.get(..usize::from(u16::from_le_bytes([low, high])))?,
            _ => return None,
        };
        data = &rest[value.len()..];
        Some(decode(number, value).unwrap_or(Attribute::Other))
    })
}

fn decode(number: u8, value: &[u8]) -> Option<Attribute> {
    Some(match number {
        KPARAM_INFO => {
            // Size in bytes is in the upper 14 bits, above alignment, address space and constant bank.
            Attribute::Parameter {
                ordinal: half(value, 4)?,
                offset: half(value, 6)?,
                size: word(value, 8)? >> 18,
            }
        }
        KPARAM_INFO_V2 => {
            Attribute::Parameter { ordinal: half(value, 4)?, offset: half(value, 6)?, size: word(value, 8)? }
        }
        MAX_THREADS | REQNTID => {
            let extents = [word(value, 0)?, word(value, 4)?, word(value, 8)?];
            Attribute::ThreadLimit(extents.into_iter().fold(1, u32::saturating_mul))
        }
        REGCOUNT => {
            Attribute::OfSymbol { symbol: word(value, 0)?, fact: SymbolFact::Registers(word(value, 4)?) }
        }
        FRAME_SIZE => {
            Attribute::OfSymbol { symbol: word(value, 0)?, fact: SymbolFact::FrameSize(word(value, 4)?) }
        }
        _ => return None,
    })
}

fn half(value: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(value.get(at..at + 2)?.try_into().ok()?))
}

fn word(value: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(value.get(at..at + 4)?.try_into().ok()?))
}
