//! The partition map: who owns which range, at which epoch; `map/follow.rs` keeps one up to date.

mod follow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::coordinator::{Coordinator, Revision};
use crate::index::api::Error;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;

pub use follow::MapFollower;

/// Coordinator keys of descriptors: this, then the id as 16 hex digits.
pub const PARTITION_PREFIX: &str = "partition/";

const DESCRIPTOR_VERSION: u8 = 2;
/// Before partitions had hosts: all of them are the first one's.
const WITHOUT_HOST: u8 = 1;

/// What the coordinator holds of a partition: enough to find everything durable about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionDescriptor {
    /// The partition.
    pub id: PartitionId,
    /// Its keys. All descriptors together tile the key space exactly (I5).
    pub range: KeyRange,
    /// Grows with every change of owner or range.
    pub epoch: Epoch,
    /// Its log, oldest first; the last is the open one. The first record of each is a manifest.
    pub log: Vec<ExtentId>,
    /// Who serves it.
    pub host: HostId,
}

impl PartitionDescriptor {
    /// The value the coordinator holds. Layout: `api-spec/log-record.md`.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut value = vec![DESCRIPTOR_VERSION];
        value.extend(postcard::to_stdvec(self).expect("numbers and bytes always encode"));
        value.into()
    }

    /// Reads a value; `None` when it is malformed or of a version not known here.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&version, rest) = value.split_first()?;
        let descriptor = match version {
            DESCRIPTOR_VERSION => postcard::take_from_bytes(rest),
            WITHOUT_HOST => {
                postcard::take_from_bytes(rest).map(|((id, range, epoch, log), rest)| {
                    (Self { id, range, epoch, log, host: HostId::new(0) }, rest)
                })
            }
            _ => return None,
        };
        match descriptor {
            Ok((descriptor, [])) => Some(descriptor),
            Ok(_) | Err(_) => None,
        }
    }

    /// The coordinator key of partition `id`.
    #[must_use]
    pub fn coordinator_key(id: PartitionId) -> Bytes {
        format!("{PARTITION_PREFIX}{:016x}", id.get()).into()
    }
}

/// All partitions, for routing. Maps go stale: then the owner refuses and the router reads a new one (I15).
#[derive(Clone, Debug, Default)]
pub struct PartitionMap {
    /// Sorted by lower bound.
    partitions: Vec<PartitionDescriptor>,
}

impl PartitionMap {
    /// Builds the map; `None` when the descriptors do not tile the key space.
    #[must_use]
    pub fn new(mut partitions: Vec<PartitionDescriptor>) -> Option<Self> {
        partitions.sort_by(|a, b| a.range.low().cmp(b.range.low()));
        let starts_low = partitions.first().is_some_and(|p| p.range.low().as_bytes().is_empty());
        let ends_high = partitions.last().is_some_and(|p| p.range.high().is_none());
        let joined = partitions.windows(2).all(|pair| match pair {
            [a, b] => a.range.high() == Some(b.range.low()),
            _ => false,
        });
        (starts_low && ends_high && joined).then_some(Self { partitions })
    }

    /// Reads the map of the coordinator.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::Corrupt`] when it is not a map of the whole key space (I5), which an empty one
    /// is not.
    pub async fn load(coordinator: &dyn Coordinator) -> Result<Self, Error> {
        Ok(Self::load_at(coordinator).await?.0)
    }

    /// As [`Self::load`], with the revision it is of.
    async fn load_at(coordinator: &dyn Coordinator) -> Result<(Self, Revision), Error> {
        let snapshot = coordinator
            .range(PARTITION_PREFIX.as_bytes())
            .await
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let partitions = snapshot
            .entries
            .iter()
            .map(|(_, entry)| PartitionDescriptor::decode(&entry.value))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::Corrupt("a partition descriptor is malformed".into()))?;
        let map = Self::new(partitions)
            .ok_or_else(|| Error::Corrupt("the partitions do not tile the key space".into()))?;
        Ok((map, snapshot.revision))
    }

    /// The partition that owns a key: a routing key, or any position between keys.
    #[must_use]
    pub fn owner(&self, key: &[u8]) -> Option<&PartitionDescriptor> {
        let after = self.partitions.partition_point(|p| p.range.low().as_bytes().as_ref() <= key);
        self.partitions.get(after.checked_sub(1)?)
    }

    /// All partitions in key order.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionDescriptor] {
        &self.partitions
    }
}

#[cfg(test)]
mod tests;
