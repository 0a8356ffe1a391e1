//! Keys of the tag index. The key of an entry sorts by tag key, value, container and blob name.
//!
//! Byte layout: `api-spec/keys.md`.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::RoutingKey;

use super::Collation;
use super::TERMINATOR;
use super::escape;
use super::unescape;

/// The container whose "blobs" are the entries of an account's tag index. The id is never issued.
pub const TAG_INDEX: ContainerId = ContainerId::new(u64::MAX);

/// Separates the parts of an entry's name. It is the encoding of a NUL in a name.
const SEPARATOR: [u8; 2] = [0x00, 0xFF];
/// Hexadecimal digits of a container id.
const CONTAINER_DIGITS: usize = 16;

/// The parts of an entry of the tag index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagEntryKey {
    /// The tag's key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The blob.
    pub blob: RoutingKey,
}

impl TagEntryKey {
    /// The key of the entry for a tag of `blob`. Tags have no NUL; [`crate::types::Tags`] checks
    /// that.
    #[must_use]
    pub fn routing_key(&self) -> RoutingKey {
        let blob = self.blob.as_bytes();
        let account = blob.get(..8).unwrap_or_default();
        let container = blob.get(8..16).unwrap_or_default();
        let mut out = prefix_bytes(account, &self.key);
        escape(&self.value, Collation::Utf8, &mut out);
        out.extend_from_slice(&SEPARATOR);
        for byte in container {
            out.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        out.extend_from_slice(&SEPARATOR);
        // The name as in the blob's key: escaped in its container's collation, with the terminator.
        out.extend_from_slice(blob.get(16..).unwrap_or(&TERMINATOR));
        RoutingKey::from_bytes(out.into())
    }

    /// Parses the key of an entry; `None` if it is not one.
    #[must_use]
    pub fn parse(entry: &RoutingKey) -> Option<Self> {
        let bytes = entry.as_bytes();
        if bytes.get(8..16)? != TAG_INDEX.get().to_be_bytes() {
            return None;
        }
        let (key, rest) = part(bytes.get(16..)?)?;
        let (value, rest) = part(rest)?;
        let (container, name) = part(rest)?;
        let digits = std::str::from_utf8(container).ok()?;
        let container = u64::from_str_radix(digits, 16).ok()?;
        if digits.len() != CONTAINER_DIGITS || !name.ends_with(&TERMINATOR) {
            return None;
        }
        let mut blob = bytes.get(..8)?.to_vec();
        blob.extend_from_slice(&container.to_be_bytes());
        blob.extend_from_slice(name);
        Some(Self {
            key: unescape(key, Collation::Utf8)?,
            value: unescape(value, Collation::Utf8)?,
            blob: RoutingKey::from_bytes(blob.into()),
        })
    }

    /// The position at which the entries of a tag key begin. With a value, those of values that
    /// start with it.
    #[must_use]
    pub fn start(account: AccountId, key: &str, value: &str) -> Bytes {
        let mut out = prefix_bytes(&account.get().to_be_bytes(), key);
        escape(value, Collation::Utf8, &mut out);
        out.into()
    }

    /// The prefix of all entries of a tag key and value; with a container, of those of its blobs.
    #[must_use]
    pub fn exact(
        account: AccountId,
        key: &str,
        value: &str,
        container: Option<ContainerId>,
    ) -> Bytes {
        let mut out = Self::start(account, key, value).to_vec();
        out.extend_from_slice(&SEPARATOR);
        if let Some(container) = container {
            out.extend_from_slice(format!("{:016x}", container.get()).as_bytes());
            out.extend_from_slice(&SEPARATOR);
        }
        out.into()
    }
}

fn prefix_bytes(account: &[u8], key: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + key.len());
    out.extend_from_slice(account);
    out.extend_from_slice(&TAG_INDEX.get().to_be_bytes());
    escape(key, Collation::Utf8, &mut out);
    out.extend_from_slice(&SEPARATOR);
    out
}

/// The bytes before the next separator, and those after it.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.windows(2).position(|pair| pair == SEPARATOR)?;
    Some((bytes.get(..at)?, bytes.get(at + 2..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::BlobKey;
    use crate::types::BlobName;

    fn entry(key: &str, value: &str, container: u64, blob: &str) -> TagEntryKey {
        let blob = RoutingKey::blob(&BlobKey {
            account: AccountId::new(7),
            container: ContainerId::new(container),
            collation: Collation::Utf16,
            name: BlobName::new(blob).unwrap(),
        });
        TagEntryKey { key: key.to_owned(), value: value.to_owned(), blob }
    }

    #[test]
    fn entry_has_these_bytes() {
        let mut golden = vec![0, 0, 0, 0, 0, 0, 0, 7, 255, 255, 255, 255, 255, 255, 255, 255];
        golden.extend_from_slice(b"k\0\xFFv\0\xFF00000000000000a1\0\xFFn\0\x01");
        assert_eq!(entry("k", "v", 0xa1, "n").routing_key().as_bytes().as_ref(), golden);
    }

    #[test]
    fn entries_sort_by_their_parts_and_come_back() {
        let entries = [
            entry("a", "", 1, "x"),
            entry("a", "1", 1, "x"),
            entry("a", "1", 1, "x\u{1F600}"),
            entry("a", "1", 1, "x\u{E000}"),
            entry("a", "1", 2, "a"),
            entry("a", "10", 1, "x"),
            entry("a", "2", 1, "x"),
            entry("a b", "1", 1, "x"),
            entry("ab", "1", 1, "x"),
        ];
        let keys: Vec<RoutingKey> = entries.iter().map(TagEntryKey::routing_key).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        for (entry, key) in entries.iter().zip(&keys) {
            assert_eq!(TagEntryKey::parse(key).as_ref(), Some(entry));
            let whole = RoutingKey::of_row(key.as_bytes());
            assert_eq!(whole.as_ref(), Some(key), "it is a routing key as others are");
            let container = ContainerId::new(1);
            let exact = |value, of| TagEntryKey::exact(AccountId::new(7), &entry.key, value, of);
            assert!(key.as_bytes().starts_with(&exact(&entry.value, None)));
            let here = entry.blob.as_bytes()[15] == 1;
            assert_eq!(key.as_bytes().starts_with(&exact(&entry.value, Some(container))), here);
            assert!(!key.as_bytes().starts_with(&exact("3", None)));
        }
        assert_eq!(TagEntryKey::parse(&entries[0].blob), None);
    }
}
