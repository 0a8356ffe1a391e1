//! Keys of the index: the order-preserving routing key and ranges of it.
//!
//! Byte layout: `api-spec/keys.md`.

#![deny(clippy::indexing_slicing)]

mod tag;

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::{AccountId, AccountName, BlobName, ContainerId, ContainerName};

pub use tag::{TAG_INDEX, TagEntryKey};

/// In which order a container lists its names; fixed when the container is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Collation {
    /// By UTF-16 code units, as Azure lists; containers made through Blob REST.
    Utf16,
    /// By UTF-8 bytes, as S3 lists; buckets made through S3.
    Utf8,
}

/// What requests are routed by: account id, container id, escaped name. Partitions split only
/// between routing keys, so everything about one blob is in one partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RoutingKey(Bytes);

impl RoutingKey {
    /// The lowest key.
    #[must_use]
    pub const fn min() -> Self {
        Self(Bytes::new())
    }

    /// Wraps bytes read from a descriptor or a row.
    #[must_use]
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The row of an account: account 0, container 0, the account's name.
    #[must_use]
    pub fn account(name: &AccountName) -> Self {
        Self::build(0, 0, name.as_str(), Collation::Utf8)
    }

    /// The row of a container: the account, container 0, the container's name.
    #[must_use]
    pub fn container(account: AccountId, name: &ContainerName) -> Self {
        Self::build(account.get(), 0, name.as_str(), Collation::Utf8)
    }

    /// The rows of a blob.
    #[must_use]
    pub fn blob(key: &BlobKey) -> Self {
        Self::build(key.account.get(), key.container.get(), key.name.as_str(), key.collation)
    }

    /// All routing keys of one container (or, with container 0, of an account's table of
    /// containers).
    #[must_use]
    pub fn container_range(account: AccountId, container: ContainerId) -> KeyRange {
        let low = Self::prefix(account, container, "", Collation::Utf8);
        let high = after_prefix(&low);
        KeyRange::new(Self(low), high.map(Self))
    }

    /// The unterminated key of all names that start with `prefix`: sorts at or before each of them.
    #[must_use]
    pub fn prefix(
        account: AccountId,
        container: ContainerId,
        prefix: &str,
        collation: Collation,
    ) -> Bytes {
        let mut key = Vec::with_capacity(16 + prefix.len());
        key.extend_from_slice(&account.get().to_be_bytes());
        key.extend_from_slice(&container.get().to_be_bytes());
        escape(prefix, collation, &mut key);
        key.into()
    }

    /// From here to the end of the container; `None` where no blobs of one are.
    #[must_use]
    pub fn rest_of_container(&self) -> Option<KeyRange> {
        let container = self.0.get(..16)?;
        // Neither accounts, nor containers, nor the index of tags.
        let special = [[0; 8], TAG_INDEX.get().to_be_bytes()];
        let is_blobs = container.get(..8) != Some(&[0; 8])
            && special.iter().all(|id| container.get(8..) != Some(id));
        let end = after_prefix(container).filter(|_| is_blobs)?;
        Some(KeyRange::new(self.clone(), Some(Self(end))))
    }

    /// The least position above everything that starts with `prefix` (a routing key, or what
    /// [`Self::prefix`] made); `None` when there is none.
    #[must_use]
    pub fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
        after_prefix(prefix)
    }

    /// The routing key a row's key starts with; `None` when it starts with none.
    #[must_use]
    pub fn of_row(row: &Bytes) -> Option<Self> {
        Self::prefix_of_row(row).map(|key| Self(row.slice_ref(key)))
    }

    /// As [`Self::of_row`], without a copy of anything.
    #[must_use]
    pub fn prefix_of_row(row: &[u8]) -> Option<&[u8]> {
        let mut rest = row.get(16..)?;
        loop {
            let nul = rest.iter().position(|&byte| byte == 0)?;
            match rest.get(nul + 1)? {
                0x01 => return row.get(..row.len() - rest.len() + nul + TERMINATOR.len()),
                0xFF => rest = rest.get(nul + 2..)?,
                _ => return None,
            }
        }
    }

    fn build(account: u64, container: u64, name: &str, collation: Collation) -> Self {
        let mut key = Vec::with_capacity(18 + name.len());
        key.extend_from_slice(&account.to_be_bytes());
        key.extend_from_slice(&container.to_be_bytes());
        escape(name, collation, &mut key);
        key.extend_from_slice(&TERMINATOR);
        Self(key.into())
    }

    /// The name inside the key; `None` when the bytes are no key of this collation.
    #[must_use]
    pub fn name(&self, collation: Collation) -> Option<String> {
        unescape(self.0.get(16..)?.strip_suffix(&TERMINATOR)?, collation)
    }

    /// The bytes, which sort as the keys do.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for RoutingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutingKey(")?;
        for byte in &self.0 {
            write!(f, "{byte:02x}")?;
        }
        write!(f, ")")
    }
}

