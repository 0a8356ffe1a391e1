//! What reclaim and backups ask of the processes that run requests. In process today, over RPC in a
//! cluster (ADR 0028).
//!
//! A process notes its own requests in a register (`index/inflight.rs`), which only it uses. Others
//! ask here. Without an answer nothing is freed: a request of that process may need anything.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::index::api::Error;
use crate::types::ExtentId;
use crate::types::RoutingKey;

/// A moment in the order in which requests are noted. Marks are compared with marks of the same
/// processes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMark {
    /// Reads and layers of pages that were noted before it have lower numbers.
    pub reads: u64,
    /// So have requests and commits that change blobs.
    pub changes: u64,
    /// So have copies by reference.
    pub copies: u64,
}

/// What may be running. The answer says whether something of that kind is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Running {
    /// A read noted before the mark that names bytes of one of the extents, or is looking up and
    /// may
    /// come to name any. Without extents: one that is looking up.
    Read {
        /// Reads noted later are not meant.
        before: RequestMark,
        /// The extents.
        extents: Vec<ExtentId>,
    },
    /// A write noted before the mark that makes a layer of pages under the blob.
    Layer {
        /// Layers noted later are not meant.
        before: RequestMark,
        /// The blob.
        blob: RoutingKey,
    },
    /// A request noted before the mark that changes blobs.
    Change {
        /// Requests noted later are not meant.
        before: RequestMark,
    },
    /// A commit noted before the mark that changes blobs.
    Commit {
        /// Commits noted later are not meant.
        before: RequestMark,
    },
    /// A copy noted before the mark that has yet to tell what it looked up.
    CopyLookUp {
        /// Copies noted later are not meant.
        before: RequestMark,
    },
    /// A copy that names bytes of the extent and ran at any time since the watch began. Also when
    /// the watch is not known: what copies named since is not known either.
    Copy {
        /// The watch.
        since: CopyWatchId,
        /// The extent.
        extent: ExtentId,
    },
}

/// The read that has run for longest.
#[derive(Clone, Debug, PartialEq)]
pub struct OldestRead {
    /// Tells it from other reads.
    pub number: u64,
    /// How long it has run.
    pub age: Duration,
    /// What is known of it: only reads of several steps are described.
    pub what: Option<String>,
    /// The id of the request that reads.
    pub request: Option<Uuid>,
}

/// A watch of copies: what they name is kept from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyWatchId(pub u64);

/// A hold: a read of the asker, which may name anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldId(pub u64);

/// The processes that run requests.
#[async_trait]
pub trait RunningRequests: Send + Sync + Debug {
    /// A mark between what was noted before the call and what is noted after its answer.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when a process does not answer: try again later.
    async fn mark(&self) -> Result<RequestMark, Error>;

    /// Whether a request runs that is as asked.
    ///
    /// # Errors
    /// As [`Self::mark`]; take it for a yes.
    async fn is_running(&self, asked: Running) -> Result<bool, Error>;

    /// The extents that hold bytes of running writes, which no row may name yet.
    ///
    /// # Errors
    /// As [`Self::mark`].
    async fn written_extents(&self) -> Result<BTreeSet<ExtentId>, Error>;

    /// The read that has run for longest.
    ///
    /// # Errors
    /// As [`Self::mark`].
    async fn oldest_read(&self) -> Result<Option<OldestRead>, Error>;

    /// Begins a watch of copies. [`CopyWatch`] ends it.
    ///
    /// # Errors
    /// As [`Self::mark`].
    async fn watch_copies(&self) -> Result<CopyWatchId, Error>;

    /// Ends a watch, without waiting for an answer.
    fn end_watch(&self, watch: CopyWatchId);

    /// Begins a hold, `what` for. Nothing is freed until [`Hold`] ends it, but for what was found
    /// to be garbage before.
    ///
    /// # Errors
    /// As [`Self::mark`].
    async fn hold(&self, what: String) -> Result<HoldId, Error>;

    /// Ends a hold, without waiting for an answer.
    fn end_hold(&self, hold: HoldId);
}

/// A watch of copies that ends when this is dropped.
#[derive(Debug)]
pub struct CopyWatch {
    requests: Arc<dyn RunningRequests>,
    id: CopyWatchId,
}

impl CopyWatch {
    /// Begins it.
    ///
    /// # Errors
    /// As [`RunningRequests::watch_copies`].
    pub async fn begin(requests: &Arc<dyn RunningRequests>) -> Result<Self, Error> {
        let id = requests.watch_copies().await?;
        Ok(Self { requests: Arc::clone(requests), id })
    }

    /// Which watch it is.
    #[must_use]
    pub const fn id(&self) -> CopyWatchId {
        self.id
    }
}

impl Drop for CopyWatch {
    fn drop(&mut self) {
        self.requests.end_watch(self.id);
    }
}

/// A hold that ends when this is dropped.
#[derive(Debug)]
pub struct Hold {
    requests: Arc<dyn RunningRequests>,
    id: HoldId,
}

impl Hold {
    /// Begins it.
    ///
    /// # Errors
    /// As [`RunningRequests::hold`].
    pub async fn begin(requests: &Arc<dyn RunningRequests>, what: String) -> Result<Self, Error> {
        let id = requests.hold(what).await?;
        Ok(Self { requests: Arc::clone(requests), id })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.requests.end_hold(self.id);
    }
}
