//! The partition map: the owner and epoch of each range.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::coordinator::{Coordinator, Revision};
use crate::index::api::Error;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;
use crate::types::Stripe;

mod followed;

pub use followed::{FollowedMap, Found};

/// Coordinator keys of descriptors: this, then the id as 16 hex digits.
pub const PARTITION_PREFIX: &str = "partition/";

/// The version that names the node of the host, as in a cluster.
const WITH_NODE: u8 = 4;
/// The version of a node alone.
const DESCRIPTOR_VERSION: u8 = 3;
/// The version before there were stripes.
const WITHOUT_STRIPE: u8 = 2;
/// The version before there were hosts. Its partitions belong to the first host.
const WITHOUT_HOST: u8 = 1;

/// The coordinator's entry for a partition. Everything durable about the partition can be found
/// from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDescriptor {
    /// The partition.
    pub id: PartitionId,
    /// Its keys. All descriptors together tile the key space exactly (I5).
    pub keys: PartitionKeys,
    /// Grows with every change of owner or range.
    pub epoch: Epoch,
    /// The extents of its log, oldest first. The last one is open. The first record of each is a
    /// manifest.
    pub log: Vec<ExtentId>,
    /// The host that serves it.
    pub host: HostId,
}

impl PartitionDescriptor {
    /// The value the coordinator holds. Layout: `api-spec/log-record.md`.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (stripe, host) = (self.keys.stripe(), self.host.number());
        let fields = (self.id, self.keys.range(), self.epoch, &self.log, host, stripe);
        let (version, encoded) = match self.host.node().get() {
            0 => (DESCRIPTOR_VERSION, postcard::to_stdvec(&fields)),
            node => (WITH_NODE, postcard::to_stdvec(&(fields, node))),
        };
        let encoded = encoded.expect("numbers and bytes always encode");
        [&[version], encoded.as_slice()].concat().into()
    }

    /// Decodes a value; `None` if it is malformed or of an unknown version.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&version, fields) = value.split_first()?;
        let ((id, range, epoch, log, host, stripe), node) = match version {
            WITH_NODE => whole::<((_, _, _, _, _, Option<Stripe>), u64)>(fields)?,
            DESCRIPTOR_VERSION => (whole(fields)?, 0),
            WITHOUT_STRIPE => {
                let (id, range, epoch, log, host) = whole(fields)?;
                ((id, range, epoch, log, host, None), 0)
            }
            WITHOUT_HOST => {
                let (id, range, epoch, log) = whole(fields)?;
                ((id, range, epoch, log, 0, None), 0)
            }
            _ => return None,
        };
        let host = HostId::of(NodeId::new(node), host);
        let keys = match stripe {
            None => PartitionKeys::from(range),
            Some(read) => PartitionKeys::striped(range, Stripe::new(read.number(), read.of())?),
        };
        Some(Self { id, keys, epoch, log, host })
    }

    /// Whether a coordinator key is that of a descriptor.
    #[must_use]
    pub fn is_key(key: &[u8]) -> bool {
        key.starts_with(PARTITION_PREFIX.as_bytes())
    }

    /// The coordinator key of partition `id`.
    #[must_use]
    pub fn coordinator_key(id: PartitionId) -> Bytes {
        format!("{PARTITION_PREFIX}{:016x}", id.get()).into()
    }
}

/// Decodes a value that takes all of `bytes`.
fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        Ok(_) | Err(_) => None,
    }
}

/// All partitions, for routing. A map may be stale: then the host that it names refuses the
/// request, and the router reads a new map (I15).
#[derive(Clone, Debug, Default)]
pub struct PartitionMap {
    /// Sorted by lower bound; stripes of one range by number.
    partitions: Vec<PartitionDescriptor>,
}

impl PartitionMap {
    /// Makes the map; `None` if the descriptors do not tile the key space.
    #[must_use]
    pub fn new(mut partitions: Vec<PartitionDescriptor>) -> Option<Self> {
        let place = |p: &PartitionDescriptor| (p.keys.range().low().clone(), p.keys.stripe());
        partitions.sort_by_cached_key(place);
        let mut reached = Some(RoutingKey::min());
        for group in partitions.chunk_by(|a, b| a.keys.range().low() == b.keys.range().low()) {
            let first = &group.first()?.keys;
            let whole = match group {
                [one] => one.keys.stripe().is_none(),
                several => PartitionKeys::joined(several.iter().map(|p| &p.keys)).is_some(),
            };
            if reached.as_ref() != Some(first.range().low()) || !whole {
                return None;
            }
            reached = first.range().high().cloned();
        }
        (reached.is_none() && !partitions.is_empty()).then_some(Self { partitions })
    }

    /// Reads the map of the coordinator.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::Corrupt`] if the partitions do not tile the whole key space
    /// (I5), which an empty map does not.
    pub async fn load(coordinator: &dyn Coordinator) -> Result<Self, Error> {
        Ok(Self::load_at(coordinator).await?.0)
    }

    /// As [`Self::load`], with the revision of the map.
    pub(in crate::index) async fn load_at(
        coordinator: &dyn Coordinator,
    ) -> Result<(Self, Revision), Error> {
        let snapshot = coordinator
            .range(PARTITION_PREFIX.as_bytes())
            .await
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        let partitions = snapshot
            .entries
            .iter()
            .map(|(_, entry)| PartitionDescriptor::decode(&entry.value))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::damaged_rows("a partition descriptor is malformed"))?;
        let map = Self::new(partitions)
            .ok_or_else(|| Error::damaged_rows("the partitions do not tile the key space"))?;
        Ok((map, snapshot.revision))
    }

    /// The partition that owns a routing key, or a row.
    #[must_use]
    pub fn owner(&self, key: &[u8]) -> Option<&PartitionDescriptor> {
        match self.at(key) {
            [one] => Some(one),
            stripes => {
                let of = u8::try_from(stripes.len()).ok()?;
                stripes.get(usize::from(Stripe::number_of_row(key, of)))
            }
        }
    }

    /// The partitions of the range at a position: one, or all stripes of the range.
    #[must_use]
    pub fn at(&self, position: &[u8]) -> &[PartitionDescriptor] {
        let low = |p: &PartitionDescriptor| p.keys.range().low().as_bytes().as_ref() <= position;
        let end = self.partitions.partition_point(low);
        let last = end.checked_sub(1).and_then(|last| self.partitions.get(last));
        let stripes = last.and_then(|last| last.keys.stripe()).map_or(1, |s| usize::from(s.of()));
        self.partitions.get(end.saturating_sub(stripes)..end).unwrap_or_default()
    }

    /// All partitions in key order, stripes of one range by number.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionDescriptor] {
        &self.partitions
    }
}

#[cfg(test)]
mod tests;
