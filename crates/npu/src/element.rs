//! Element types of tensors, and their exchange with `f32` and `i64`.
//!
//! Half, bfloat16 and the two 8-bit floats are computed in `f32` and rounded half to even when stored; e4m3 saturates
//! at 448 (it has no infinity), e5m2 overflows to infinity (OCP 8-bit floating point specification, revision 1.0).

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ElementType {
    F16,
    Bf16,
    F32,
    F8e4m3,
    F8e5m2,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    Bool,
}

impl ElementType {
    /// Every type, in the order of declaration.
    pub const ALL: [Self; 14] = [
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F8e4m3,
        Self::F8e5m2,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Bool,
    ];

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::F8e4m3 | Self::F8e5m2 => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// Elements of a 32-byte block: the width of a column block of the fractal layouts (c0).
    #[must_use]
    pub const fn block(self) -> usize {
        32 / self.size()
    }

    /// Whether values are floating-point numbers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F8e4m3 | Self::F8e5m2)
    }

    /// The name in programs, for example `bf16`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F8e4m3 => "f8e4m3",
            Self::F8e5m2 => "f8e5m2",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Bool => "bool",
        }
    }

    /// The type called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Decodes `bytes`, little endian, into `out`; integers become the nearest `f32`.
pub(crate) fn load_f32(kind: ElementType, bytes: &[u8], out: &mut [f32]) {
    let size = kind.size();
    debug_assert!(bytes.len() >= out.len() * size);
    match kind {
        ElementType::F32 => {
            for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*raw);
            }
        }
        ElementType::F16 => load_half(bytes, out, f16::from_bits, |from, to| from.convert_to_f32_slice(to)),
        ElementType::Bf16 => {
            for (value, raw) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *value = f32::from_bits(u32::from(u16::from_le_bytes(*raw)) << 16);
            }
        }
        ElementType::F8e4m3 => out.iter_mut().zip(bytes).for_each(|(value, &raw)| *value = from_e4m3(raw)),
        ElementType::F8e5m2 => {
            let widen = |raw: u8| f16::from_bits(u16::from(raw) << 8).to_f32();
            out.iter_mut().zip(bytes).for_each(|(value, &raw)| *value = widen(raw));
        }
        _ => {
            for (value, raw) in out.iter_mut().zip(bytes.chunks_exact(size)) {
                *value = read_int(kind, raw) as f32;
            }
        }
    }
}

fn load_half(bytes: &[u8], out: &mut [f32], of: fn(u16) -> f16, convert: fn(&[f16], &mut [f32])) {
    let mut block = [f16::ZERO; 64];
    for (values, raw) in out.chunks_mut(64).zip(bytes.chunks(128)) {
        for (half, pair) in block.iter_mut().zip(raw.as_chunks::<2>().0) {
            *half = of(u16::from_le_bytes(*pair));
        }
        convert(&block[..values.len()], values);
    }
}

/// Encodes `values` into `bytes`, rounding half to even; integer types truncate towards zero and saturate.
pub(crate) fn store_f32(kind: ElementType, values: &[f32], bytes: &mut [u8]) {
    match kind {
        ElementType::F32 => {
            for (value, raw) in values.iter().zip(bytes.as_chunks_mut::<4>().0) {
                *raw = value.to_le_bytes();
            }
        }
        ElementType::F16 => {
            let mut block = [f16::ZERO; 64];
            for (part, raw) in values.chunks(64).zip(bytes.chunks_mut(128)) {
                block[..part.len()].convert_from_f32_slice(part);
                for (half, pair) in block[..part.len()].iter().zip(raw.as_chunks_mut::<2>().0) {
                    *pair = half.to_bits().to_le_bytes();
                }
            }
        }
        ElementType::Bf16 => {
            for (value, raw) in values.iter().zip(bytes.as_chunks_mut::<2>().0) {
                *raw = bf16::from_f32(*value).to_bits().to_le_bytes();
            }
        }
        ElementType::F8e4m3 => values.iter().zip(bytes).for_each(|(value, raw)| *raw = to_e4m3(*value)),
        ElementType::F8e5m2 => values.iter().zip(bytes).for_each(|(value, raw)| *raw = to_e5m2(*value)),
        _ => {
            for (value, raw) in values.iter().zip(bytes.chunks_exact_mut(kind.size())) {
                write_int(kind, saturate(kind, *value), raw);
            }
        }
    }
}

/// The integer nearest to zero's side of `value` that `kind` can hold.
fn saturate(kind: ElementType, value: f32) -> i64 {
    match kind {
        ElementType::I8 => i64::from(value as i8),
        ElementType::U8 => i64::from(value as u8),
        ElementType::Bool => i64::from(value != 0.0),
        ElementType::I16 => i64::from(value as i16),
        ElementType::U16 => i64::from(value as u16),
        ElementType::I32 => i64::from(value as i32),
        ElementType::U32 => i64::from(value as u32),
        ElementType::U64 => value as u64 as i64,
        _ => value as i64,
    }
}

