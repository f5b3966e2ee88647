//! A value of a knob, of a derived name, or of what an expression says.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value. Numbers without a fraction are always [`Value::Integer`], whatever made them, so that `8 / 2` prints as `4`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// The value as a number; booleans count as 0 and 1, text as nothing.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Boolean(value) => Some(*value as u8 as f64),
            Self::Integer(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(_) => None,
        }
    }

    /// The value as a whole number.
    #[must_use]
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// A number, whole where it has no fraction.
    #[must_use]
    pub fn of_number(number: f64) -> Self {
        const EXACT: f64 = (1_i64 << 53) as f64;
        if number.fract() == 0.0 && number.abs() < EXACT {
            Self::Integer(number as i64)
        } else {
            Self::Real(number)
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// The values of all names at one point of the space.
pub type Values = std::collections::BTreeMap<String, Value>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_integers() {
        let check = |number, expect: &str| assert_eq!(Value::of_number(number).to_string(), expect);
        check(4.0, "4");
        check(0.5, "0.5");
        check(-3.0, "-3");
        check(1e300, "1e300".parse::<f64>().unwrap().to_string().as_str());
    }
}