/// Ends the name in a key. A NUL inside a name would be `00 FF`, so that a name sorts before its
/// extensions.
const TERMINATOR: [u8; 2] = [0x00, 0x01];

fn escape(name: &str, collation: Collation, out: &mut Vec<u8>) {
    for &byte in name.as_bytes() {
        match (byte, collation) {
            (0, _) => out.extend_from_slice(&[0x00, 0xFF]),
            // UTF-16 sorts U+E000..U+FFFF (lead bytes EE, EF) above the supplementary planes
            // (F0..F4).
            (0xEE | 0xEF, Collation::Utf16) => out.push(byte + 5),
            (0xF0..=0xF4, Collation::Utf16) => out.push(byte - 2),
            _ => out.push(byte),
        }
    }
}

fn unescape(bytes: &[u8], collation: Collation) -> Option<String> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        match (byte, collation) {
            (0, _) => match rest.next() {
                Some(0xFF) => out.push(0),
                _ => return None,
            },
            (0xF3 | 0xF4, Collation::Utf16) => out.push(byte - 5),
            (0xEE..=0xF2, Collation::Utf16) => out.push(byte + 2),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

/// The least byte string above everything that starts with `prefix`; `None` when there is none.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&b| b != 0xFF)?;
    let mut bound = prefix.get(..=last)?.to_vec();
    *bound.last_mut()? += 1;
    Some(bound.into())
}

/// The full name of a blob, with what is needed to make its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlobKey {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub container: ContainerId,
    /// The container's collation.
    pub collation: Collation,
    /// The name.
    pub name: BlobName,
}

/// A half-open range of routing keys; no upper bound means to the end of the key space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    low: RoutingKey,
    high: Option<RoutingKey>,
}

impl KeyRange {
    /// The range `[low, high)`.
    #[must_use]
    pub const fn new(low: RoutingKey, high: Option<RoutingKey>) -> Self {
        Self { low, high }
    }

    /// The whole key space.
    #[must_use]
    pub const fn all() -> Self {
        Self { low: RoutingKey::min(), high: None }
    }

    /// The inclusive lower bound.
    #[must_use]
    pub const fn low(&self) -> &RoutingKey {
        &self.low
    }

    /// The exclusive upper bound.
    #[must_use]
    pub const fn high(&self) -> Option<&RoutingKey> {
        self.high.as_ref()
    }

    /// Whether `key` lies inside. Works on row keys too: a row's key starts with its routing key
    /// and sorts inside the same range, because bounds are routing keys.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.low.0.as_ref() && self.high.as_ref().is_none_or(|high| key < high.0.as_ref())
    }

    /// Whether all its keys are blobs of one container.
    #[must_use]
    pub fn lies_in_a_container(&self) -> bool {
        let end = self.low.rest_of_container().and_then(|rest| rest.high);
        self.high.as_ref().zip(end).is_some_and(|(high, end)| *high <= end)
    }

    /// The common part; `None` when there is none.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let low = self.low.clone().max(other.low.clone());
        let high = match (&self.high, &other.high) {
            (Some(a), Some(b)) => Some(a.clone().min(b.clone())),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        if high.as_ref().is_some_and(|high| *high <= low) { None } else { Some(Self { low, high }) }
    }
}

#[cfg(test)]
mod tests;
