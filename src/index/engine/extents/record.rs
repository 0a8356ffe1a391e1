//! The records of extents in the coordinator. Layout: `api-spec/log-record.md`.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::coordinator::{Coordinator, Revision};
use crate::index::api::Error;
use crate::index::engine::failure;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// Coordinator keys of records: this, then the partition's id as 16 hex digits.
const RECORD_PREFIX: &str = "extents/";
/// Coordinator keys of lists of sharers: this, then the extent's id as 16 hex digits.
const SHARERS_PREFIX: &str = "sharers/";

/// A coordinator key that exists while logs and runs of an older store may be in no record. Its
/// value is an empty record.
pub const UNRECORDED_KEY: &[u8] = b"unrecorded-extents";

const VERSION: u8 = 1;

/// The extents of a partition: those that it uses, that it may have created, and that it has not
/// yet removed. Its descriptor and its newest manifest say which of them it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentRecord {
    /// Extents that no other partition uses.
    pub own: BTreeSet<ExtentId>,
    /// Extents that other partitions may use too. Each has a list of sharers, unless all of them
    /// have released it. The value is the set of names under which this partition is on the list:
    /// its own id, or ids of partitions that it replaced. Each name is in one record only.
    pub shared: BTreeMap<ExtentId, BTreeSet<PartitionId>>,
}

impl ExtentRecord {
    /// The coordinator key of a partition's record.
    pub(crate) fn key(partition: PartitionId) -> Bytes {
        format!("{RECORD_PREFIX}{:016x}", partition.get()).into()
    }

    /// The value the coordinator holds.
    pub(crate) fn encode(&self) -> Bytes {
        encode(&(&self.own, &self.shared))
    }

    /// Decodes a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, Unread> {
        let (own, shared) = decode(value)?;
        Ok(Self { own, shared })
    }

    /// Whether a coordinator key is that of a record, of a list of sharers, or [`UNRECORDED_KEY`].
    #[must_use]
    pub fn is_key(key: &[u8]) -> bool {
        let prefixes = [RECORD_PREFIX, SHARERS_PREFIX].map(str::as_bytes);
        prefixes.iter().any(|prefix| key.starts_with(prefix)) || key == UNRECORDED_KEY
    }

    /// All extents of the record, own and shared.
    pub fn all(&self) -> impl Iterator<Item = ExtentId> {
        self.own.iter().chain(self.shared.keys()).copied()
    }

    /// Whether the record has an extent.
    pub(crate) fn has(&self, extent: ExtentId) -> bool {
        self.own.contains(&extent) || self.shared.contains_key(&extent)
    }

    /// Removes an extent from the record.
    pub(crate) fn remove(&mut self, extent: ExtentId) {
        self.own.remove(&extent);
        self.shared.remove(&extent);
    }

    /// Reads the record of a partition, and its revision; `None` if it has none yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub(crate) async fn load(
        coordinator: &dyn Coordinator,
        partition: PartitionId,
    ) -> Result<Option<RecordAt>, Error> {
        let key = Self::key(partition);
        let found = coordinator.get(&key).await;
        let found = found.map_err(|error| failure::coordinator(&error))?;
        let Some(found) = found else { return Ok(None) };
        let record = Self::decode(&found.value).map_err(|unread| unread.at(&key))?;
        Ok(Some(RecordAt { record, revision: found.mod_revision }))
    }

    /// Reads the records of all partitions, at one instant.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn load_all(
        coordinator: &dyn Coordinator,
    ) -> Result<Loaded<PartitionId, Self>, Error> {
        load(coordinator, RECORD_PREFIX, PartitionId::new, Self::decode).await
    }
}

/// A partition's record as it was read from the coordinator.
#[derive(Clone, Debug)]
pub(crate) struct RecordAt {
    pub(crate) record: ExtentRecord,
    /// The last change of the record.
    pub(crate) revision: Revision,
}

/// All records, or all lists, of a coordinator.
#[derive(Clone, Debug)]
pub struct Loaded<K, V> {
    /// Those that can be read.
    pub read: BTreeMap<K, V>,
    /// Those that cannot be read, and why. The error names the key.
    pub unread: BTreeMap<K, Error>,
}

impl<K, V> Loaded<K, V> {
    /// All values.
    ///
    /// # Errors
    /// Why one of them cannot be read.
    pub fn whole(self) -> Result<BTreeMap<K, V>, Error> {
        self.unread.into_values().next().map_or(Ok(self.read), Err)
    }
}

/// Why a value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It has this version, which only newer releases know.
    Newer(u8),
    Malformed,
}

