//! Who decides what nobody computes: which expert a token goes to.
//!
//! A mixture of experts routes by values that the emulated device does not compute. The Python hook makes choices up by a
//! policy; here it is read from the command line and handed on in `TROMPE_ROUTING`.

use std::fmt;
use std::str::FromStr;

/// How choices in unknown values are made up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    kind: Kind,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Balanced,
    Uniform,
    Zipf(f64),
    Dirichlet(f64),
}

/// A text that is no routing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no routing: write balanced, uniform, zipf:1.2 or dirichlet:0.5, with a seed after a further colon"
)]
pub struct BadRouting(String);

impl Routing {
    /// All choices drawn, equally likely.
    pub const UNIFORM: Self = Self { kind: Kind::Uniform, seed: 0 };

    /// Whether different seeds choose differently.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.kind != Kind::Balanced
    }

    /// The same policy with another seed: `number` seeds on.
    #[must_use]
    pub const fn sample(self, number: u64) -> Self {
        Self { seed: self.seed.wrapping_add(number), ..self }
    }
}

impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Balanced => f.write_str("balanced"),
            Kind::Uniform => write!(f, "uniform:{}", self.seed),
            Kind::Zipf(exponent) => write!(f, "zipf:{exponent}:{}", self.seed),
            Kind::Dirichlet(concentration) => write!(f, "dirichlet:{concentration}:{}", self.seed),
        }
    }
}

impl FromStr for Routing {
    type Err = BadRouting;

    fn from_str(text: &str) -> Result<Self, BadRouting> {
        let refused = || BadRouting(text.to_owned());
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut parameter = |default: f64| -> Result<f64, BadRouting> {
            let Some(part) = parts.next() else { return Ok(default) };
            part.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0).ok_or_else(refused)
        };
        let kind = match name {
            "balanced" => Kind::Balanced,
            "uniform" => Kind::Uniform,
            "zipf" => Kind::Zipf(parameter(1.0)?),
            "dirichlet" => Kind::Dirichlet(parameter(1.0)?),
            _ => return Err(refused()),
        };
        let seed = parts.next().map_or(Ok(0), |part| part.parse().map_err(|_| refused()))?;
        if parts.next().is_some() {
            return Err(refused());
        }
        Ok(Self { kind, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        let found = text.parse::<Routing>().ok().map(|routing| routing.to_string());
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn policies_are_read() {
        check("balanced", Some("balanced"));
        check("uniform", Some("uniform:0"));
        check("uniform:7", Some("uniform:7"));
        check("zipf", Some("zipf:1:0"));
        check("zipf:1.2:3", Some("zipf:1.2:3"));
        check("dirichlet:0.5", Some("dirichlet:0.5:0"));
        check("", None);
        check("zipf:-1", None);
        check("zipf:x", None);
        check("uniform:7:8", None);
        check("even", None);
    }

    #[test]
    fn samples_differ_in_their_seed() {
        let routing: Routing = "zipf:1.2:3".parse().unwrap();
        assert_eq!(routing.sample(2).to_string(), "zipf:1.2:5");
        assert!(routing.is_drawn() && !"balanced".parse::<Routing>().unwrap().is_drawn());
    }
}
