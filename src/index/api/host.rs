//! The trait a host of partitions offers.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::map::PartitionDescriptor;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::PartitionId;

/// The partition a router believes to own the key, and the epoch it knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The partition.
    pub partition: PartitionId,
    /// Its epoch in the router's map.
    pub epoch: Epoch,
    /// The host that serves it.
    pub host: HostId,
}

impl Target {
    /// The partition as the map has it.
    #[must_use]
    pub fn of(owner: &PartitionDescriptor) -> Self {
        Self { partition: owner.id, epoch: owner.epoch, host: owner.host }
    }
}

/// Hosts partitions.
#[async_trait]
pub trait IndexHost: Send + Sync + Debug {
    /// Answers from one partition.
    ///
    /// # Errors
    /// [`Error`].
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error>;

    /// As [`Self::read`], for a caller that keeps the request, since it may have to send it to
    /// another owner.
    ///
    /// # Errors
    /// As [`Self::read`].
    async fn read_kept(&self, target: Target, read: &Read) -> Result<ReadReply, Error> {
        self.read(target, read.clone()).await
    }

    /// Changes one partition; durable when it returns. Not cancel-safe: run it in a task of its
    /// own. The change is shared, since the caller may have to send it to another owner.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Unavailable`] the change may or may not have happened.
    async fn write_shared(&self, target: Target, write: Arc<Write>) -> Result<WriteReply, Error>;

    /// As [`Self::write_shared`], of a change that may be sent again if its outcome is unknown. The
    /// partition carries it out once, and gives every repetition the same answer. A host that no
    /// other process takes over from need not know the number: nobody sends a change again there.
    ///
    /// # Errors
    /// As [`Self::write_shared`]. [`Error::WrongPartition`], [`Error::Overloaded`], [`Error::Full`]
    /// and [`Error::Corrupt`] say of this attempt alone that it was not carried out.
    async fn write_once(
        &self,
        target: Target,
        id: WriteId,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        let WriteId { .. } = id;
        self.write_shared(target, write).await
    }

    /// As [`Self::write_shared`], of a change that is sent once.
    ///
    /// # Errors
    /// As [`Self::write_shared`].
    async fn write(&self, target: Target, write: Write) -> Result<WriteReply, Error> {
        self.write_shared(target, Arc::new(write)).await
    }

    /// The log and run extents that the partitions hosted here use now.
    async fn owned_extents(&self) -> Vec<ExtentId>;
}