impl Unread {
    /// The error for the operator, with the key of the value.
    pub(crate) fn at(self, key: &[u8]) -> Error {
        let key = String::from_utf8_lossy(key);
        Error::damaged_rows(match self {
            Self::Newer(version) => format!(
                "the coordinator's value `{key}` is of version {version}, and this release reads \
                 {VERSION}: written by a newer release: run that release"
            ),
            Self::Malformed => format!("the coordinator's value `{key}` is malformed"),
        })
    }
}

/// The list of an extent's sharers: the names of the partitions that have not released it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharers(pub(crate) BTreeSet<PartitionId>);

impl Sharers {
    /// The coordinator key of an extent's list.
    pub(crate) fn key(extent: ExtentId) -> Bytes {
        format!("{SHARERS_PREFIX}{:016x}", extent.get()).into()
    }

    /// The value the coordinator holds.
    pub(crate) fn encode(&self) -> Bytes {
        encode(&self.0)
    }

    /// Decodes a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub(crate) fn decode(value: &[u8]) -> Result<Self, Unread> {
        decode(value).map(Self)
    }

    /// Reads all lists, at one instant.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(crate) async fn load_all(
        coordinator: &dyn Coordinator,
    ) -> Result<Loaded<ExtentId, Self>, Error> {
        load(coordinator, SHARERS_PREFIX, ExtentId::new, Self::decode).await
    }
}

/// Reads all values whose keys are a prefix and an id.
async fn load<K: Ord, V>(
    coordinator: &dyn Coordinator,
    prefix: &str,
    id: impl Fn(u64) -> K,
    decode: impl Fn(&[u8]) -> Result<V, Unread>,
) -> Result<Loaded<K, V>, Error> {
    let found = coordinator.range(prefix.as_bytes()).await;
    let found = found.map_err(|error| failure::coordinator(&error))?;
    let mut loaded = Loaded { read: BTreeMap::new(), unread: BTreeMap::new() };
    for (key, entry) in &found.entries {
        let number =
            key.strip_prefix(prefix.as_bytes()).and_then(|id| std::str::from_utf8(id).ok());
        let Some(number) = number.and_then(|id| u64::from_str_radix(id, 16).ok()) else {
            // No code reads such a key.
            tracing::error!(?key, "a key in the coordinator belongs to no partition or extent");
            continue;
        };
        match decode(&entry.value) {
            Ok(value) => drop(loaded.read.insert(id(number), value)),
            Err(unread) => drop(loaded.unread.insert(id(number), unread.at(key))),
        }
    }
    Ok(loaded)
}

fn encode(fields: &impl Serialize) -> Bytes {
    let mut value = vec![VERSION];
    value.extend(postcard::to_stdvec(fields).expect("numbers always encode"));
    value.into()
}

fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, Unread> {
    match value.split_first() {
        Some((&VERSION, fields)) => match postcard::take_from_bytes(fields) {
            Ok((fields, [])) => Ok(fields),
            Ok(_) | Err(_) => Err(Unread::Malformed),
        },
        Some((&version, _)) if version > VERSION => Err(Unread::Newer(version)),
        Some(_) | None => Err(Unread::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ExtentRecord {
        let own = [5, 300].map(ExtentId::new).into();
        let names = [2, 129].map(PartitionId::new).into();
        ExtentRecord { own, shared: [(ExtentId::new(7), names)].into() }
    }

    #[test]
    fn record_has_golden_bytes() {
        let record = record();
        let golden = [1, 2, 5, 0xAC, 0x02, 1, 7, 2, 2, 0x81, 0x01];
        assert_eq!(record.encode().as_ref(), golden);
        assert_eq!(ExtentRecord::decode(&golden), Ok(record));
        assert_eq!(ExtentRecord::key(PartitionId::new(0x2A)), "extents/000000000000002a");
    }

    #[test]
    fn sharers_have_golden_bytes() {
        let sharers = Sharers([2, 129].map(PartitionId::new).into());
        let golden = [1, 2, 2, 0x81, 0x01];
        assert_eq!(sharers.encode().as_ref(), golden);
        assert_eq!(Sharers::decode(&golden), Ok(sharers));
        assert_eq!(Sharers::key(ExtentId::new(300)), "sharers/000000000000012c");
    }

    #[test]
    fn record_cut_short_longer_or_of_another_version_is_not_read() {
        let record = record();
        let bytes = record.encode();
        for len in 0..bytes.len() {
            assert_eq!(ExtentRecord::decode(&bytes.slice(..len)), Err(Unread::Malformed));
        }
        let of = |parts: [&[u8]; 2]| ExtentRecord::decode(&parts.concat());
        assert_eq!(of([&bytes, &[0]]), Err(Unread::Malformed));
        assert_eq!(of([&[0], &bytes.slice(1..)]), Err(Unread::Malformed));
        assert_eq!(of([&[2], &bytes.slice(1..)]), Err(Unread::Newer(2)));
    }
}