/// Reads one integer, or the bits of a float, sign-extended where the type has a sign.
pub(crate) fn read_int(kind: ElementType, raw: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..kind.size()].copy_from_slice(&raw[..kind.size()]);
    let bits = i64::from_le_bytes(wide);
    match kind {
        ElementType::I8 => i64::from(bits as i8),
        ElementType::I16 => i64::from(bits as i16),
        ElementType::I32 => i64::from(bits as i32),
        _ => bits,
    }
}

/// Writes the low bytes of `value`: integers wrap.
pub(crate) fn write_int(kind: ElementType, value: i64, raw: &mut [u8]) {
    raw[..kind.size()].copy_from_slice(&value.to_le_bytes()[..kind.size()]);
}

/// One element as a double, whatever its type.
pub(crate) fn read_number(kind: ElementType, raw: &[u8]) -> f64 {
    if kind.is_float() {
        let mut out = [0.0];
        load_f32(kind, raw, &mut out);
        f64::from(out[0])
    } else if kind == ElementType::U64 {
        read_int(kind, raw) as u64 as f64
    } else {
        read_int(kind, raw) as f64
    }
}

/// Stores a number as one element.
pub(crate) fn write_number(kind: ElementType, value: f64, raw: &mut [u8]) {
    if kind.is_float() {
        store_f32(kind, &[value as f32], raw);
    } else {
        write_int(kind, value as i64, raw);
    }
}

fn from_e4m3(raw: u8) -> f32 {
    let sign = if raw & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(raw >> 3 & 15), f32::from(raw & 7));
    match (exponent, raw & 7) {
        (15, 7) => f32::NAN,
        (0, _) => sign * mantissa / 512.0,
        _ => sign * (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    }
}

fn to_e4m3(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return sign | 0x7f;
    }
    let size = value.abs().min(448.0);
    let exponent = ((size.to_bits() >> 23) as i32 - 127).max(-6);
    // In units of the last place of this binade; halves go to even. Exact: powers of two only.
    let units = (size * 2f32.powi(3 - exponent)).round_ties_even() as u32;
    let code = ((exponent + 6) as u32) * 8 + units;
    sign | code.min(0x7e) as u8
}

fn to_e5m2(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return sign | 0x7f;
    }
    if value.is_infinite() {
        return sign | 0x7c;
    }
    let size = value.abs();
    let exponent = ((size.to_bits() >> 23) as i32 - 127).max(-14);
    if exponent > 15 {
        return sign | 0x7c;
    }
    let units = (size * 2f32.powi(2 - exponent)).round_ties_even() as u32;
    let code = ((exponent + 14) as u32) * 4 + units;
    sign | code.min(0x7c) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of the 8-bit floats survives the way through `f32`.
    #[test]
    fn eight_bit_floats_come_back() {
        for kind in [ElementType::F8e4m3, ElementType::F8e5m2] {
            for raw in 0..=255u8 {
                let mut wide = [0.0];
                load_f32(kind, &[raw], &mut wide);
                let mut back = [0];
                store_f32(kind, &wide, &mut back);
                if !wide[0].is_nan() {
                    assert_eq!(back[0], raw, "{kind:?} {}", wide[0]);
                }
            }
        }
    }

    #[test]
    fn eight_bit_floats_round_and_overflow() {
        let check = |kind, value: f32, expect: f32| {
            let (mut raw, mut out) = ([0], [0.0]);
            store_f32(kind, &[value], &mut raw);
            load_f32(kind, &raw, &mut out);
            assert_eq!(out[0].to_bits(), expect.to_bits(), "{kind:?} {value} gave {}", out[0]);
        };
        check(ElementType::F8e4m3, 1.0625, 1.0); // halfway between 1 and 1.125: to even
        check(ElementType::F8e4m3, 1.1875, 1.25);
        check(ElementType::F8e4m3, 1e9, 448.0);
        check(ElementType::F8e4m3, -0.001, -0.001_953_125);
        check(ElementType::F8e4m3, 0.000_9, 0.0);
        check(ElementType::F8e5m2, 1.125, 1.0);
        check(ElementType::F8e5m2, 61440.0, f32::INFINITY);
        check(ElementType::F8e5m2, 57344.0, 57344.0);
    }

    #[test]
    fn integers_saturate_from_floats_and_wrap_from_integers() {
        let mut raw = [0; 4];
        store_f32(ElementType::I8, &[300.7], &mut raw);
        assert_eq!(read_int(ElementType::I8, &raw), 127);
        write_int(ElementType::I8, 130, &mut raw);
        assert_eq!(read_int(ElementType::I8, &raw), -126);
    }
}
