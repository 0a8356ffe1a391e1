//! Requests to the owners of a given map, for callers that walk over all partitions and begin again
//! if the map changes.

use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::Place;
use crate::index::api::Read;
use crate::index::api::ReadRequest;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteRequest;
use crate::index::map::PartitionMap;

/// Sends requests to the owners of a given map, without retries. [`Error::WrongPartition`] says
/// that the map has changed since it was read; a [`crate::index::Router`] reads it again.
#[derive(Clone, Copy, Debug)]
pub struct FixedMap<'a> {
    host: &'a dyn IndexHost,
    map: &'a PartitionMap,
}

impl<'a> FixedMap<'a> {
    /// A client for this map.
    #[must_use]
    pub fn new(host: &'a dyn IndexHost, map: &'a PartitionMap) -> Self {
        Self { host, map }
    }

    /// Reads from the owner of the question's key.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn ask<Q: ReadRequest>(&self, question: Q) -> Result<Q::Reply, Error> {
        let read: Read = question.into();
        let (Place::Key(key) | Place::From(key)) = read.place() else {
            return Err(Error::WrongPartition);
        };
        self.host.read(owner(self.map, &key)?, read).await.and_then(Q::checked)
    }

    /// Sends a write to the owner of its key. Not cancel-safe.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn tell<W: WriteRequest>(&self, change: W) -> Result<W::Reply, Error> {
        let write: Write = change.into();
        let target = owner(self.map, &write.routing_key())?;
        self.host.write(target, write).await.and_then(W::checked)
    }
}

/// The owner of a key in this map.
pub(super) fn owner(map: &PartitionMap, key: &[u8]) -> Result<Target, Error> {
    map.owner(key).map(Target::of).ok_or(Error::WrongPartition)
}
