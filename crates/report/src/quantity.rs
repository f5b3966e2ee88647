//! Numbers as people read them: a few significant digits and the unit that fits.
//!
//! The page's script formats the same way (`page/format.js`); change both together.

/// Between a number and its unit: a space where no line is broken.
pub(crate) const NO_BREAK: &str = "\u{a0}";

/// `value` with `digits` significant digits, never in exponent form.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(digits as i32 - 1 - magnitude).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Seconds in the largest unit that fits.
pub(crate) fn seconds(value: f64, digits: usize) -> String {
    let (scaled, unit) = match value.abs() {
        0.0 => return format!("0{NO_BREAK}s"),
        s if s >= 1.0 => (value, "s"),
        s if s >= 1e-3 => (value * 1e3, "ms"),
        s if s >= 1e-6 => (value * 1e6, "µs"),
        _ => (value * 1e9, "ns"),
    };
    format!("{}{NO_BREAK}{unit}", significant(scaled, digits))
}

/// Bytes in binary units, as PyTorch and `nvidia-smi` report memory.
pub(crate) fn bytes(value: u64) -> String {
    scaled(value as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// A number with a decimal prefix before its unit ("989 TFLOP/s").
pub(crate) fn metric(value: f64, unit: &str) -> String {
    let text = scaled(value, 1000.0, &["", "k", "M", "G", "T", "P", "E"]);
    format!("{text}{unit}")
}

/// A rate of things that are counted ("89.8k tokens/s").
pub(crate) fn rate(value: f64, unit: &str) -> String {
    let text = scaled(value, 1000.0, &["", "k", "M", "G"]).replace(NO_BREAK, "");
    format!("{text}{NO_BREAK}{unit}")
}

/// A share between 0 and 1 as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}{NO_BREAK}%", share * 100.0)
}

/// A count with thin groups of three digits.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= base && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    if unit == 0 && value.fract() == 0.0 {
        return format!("{value}{NO_BREAK}{}", units[0]);
    }
    // Three digits, but no "1.02e3" just below the next unit of binary prefixes.
    let text = if value.abs() >= 1000.0 { format!("{value:.0}") } else { significant(value, 3) };
    format!("{text}{NO_BREAK}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let check =
            |value, digits, expect: &str| assert_eq!(seconds(value, digits).replace(NO_BREAK, " "), expect);
        check(0.0, 3, "0 s");
        check(0.18241, 4, "182.4 ms");
        check(0.18241, 3, "182 ms");
        check(12.3456, 3, "12.3 s");
        check(4.2e-6, 3, "4.20 µs");
        check(999e-9, 2, "999 ns");
        check(f64::NAN, 3, "? ns");
    }

    #[test]
    fn sizes() {
        let check = |value, expect: &str| assert_eq!(bytes(value).replace(NO_BREAK, " "), expect);
        check(0, "0 B");
        check(512, "512 B");
        check(1023 << 20, "1023 MiB");
        check(80 << 30, "80.0 GiB");
        check(1 << 40, "1.00 TiB");
    }

    #[test]
    fn others() {
        assert_eq!(metric(989.4e12, "FLOP/s"), "989\u{a0}TFLOP/s");
        assert_eq!(rate(89_820.0, "tokens/s"), "89.8k\u{a0}tokens/s");
        assert_eq!(rate(87.71, "samples/s"), "87.7\u{a0}samples/s");
        assert_eq!(percent(0.3142), "31.4\u{a0}%");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
    }
}
