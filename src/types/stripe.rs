//! Stripes: the blobs of a range are distributed by hash, so that names that arrive in order do not
//! all go to one partition.

use serde::{Deserialize, Serialize};

use crate::types::Crc64;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// One of 2 to 16 equal parts of a range: the blobs whose routing keys hash to it.
///
/// The hash must never change, because rows on disk depend on it. It is the CRC-64/NVME of the
/// routing key, times 2^64 / phi; the upper half of that times the number of stripes, divided by
/// 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stripe {
    number: u8,
    of: u8,
}

impl Stripe {
    /// The most stripes of a range. LIST reads from all of them.
    pub const COUNT_MAX: u8 = 16;

    /// Stripe `number`, from 0, of `of` stripes; `None` if there is no such stripe.
    #[must_use]
    pub const fn new(number: u8, of: u8) -> Option<Self> {
        if of >= 2 && of <= Self::COUNT_MAX && number < of {
            Some(Self { number, of })
        } else {
            None
        }
    }

    /// All stripes of a range that has `of` stripes. Empty if a range cannot have this many.
    pub fn all(of: u8) -> impl Iterator<Item = Self> {
        (0..of).filter_map(move |number| Self::new(number, of))
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.number
    }

    /// How many stripes the range has.
    #[must_use]
    pub const fn of(self) -> u8 {
        self.of
    }

    /// The number of the stripe, of `of` stripes, to which a row belongs. All rows of a blob belong
    /// to the same. A key that does not start with a routing key belongs to the first.
    #[must_use]
    pub fn number_of_row(row: &[u8], of: u8) -> u8 {
        let Some(key) = RoutingKey::prefix_of_row(row) else { return 0 };
        let spread = u64::from_le_bytes(Crc64::of(key).to_le_bytes())
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            >> 32;
        u8::try_from((spread * u64::from(of)) >> 32).unwrap_or(0)
    }

    /// Whether a row belongs to it.
    #[must_use]
    pub fn holds_row(self, row: &[u8]) -> bool {
        Self::number_of_row(row, self.of) == self.number
    }
}

/// The keys of a partition: a range, or one stripe of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeys {
    range: KeyRange,
    stripe: Option<Stripe>,
}

impl From<KeyRange> for PartitionKeys {
    fn from(range: KeyRange) -> Self {
        Self { range, stripe: None }
    }
}

impl PartitionKeys {
    /// A stripe of a range.
    #[must_use]
    pub const fn striped(range: KeyRange, stripe: Stripe) -> Self {
        Self { range, stripe: Some(stripe) }
    }

    /// The range the keys lie in.
    #[must_use]
    pub const fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Which stripe of the range; `None` if it is the whole range.
    #[must_use]
    pub const fn stripe(&self) -> Option<Stripe> {
        self.stripe
    }

    /// Whether a row, or a routing key, is one of them.
    #[must_use]
    pub fn contains(&self, row: &[u8]) -> bool {
        self.range.contains(row) && self.stripe.is_none_or(|stripe| stripe.holds_row(row))
    }

    /// Whether a key can be one of both. Stripes of one range have no key in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let are_two_stripes = match (self.stripe, other.stripe) {
            (Some(one), Some(two)) => one.of == two.of && one.number != two.number,
            (None, _) | (_, None) => false,
        };
        self.range.intersect(&other.range).is_some()
            && !(are_two_stripes && self.range == other.range)
    }

    /// The union of these, if they are neighbours in key order without gaps, or all stripes of one
    /// range.
    #[must_use]
    pub fn joined<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut parts: Vec<&Self> = parts.into_iter().collect();
        let (first, last) = (*parts.first()?, *parts.last()?);
        if let Some(stripe) = first.stripe {
            parts.sort_by_key(|part| part.stripe);
            let all = parts.iter().map(|part| part.stripe).eq(Stripe::all(stripe.of).map(Some));
            let same = parts.iter().all(|part| part.range == first.range);
            return (all && same).then(|| first.range.clone().into());
        }
        let touch = parts.windows(2).all(|pair| match pair {
            [a, b] => b.stripe.is_none() && a.range.high() == Some(b.range.low()),
            _ => false,
        });
        let range = || KeyRange::new(first.range.low().clone(), last.range.high().cloned());
        (touch && parts.len() > 1).then(|| range().into())
    }
}

#[cfg(test)]
mod tests;
