//! Shards: parts of a sweep that can run on different machines.

use std::fmt;
use std::str::FromStr;

/// A part of a sweep: cell `index`, and every `of`-th cell after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The index of the part, from 0.
    index: u64,
    /// The number of parts.
    of: u64,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// How many of `cells` cells belong to this shard.
    pub fn count(self, cells: u64) -> u64 {
        cells.saturating_sub(self.index).div_ceil(self.of)
    }

    /// The number in the sweep of this shard's cell `n`, from 0.
    pub fn cell(self, n: u64) -> u64 {
        n * self.of + self.index
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
        match parts {
            Some((part, parts)) if (1..=parts).contains(&part) && parts <= 1_000_000 => {
                Ok(Self { index: part - 1, of: parts })
            }
            Some((_, 0)) => Err(ShardError::OfNone),
            Some((_, parts)) if parts > 1_000_000 => Err(ShardError::TooMany),
            Some((part, parts)) => Err(ShardError::NoPart { part, parts }),
            None => Err(ShardError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.index + 1, self.of))
    }
}

/// Why a text is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The number of parts is zero.
    #[error("the number of parts is 0: write PART/PARTS, such as 2/3")]
    OfNone,
    /// There are too many parts.
    #[error("a sweep can have at most 1000000 parts")]
    TooMany,
    /// The part's number is not between 1 and the number of parts.
    #[error("there is no part {part} of {parts}: parts are 1/{parts} to {parts}/{parts}")]
    NoPart {
        /// The part's number.
        part: u64,
        /// The number of parts.
        parts: u64,
    },
    /// The text has another format.
    #[error("'{0}' is not a part of a sweep: write PART/PARTS, such as 2/3")]
    Form(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_out_each_cell_once() {
        for (of, cells) in [(1, 5), (2, 5), (3, 5), (5, 5), (7, 5), (3, 0), (4, 12)] {
            let mut all: Vec<_> = (1..=of)
                .map(|part| format!("{part}/{of}").parse::<Shard>().unwrap())
                .flat_map(|shard| (0..shard.count(cells)).map(move |n| shard.cell(n)))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..cells).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_valid_shards_are_parsed() {
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for text in ["0/3", "4/3", "1/0", "0/0", "1", "/", "1/", "a/b", "-1/3", "1/2/3", "1/1000001", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
