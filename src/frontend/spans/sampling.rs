//! Which requests have a span.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::env::Rand;

/// The parts of one.
const ONE: u32 = 1_000_000;

/// A part of all requests, from 0 to 1, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Ratio(u32);

/// Not a ratio.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no ratio: write a number from 0 to 1, such as 0.05")]
pub struct RatioError(String);

/// A ratio in the configuration file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number from 0 to 1")]
enum Written {
    Number(f64),
    Text(String),
}

impl Ratio {
    /// All requests.
    pub const ALL: Self = Self(ONE);

    /// Whether one more request is among them.
    pub(super) fn takes_one(self, rand: &dyn Rand) -> bool {
        self.0 == ONE || self.0 > 0 && rand.below(u64::from(ONE)) < u64::from(self.0)
    }

    fn of(number: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&number) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to a million"
        )]
        let millionths = (number * f64::from(ONE)).round() as u32;
        // A ratio above 0 is meant to take some.
        Some(Self(if number > 0.0 { millionths.max(1) } else { 0 }))
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let read = text.parse().ok().and_then(Self::of);
        read.ok_or_else(|| RatioError(text.to_owned()))
    }
}

impl TryFrom<Written> for Ratio {
    type Error = RatioError;

    fn try_from(written: Written) -> Result<Self, RatioError> {
        match written {
            Written::Number(number) => {
                Self::of(number).ok_or_else(|| RatioError(number.to_string()))
            }
            Written::Text(text) => text.parse(),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / f64::from(ONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SeededRand;

    #[test]
    fn ratios_are_read_and_wrong_ones_refused() {
        for (text, shown) in [("0", "0"), ("1", "1"), ("0.05", "0.05"), ("1e-9", "0.000001")] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), shown, "{text}");
        }
        for text in ["", "-0.1", "1.1", "NaN", "inf", "5%", "0,5"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn so_many_requests_are_taken() {
        let rand = SeededRand::new(1);
        for (ratio, range) in [("0", 0..=0), ("0.1", 900..=1_100), ("1", 10_000..=10_000)] {
            let ratio: Ratio = ratio.parse().unwrap();
            let taken = (0..10_000).filter(|_| ratio.takes_one(&rand)).count();
            assert!(range.contains(&taken), "{ratio}: {taken}");
        }
    }
}
