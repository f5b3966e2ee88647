//! Numbers as traces write them: integers as numbers or as text, times with up to three decimals.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// An integer, however it is written: `7`, `7.0`, `"7"`, `"stream 7"`; `None` for anything else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loose(pub(super) Option<i64>);

impl Loose {
    pub(super) fn unsigned(self) -> Option<u64> {
        self.0.and_then(|value| u64::try_from(value).ok())
    }

    pub(super) fn small(self) -> Option<u32> {
        self.0.and_then(|value| u32::try_from(value).ok())
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Integer;
        impl<'de> Visitor<'de> for Integer {
            type Value = Loose;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
                Ok(Loose(Some(value)))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
                Ok(Loose(i64::try_from(value).ok()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
                Ok(Loose((value.is_finite() && value.abs() < 9e18).then_some(value as i64)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
                Ok(Loose(text.rsplit(' ').next().and_then(|last| last.parse().ok())))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
                Ok(Loose(None))
            }
            fn visit_unit<E>(self) -> Result<Loose, E> {
                Ok(Loose(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
        }
        deserializer.deserialize_any(Integer)
    }
}

/// A decimal number, kept to three decimals: exact where a floating-point number would not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// The number of thousandths, where that can be told (not for nanoseconds since 1970).
    thousandths: Option<i64>,
    /// The number without its decimals.
    whole: i64,
}

/// Microseconds since 1970 in the year 5138: larger numbers are nanoseconds.
const NANOSECONDS: i64 = 100_000_000_000_000_000;

impl Decimal {
    /// `None` when the text is no number.
    pub(super) fn parse(raw: &RawValue) -> Option<Self> {
        Self::of(raw.get().trim_matches('"'))
    }

    /// Whether this time of day must count nanoseconds.
    pub(super) const fn counts_nanoseconds(self) -> bool {
        self.whole >= NANOSECONDS
    }

    /// Nanoseconds, when the number counts those or else microseconds.
    pub(super) const fn nanoseconds(self, counts_nanoseconds: bool) -> Option<i64> {
        if counts_nanoseconds { Some(self.whole) } else { self.thousandths }
    }

    fn of(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !plain(whole) || !plain(fraction) {
            // Exponents: exact enough as a floating-point number.
            let value: f64 = text.parse().ok()?;
            let thousandths = (value.abs() < 9e15).then(|| (value * 1e3).round() as i64);
            let fits = value.is_finite() && value.abs() < 9e18;
            return fits.then_some(Self { thousandths, whole: value as i64 });
        }
        let place = |index: usize| fraction.as_bytes().get(index).map_or(0, |byte| i64::from(byte - b'0'));
        let part = place(0) * 100 + place(1) * 10 + place(2) + i64::from(place(3) >= 5);
        let whole: i64 = whole.parse().ok()?;
        let thousandths = whole.checked_mul(1_000).and_then(|value| value.checked_add(part));
        Some(Self { thousandths: thousandths.map(|value| sign * value), whole: sign * whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths() {
        let check = |text: &str, value: Option<i64>| {
            let read = Decimal::of(text);
            assert_eq!(read.and_then(|time| time.nanoseconds(time.counts_nanoseconds())), value, "{text}");
        };
        check("1712195495519689047", Some(1_712_195_495_519_689_047));
        check("1712195495519689.047", Some(1_712_195_495_519_689_047));
        check("5", Some(5_000));
        check("0.0004", Some(0));
        check("0.0005", Some(1));
        check("-2.5", Some(-2_500));
        check("1.5e3", Some(1_500_000));
        check("1.5e+18", Some(1_500_000_000_000_000_000));
        check("1e300", None);
        check("nan", None);
        check("", None);
        check("x", None);
    }

    #[test]
    fn integers() {
        let check = |text: &str, value: Option<i64>| {
            assert_eq!(serde_json::from_str::<Loose>(text).unwrap().0, value, "{text}");
        };
        check("7", Some(7));
        check("7.0", Some(7));
        check("\"7\"", Some(7));
        check("\"stream 7\"", Some(7));
        check("\"Spans\"", None);
        check("-1", Some(-1));
        check("18446744073709551615", None);
        check("[1, [2]]", None);
        check("{\"a\": 1}", None);
        check("null", None);
    }
}
