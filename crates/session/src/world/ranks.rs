//! Which ranks of a job run here (`--ranks`).

use std::str::FromStr;

use trompe_base::Rank;

use crate::SessionError;

/// The user's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RankChoice {
    /// The first and the last rank; for a command that is one rank by itself, that one.
    #[default]
    Auto,
    /// All of them.
    All,
    /// These, ascending.
    List(Vec<u32>),
}

/// A `--ranks` value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name ranks; write `auto`, `all`, or numbers and ranges such as `0,5,8-11`")]
pub struct BadRankChoice(pub String);

impl FromStr for RankChoice {
    type Err = BadRankChoice;

    fn from_str(text: &str) -> Result<Self, BadRankChoice> {
        let bad = || BadRankChoice(text.to_owned());
        match text {
            "auto" => return Ok(Self::Auto),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let mut ranks = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to): (u32, u32) =
                (from.trim().parse().map_err(|_| bad())?, to.trim().parse().map_err(|_| bad())?);
            if from > to || to - from > 1 << 16 {
                return Err(bad());
            }
            ranks.extend(from..=to);
        }
        ranks.sort_unstable();
        ranks.dedup();
        Ok(Self::List(ranks))
    }
}

impl RankChoice {
    /// The chosen ranks of a job of `size`.
    ///
    /// # Errors
    /// When one does not exist.
    pub fn of(&self, size: u32) -> Result<Vec<Rank>, SessionError> {
        match self {
            Self::Auto if size > 1 => Ok(vec![Rank(0), Rank(size - 1)]),
            Self::Auto | Self::All => Ok((0..size).map(Rank).collect()),
            Self::List(ranks) => match ranks.iter().find(|rank| **rank >= size) {
                Some(rank) => Err(SessionError::NoSuchRank { rank: *rank, size }),
                None => Ok(ranks.iter().copied().map(Rank).collect()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, size: u32, expect: Option<&[u32]>) {
        let found = text.parse::<RankChoice>().ok().and_then(|choice| choice.of(size).ok());
        let found = found.map(|ranks| ranks.iter().map(|rank| rank.0).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn choices_are_read_as_written() {
        check("auto", 64, Some(&[0, 63]));
        check("auto", 1, Some(&[0]));
        check("all", 3, Some(&[0, 1, 2]));
        check("5, 0,5,2-4", 64, Some(&[0, 2, 3, 4, 5]));
        check("64", 64, None);
        for text in ["", "x", "1-", "3-1", "-1", "0,,1"] {
            check(text, 64, None);
        }
    }
}
