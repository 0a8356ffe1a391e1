//! Keys of the index: the order-preserving routing key and ranges of it.
//!
//! Byte layout: `api-spec/keys.md`.

#![deny(clippy::indexing_slicing)]

mod tag;

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Timestamp;
use crate::types::{AccountId, AccountName, BlobName, ContainerId, ContainerName};

pub use tag::{TAG_INDEX, TagEntryKey};

/// The order in which a container lists its names. Fixed when the container is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Collation {
    /// By UTF-16 code units, as in Azure. For containers that are made through Blob REST.
    Utf16,
    /// By UTF-8 bytes, as in S3. For buckets that are made through S3.
    Utf8,
}

/// The key by which requests are routed: account id, container id, escaped name. Partitions split
/// only between routing keys, so all rows of a blob are in one partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RoutingKey(Bytes);

impl RoutingKey {
    /// The lowest key.
    #[must_use]
    pub const fn min() -> Self {
        Self(Bytes::new())
    }

    /// A key of bytes that were read from a descriptor or a row.
    #[must_use]
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The key of an account's row: account 0, container 0, the account's name.
    #[must_use]
    pub fn account(name: &AccountName) -> Self {
        Self::build(0, 0, name.as_str(), Collation::Utf8)
    }

    /// The key of a container's row: the account, container 0, the container's name.
    #[must_use]
    pub fn container(account: AccountId, name: &ContainerName) -> Self {
        Self::build(account.get(), 0, name.as_str(), Collation::Utf8)
    }

    /// The key of a blob's rows.
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

    /// The key of a prefix of names, without the terminator. It sorts at or before the keys of all
    /// names that start with `prefix`.
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

    /// The range from this position to the end of its container; `None` if no blobs of a container
    /// are here.
    #[must_use]
    pub fn rest_of_container(&self) -> Option<KeyRange> {
        let container = self.0.get(..16)?;
        // Rows of accounts and containers, and the tag index, are not blobs.
        let special = [[0; 8], TAG_INDEX.get().to_be_bytes()];
        let is_blobs = container.get(..8) != Some(&[0; 8])
            && special.iter().all(|id| container.get(8..) != Some(id));
        let end = after_prefix(container).filter(|_| is_blobs)?;
        Some(KeyRange::new(self.clone(), Some(Self(end))))
    }

    /// The least position above all keys that start with `prefix`, a routing key or a result of
    /// [`Self::prefix`]; `None` if there is none.
    #[must_use]
    pub fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
        after_prefix(prefix)
    }

    /// The least position above all rows of a blob of this name, whether or not a blob may have it.
    #[must_use]
    pub fn after_name(
        account: AccountId,
        container: ContainerId,
        name: &str,
        collation: Collation,
    ) -> Bytes {
        let key = Self::build(account.get(), container.get(), name, collation);
        after_prefix(key.as_bytes()).unwrap_or_default()
    }

    /// The least position above the version of this time of a blob of this name, whether or not a
    /// blob may have it.
    #[must_use]
    pub fn after_version(
        account: AccountId,
        container: ContainerId,
        (name, time): (&str, Timestamp),
        collation: Collation,
    ) -> Bytes {
        let key = Self::build(account.get(), container.get(), name, collation);
        let ticks = (!time.ticks()).to_be_bytes();
        [key.as_bytes().as_ref(), &ticks, &[0]].concat().into()
    }

    /// The last name that a list position has passed, if it can be derived from the position. The
    /// position is then among or just behind the rows of the blob of that name.
    #[must_use]
    pub fn passed_name(position: &Bytes, collation: Collation) -> Option<String> {
        const AFTER: [u8; 2] = [TERMINATOR[0], TERMINATOR[1] + 1];
        if let Some(name) = position.get(16..)?.strip_suffix(&AFTER) {
            return unescape(name, collation);
        }
        let key = Self::of_row(position).filter(|key| key.0.len() < position.len())?;
        key.name(collation)
    }

    /// The time of the version that a position among the rows of a blob has passed, where a list
    /// has versions newest first: [`Self::after_version`] of it goes on at a version that the list
    /// has not passed. `None` if the position is not among the rows of a blob.
    #[must_use]
    pub fn passed_version(position: &Bytes) -> Option<Timestamp> {
        /// Inverted times of versions have this bit. The other rows of a blob come before.
        const FIRST: u64 = 1 << 63;
        let key = Self::prefix_of_row(position)?;
        let rest = position.get(key.len()..).filter(|rest| !rest.is_empty())?;
        let inverted = match rest.split_first_chunk::<8>() {
            Some((inverted, [])) => u64::from_be_bytes(*inverted).saturating_sub(1),
            Some((inverted, _)) => u64::from_be_bytes(*inverted),
            None => FIRST,
        };
        Some(Timestamp::from_ticks(!inverted.max(FIRST)))
    }

    /// The routing key at the beginning of a row's key; `None` if there is none.
    #[must_use]
    pub fn of_row(row: &Bytes) -> Option<Self> {
        Self::prefix_of_row(row).map(|key| Self(row.slice_ref(key)))
    }

    /// As [`Self::of_row`], without a copy.
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

    /// The name in the key; `None` if the bytes are not a key of this collation.
    #[must_use]
    pub fn name(&self, collation: Collation) -> Option<String> {
        unescape(self.0.get(16..)?.strip_suffix(&TERMINATOR)?, collation)
    }

    /// The bytes. They sort as the keys do.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The bytes, without a copy of the handle.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
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

/// Ends the name in a key. A NUL in a name is written as `00 FF`, so a name sorts before all names
/// that extend it.
const TERMINATOR: [u8; 2] = [0x00, 0x01];

/// Whether a byte of a name is written in another way.
const fn is_escaped(byte: u8, collation: Collation) -> bool {
    match collation {
        Collation::Utf16 => byte == 0 || byte >= 0xEE,
        Collation::Utf8 => byte == 0,
    }
}

fn escape(name: &str, collation: Collation, out: &mut Vec<u8>) {
    // Few names have such bytes.
    if !name.bytes().any(|byte| is_escaped(byte, collation)) {
        out.extend_from_slice(name.as_bytes());
        return;
    }
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

/// The least byte string above all that start with `prefix`; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&b| b != 0xFF)?;
    let mut bound = prefix.get(..=last)?.to_vec();
    *bound.last_mut()? += 1;
    Some(bound.into())
}

/// The full name of a blob, with the collation that its key needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// A half-open range of routing keys. Without an upper bound it reaches to the end of the key
/// space.
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

    /// Whether `key` lies in the range. Also works for keys of rows: a row's key starts with its
    /// routing key and sorts in the same range, because bounds are routing keys.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.low.0.as_ref() && self.high.as_ref().is_none_or(|high| key < high.0.as_ref())
    }

    /// Whether all its keys are of blobs of one container.
    #[must_use]
    pub fn lies_in_a_container(&self) -> bool {
        let end = self.low.rest_of_container().and_then(|rest| rest.high);
        self.high.as_ref().zip(end).is_some_and(|(high, end)| *high <= end)
    }

    /// The intersection; `None` if it is empty.
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
