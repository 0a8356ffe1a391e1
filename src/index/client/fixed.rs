//! Requests to the owners of a map that the caller has read, for callers that walk over all
//! partitions and begin again when the map has changed.

use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::Place;
use crate::index::api::Read;
use crate::index::api::ReadRequest;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteRequest;
use crate::index::map::PartitionMap;

/// Asks the owners of a fixed map, each once. [`Error::WrongPartition`] says that the map has
/// changed since it was read; [`crate::index::Router`] reads it again by itself.
#[derive(Clone, Copy, Debug)]
pub struct FixedMap<'a> {
    host: &'a dyn IndexHost,
    map: &'a PartitionMap,
}

impl<'a> FixedMap<'a> {
    /// Over this map.
    #[must_use]
    pub fn new(host: &'a dyn IndexHost, map: &'a PartitionMap) -> Self {
        Self { host, map }
    }

    /// Asks the owner of what the question is about.
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

    /// Changes rows at the owner of what the change is about. Not cancel-safe.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn tell<W: WriteRequest>(&self, change: W) -> Result<W::Reply, Error> {
        let write: Write = change.into();
        let target = owner(self.map, &write.routing_key())?;
        self.host.write(target, write).await.and_then(W::checked)
    }
}

/// Who owns a key by this map.
pub(super) fn owner(map: &PartitionMap, key: &[u8]) -> Result<Target, Error> {
    map.owner(key).map(Target::of).ok_or(Error::WrongPartition)
}
