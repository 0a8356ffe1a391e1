//! Common fixtures of front-end tests: a simulated machine, a partition map, and an index whose
//! reads the test answers.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::rand::SeededRand;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::PartitionDescriptor;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;

/// A machine with a simulated clock.
pub(crate) fn env() -> Env {
    Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    }
}

/// Writes the partition of this number and epoch into the map.
pub(crate) async fn publish(
    coordinator: &dyn Coordinator,
    (number, epoch): (u64, u64),
    keys: impl Into<PartitionKeys>,
) -> PartitionDescriptor {
    let descriptor = PartitionDescriptor {
        id: PartitionId::new(number),
        keys: keys.into(),
        epoch: Epoch::new(epoch),
        log: Vec::new(),
        host: HostId::new(0),
    };
    let key = PartitionDescriptor::coordinator_key(descriptor.id);
    coordinator.txn(&[], &[Op::Put(key, descriptor.encode())]).await.unwrap();
    descriptor
}

/// Answers reads as a test needs them.
#[async_trait]
pub(crate) trait Reads: Debug + Send + Sync {
    /// As [`IndexHost::read`].
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error>;
}

/// An index of which only the reads matter: writes succeed and change nothing.
#[derive(Debug)]
pub(crate) struct ReadIndex<R>(pub(crate) Arc<R>);

#[async_trait]
impl<R: Reads> IndexHost for ReadIndex<R> {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        self.0.read(target, read).await
    }

    async fn write_shared(&self, _target: Target, _write: Arc<Write>) -> Result<WriteReply, Error> {
        Ok(WriteReply::Done)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}
