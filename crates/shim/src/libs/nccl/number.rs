//! Numbers of the types that collectives add, as double-precision values.

use half::{bf16, f16};
use trompe_base::DType;

/// The number that the bytes of one element are; `None` for types that are not computed with.
pub(super) fn read(dtype: DType, bytes: &[u8]) -> Option<f64> {
    macro_rules! number {
        ($ty:ty) => {
            <$ty>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::I8 => f64::from(number!(i8)),
        DType::U8 => f64::from(number!(u8)),
        DType::I32 => f64::from(number!(i32)),
        DType::I64 => number!(i64) as f64,
        DType::F16 => number!(f16).to_f64(),
        DType::Bf16 => number!(bf16).to_f64(),
        DType::F32 => f64::from(number!(f32)),
        DType::F64 => number!(f64),
        DType::F8E4M3 => from_small(*bytes.first()?, 3),
        DType::F8E5M2 => from_small(*bytes.first()?, 2),
        _ => return None,
    })
}

/// The bytes of one element; nothing for types that are not computed with. Integers wrap around.
pub(super) fn write(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::I8 | DType::U8 => vec![value as i64 as u8],
        DType::I32 => (value as i64 as i32).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::F8E4M3 => vec![to_small(value, 3)],
        DType::F8E5M2 => vec![to_small(value, 2)],
        _ => Vec::new(),
    }
}

/// The numbers of a buffer; none for types that are not computed with.
pub(super) fn all(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = f64> {
    let size = (dtype.size() as usize).max(1);
    bytes.chunks_exact(size).filter_map(move |element| read(dtype, element))
}

/// Multiplies the numbers of a buffer. 64-bit integers times a whole number stay exact.
pub(super) fn scale(dtype: DType, bytes: &mut [u8], factor: f64) {
    let size = (dtype.size() as usize).max(1);
    for element in bytes.chunks_exact_mut(size) {
        if let (DType::I64, true, Ok(word)) = (dtype, factor.fract() == 0.0, <[u8; 8]>::try_from(&*element)) {
            element.copy_from_slice(&i64::from_le_bytes(word).wrapping_mul(factor as i64).to_le_bytes());
        } else if let Some(value) = read(dtype, element) {
            element.copy_from_slice(&write(dtype, value * factor));
        }
    }
}

/// An eight-bit float with so many bits of mantissa (Micikevicius et al. 2022, "FP8 Formats for Deep Learning"): four
/// bits of exponent without infinities, or five with them.
fn from_small(bits: u8, mantissa_bits: i32) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent_bits = 7 - mantissa_bits;
    let exponent = i32::from(bits & 0x7f) >> mantissa_bits;
    let mantissa = i32::from(bits & 0x7f) & ((1 << mantissa_bits) - 1);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    let top = (1 << exponent_bits) - 1;
    if mantissa_bits == 3 && bits & 0x7f == 0x7f || mantissa_bits == 2 && exponent == top && mantissa != 0 {
        return f64::NAN;
    }
    if mantissa_bits == 2 && exponent == top {
        return sign * f64::INFINITY;
    }
    if exponent == 0 {
        return sign * fraction * f64::from(1 - bias).exp2();
    }
    sign * (1.0 + fraction) * f64::from(exponent - bias).exp2()
}

/// The nearest eight-bit float; ties go to the even one, too large values to the largest.
fn to_small(value: f64, mantissa_bits: i32) -> u8 {
    let largest = if mantissa_bits == 3 { 0x7e } else { 0x7b };
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return sign | 0x7f;
    }
    let size = value.abs();
    // Magnitudes grow with their bits, so the neighbours are found by halving.
    let (mut low, mut high) = (0_u8, largest);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if from_small(middle, mantissa_bits) <= size { low = middle } else { high = middle }
    }
    let (below, above) = (size - from_small(low, mantissa_bits), from_small(high, mantissa_bits) - size);
    let nearest = if above < below || (above - below).abs() < f64::EPSILON * size && high % 2 == 0 {
        high
    } else {
        low
    };
    sign | nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dtype: DType, value: f64, expect: f64) {
        assert_eq!(read(dtype, &write(dtype, value)), Some(expect), "{dtype:?}");
    }

    #[test]
    fn numbers_survive_where_they_exist() {
        for value in [0.0, 1.0, -2.5, 96.0] {
            for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::F8E4M3] {
                check(dtype, value, value);
            }
        }
        check(DType::I64, -7.0, -7.0);
        check(DType::F8E4M3, 448.0, 448.0);
        check(DType::F8E4M3, 1e9, 448.0);
        check(DType::F8E5M2, 57344.0, 57344.0);
        check(DType::F8E5M2, 1.1, 1.0);
        check(DType::F8E4M3, 1.07, 1.125);
        check(DType::F8E4M3, 0.001_953_125, 0.001_953_125);
    }

    #[test]
    fn every_small_float_is_its_own_nearest() {
        for (dtype, mantissa_bits) in [(DType::F8E4M3, 3), (DType::F8E5M2, 2)] {
            for bits in 0..=255_u8 {
                let value = from_small(bits, mantissa_bits);
                if value.is_finite() {
                    assert_eq!(write(dtype, value), [bits], "{value}");
                }
            }
        }
    }

    #[test]
    fn scaling_keeps_large_integers() {
        let mut bytes = i64::MAX.wrapping_sub(1).to_le_bytes();
        scale(DType::I64, &mut bytes, 1.0);
        assert_eq!(i64::from_le_bytes(bytes), i64::MAX - 1);
    }
}
