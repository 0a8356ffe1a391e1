//! The records of extents in the coordinator. Layout: `api-spec/log-record.md`.

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

const VERSION: u8 = 1;

/// The extents of a partition: all it uses, all it may have created, all it has not yet removed.
/// Which of them it uses stands in its descriptor and in its newest manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentRecord {
    /// No other partition uses them.
    pub own: BTreeSet<ExtentId>,
    /// Other partitions may use them too: there is a list of sharers, unless all of them have
    /// released the extent.
    pub shared: BTreeSet<ExtentId>,
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

    /// Reads a value; `None` when it is malformed or of a version not known here.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let (own, shared) = decode(value)?;
        Some(Self { own, shared })
    }

    /// All extents, own and shared.
    pub fn all(&self) -> impl Iterator<Item = ExtentId> {
        self.own.iter().chain(&self.shared).copied()
    }

    /// Takes an extent out.
    pub(crate) fn remove(&mut self, extent: ExtentId) {
        self.own.remove(&extent);
        self.shared.remove(&extent);
    }

    /// The record of a partition, with the revision it is of; `None` before it has created
    /// anything.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub(crate) async fn load(
        coordinator: &dyn Coordinator,
        partition: PartitionId,
    ) -> Result<Option<(Self, Revision)>, Error> {
        let found = coordinator.get(&Self::key(partition)).await;
        let found = found.map_err(|error| failure::coordinator(&error))?;
        let Some(found) = found else { return Ok(None) };
        let record = Self::decode(&found.value).ok_or_else(|| {
            Error::Corrupt(format!("the extent record of partition {partition} is malformed"))
        })?;
        Ok(Some((record, found.mod_revision)))
    }

    /// The records of all partitions, as of one instant.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn load_all(
        coordinator: &dyn Coordinator,
    ) -> Result<BTreeMap<PartitionId, Self>, Error> {
        let found = coordinator.range(RECORD_PREFIX.as_bytes()).await;
        let found = found.map_err(|error| failure::coordinator(&error))?;
        let one = |key: &Bytes, value: &[u8]| {
            let id = key.strip_prefix(RECORD_PREFIX.as_bytes())?;
            let id = u64::from_str_radix(std::str::from_utf8(id).ok()?, 16).ok()?;
            Some((PartitionId::new(id), Self::decode(value)?))
        };
        let records = found.entries.iter().map(|(key, entry)| one(key, &entry.value));
        records
            .collect::<Option<_>>()
            .ok_or_else(|| Error::Corrupt("an extent record is malformed".into()))
    }
}

/// The partitions that use an extent, or have not yet released it.
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

    /// Reads a value; `None` when it is malformed or of a version not known here.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        decode(value).map(Self)
    }
}

fn encode(fields: &impl Serialize) -> Bytes {
    let mut value = vec![VERSION];
    value.extend(postcard::to_stdvec(fields).expect("numbers always encode"));
    value.into()
}

fn decode<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    let (&version, fields) = value.split_first()?;
    match postcard::take_from_bytes(fields) {
        Ok((fields, [])) if version == VERSION => Some(fields),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(ids: &[u64]) -> BTreeSet<ExtentId> {
        ids.iter().copied().map(ExtentId::new).collect()
    }

    #[test]
    fn record_has_golden_bytes() {
        let record = ExtentRecord { own: extents(&[5, 300]), shared: extents(&[7]) };
        let golden = [1, 2, 5, 0xAC, 0x02, 1, 7];
        assert_eq!(record.encode().as_ref(), golden);
        assert_eq!(ExtentRecord::decode(&golden), Some(record));
        assert_eq!(ExtentRecord::key(PartitionId::new(0x2A)), "extents/000000000000002a");
    }

    #[test]
    fn sharers_have_golden_bytes() {
        let sharers = Sharers([2, 129].map(PartitionId::new).into());
        let golden = [1, 2, 2, 0x81, 0x01];
        assert_eq!(sharers.encode().as_ref(), golden);
        assert_eq!(Sharers::decode(&golden), Some(sharers));
        assert_eq!(Sharers::key(ExtentId::new(300)), "sharers/000000000000012c");
    }

    #[test]
    fn record_cut_short_longer_or_of_another_version_is_none() {
        let record = ExtentRecord { own: extents(&[5, 300]), shared: extents(&[7]) };
        let bytes = record.encode();
        for len in 0..bytes.len() {
            assert_eq!(ExtentRecord::decode(&bytes[..len]), None);
        }
        assert_eq!(ExtentRecord::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(ExtentRecord::decode(&[&[2], &bytes[1..]].concat()), None);
    }
}
