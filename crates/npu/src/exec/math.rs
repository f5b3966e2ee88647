//! Functions of `f32` that are the same on every machine.
//!
//! They use no fused multiply-add and no function of the C library, so that a run gives the same bytes wherever it
//! runs; [`exp`] is written so that the compiler can work on many lanes at once.

/// `e^x` of each value, within 2 units in the last place.
///
/// Cody and Waite's reduction (Software Manual for the Elementary Functions, 1980) by multiples of ln 2, then the
/// Taylor polynomial to the seventh power.
pub(crate) fn exp(values: &mut [f32]) {
    pulp::Arch::new().dispatch(|| {
        for value in values.iter_mut() {
            *value = exp_one(*value);
        }
    });
}

#[inline(always)]
fn exp_one(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const SHIFT: f32 = 12_582_912.0; // 1.5 x 2^23: adding it rounds to an integer
    let clamped = x.clamp(-110.0, 90.0);
    let turns = (clamped * std::f32::consts::LOG2_E + SHIFT) - SHIFT;
    let rest = (clamped - turns * LN2_HIGH) - turns * LN2_LOW;
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * rest + coefficient;
    }
    // 2^turns in two steps, so that results near the ends of the range come out right.
    let turns = turns as i32;
    let half = turns >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
    let result = sum * power(half) * power(turns - half);
    let result = if x > 88.8 { f32::INFINITY } else { result };
    let result = if x < -104.0 { 0.0 } else { result };
    if x.is_nan() { x } else { result }
}

/// `ceil(|x|)` with the sign of `x`: what the reference calls rounding.
pub(crate) fn reference_round(x: f32) -> f32 {
    x.abs().ceil().copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units() {
        let mut worst = 0;
        let mut x = -103.0f32;
        while x < 88.7 {
            let mut value = [x];
            exp(&mut value);
            let exact = f64::from(x).exp() as f32;
            worst = worst.max(value[0].to_bits().abs_diff(exact.to_bits()));
            x += 0.000_731 * (1.0 + x.abs());
        }
        assert!(worst <= 2, "{worst} units");
        let mut ends = [f32::NEG_INFINITY, f32::INFINITY, 0.0, -0.0, f32::NAN, 1000.0, -1000.0];
        exp(&mut ends);
        assert_eq!(&ends[..4], &[0.0, f32::INFINITY, 1.0, 1.0]);
        assert!(ends[4].is_nan());
        assert_eq!(&ends[5..], &[f32::INFINITY, 0.0]);
    }
}
