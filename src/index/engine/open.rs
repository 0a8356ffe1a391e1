//! Opens a partition: takes over its log and starts its committer.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::env::Waits;
use crate::index::api::Error;
use crate::index::engine::change::CompactionYield;
use crate::index::engine::commit::Committer;
use crate::index::engine::context::HostContext;
use crate::index::engine::core::{Core, Status};
use crate::index::engine::partition::Partition;
use crate::index::engine::recover;
use crate::index::engine::recover::{NotOpened, Recovered};
use crate::index::engine::refusals::Refusals;
use crate::types::PartitionId;

/// The most commands that wait for a committer: of a flush, a compaction, a change of the map and a
/// stop. That a log is to be left is not sent if there is no room.
const COMMANDS: usize = 4;

impl Partition {
    /// Becomes the owner of partition `id` and recovers it.
    ///
    /// # Errors
    /// [`Error::WrongPartition`] if there is no such partition or another owner was faster;
    /// [`Error::Corrupt`], [`Error::Unavailable`], [`Error::Full`].
    pub(crate) async fn open(context: &Arc<HostContext>, id: PartitionId) -> Result<Self, Error> {
        Self::open_or_tell(context, id).await.map_err(|not| not.error)
    }

    /// As [`Self::open`]. The error says whether the partition was claimed.
    pub(crate) async fn open_or_tell(
        context: &Arc<HostContext>,
        id: PartitionId,
    ) -> Result<Self, NotOpened> {
        let recovered = recover::take_over(context, id).await?;
        Ok(Self::start(context, recovered))
    }

    /// Starts the committer of a recovered partition.
    pub(crate) fn start(context: &Arc<HostContext>, recovered: Recovered) -> Self {
        let (queue, queued) = mpsc::channel(context.config.queue_ops);
        let (commands, obeyed) = mpsc::channel(COMMANDS);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let waits =
            Arc::new(Waits::new(context.config.queue_wait_max, context.config.queue_patience));
        let core = Arc::new(recovered.core);
        core.begin_after(recovered.time);
        core.set_log_extents(recovered.log.extents());
        let committer = Committer {
            core: Arc::clone(&core),
            log: recovered.log,
            sources: recovered.sources,
            sequence: recovered.sequence,
            time: recovered.time,
            flushed: recovered.flushed,
            answers: recovered.answers,
            before: Duration::ZERO,
            queue: queued,
            queued_bytes: Arc::clone(&queued_bytes),
            waits: Arc::clone(&waits),
            commands: obeyed,
            failed: None,
            left_log: None,
            rolls: Refusals::default(),
            doubtful: Vec::new(),
        };
        let watched = StopOnPanic(Arc::clone(&core));
        let task = context.deps.env.tasks.spawn("partition committer", async move {
            let _watched = watched;
            committer.run().await;
        });
        Self {
            core,
            queue,
            queued_bytes,
            waits,
            commands,
            committer: Mutex::new(Some(task)),
            question: tokio::sync::Mutex::default(),
            flushing: tokio::sync::Mutex::new(()),
            compacting: tokio::sync::Mutex::new(()),
            compaction_yield: CompactionYield::default(),
        }
    }
}

/// Stops the partition if its committer panics, so that it is opened again.
struct StopOnPanic(Arc<Core>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Status::Stopped("its committer panicked".into()));
        }
    }
}
