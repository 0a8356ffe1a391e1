//! The interface by which reclaim and backups ask the processes that run requests. It is a call
//! today, and an RPC in a cluster (ADR 0028).
//!
//! A process notes its own requests in a register (`index/inflight.rs`), which only it uses. Others
//! ask here. Without an answer nothing is freed, because a request of that process may need any
//! byte.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use crate::index::api::Error;
use crate::types::ExtentId;
use crate::types::RoutingKey;

/// A moment in the order in which requests are noted. Marks are compared with marks of the same
/// processes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMark {
    /// Reads and layers of pages that were noted before it have lower numbers.
    pub reads: u64,
    /// So have requests and commits that change blobs.
    pub changes: u64,
    /// So have copies by reference.
    pub copies: u64,
}

/// A question about running requests. The answer is whether such a request runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Running {
    /// A read noted before the mark that names bytes of one of the extents, or is looking up and
    /// may name any. Without extents: a read that is looking up.
    Read {
        /// Reads noted later do not count.
        before: RequestMark,
        /// The extents.
        extents: Vec<ExtentId>,
    },
    /// A write noted before the mark that makes a layer of pages under the blob.
    Layer {
        /// Layers noted later do not count.
        before: RequestMark,
        /// The blob.
        blob: RoutingKey,
    },
    /// A request noted before the mark that changes blobs.
    Change {
        /// Requests noted later do not count.
        before: RequestMark,
    },
    /// A commit noted before the mark that changes blobs.
    Commit {
        /// Commits noted later do not count.
        before: RequestMark,
    },
    /// A copy noted before the mark that has not yet reported its look-up.
    CopyLookUp {
        /// Copies noted later do not count.
        before: RequestMark,
    },
    /// A copy that names bytes of the extent and ran at any time since the watch began, in the
    /// processes that there were then. The answer is also yes if the watch is unknown.
    Copy {
        /// The watch.
        since: CopyWatchId,
        /// The extent.
        extent: ExtentId,
    },
}

/// The read that has run for longest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OldestRead {
    /// Identifies the read.
    pub number: u64,
    /// How long it has run.
    pub age: Duration,
    /// Its description. Only reads of several steps have one.
    pub what: Option<String>,
    /// The id of the request that reads.
    pub request: Option<Uuid>,
}

/// A watch of copies. From its begin to its end the extents that copies name are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyWatchId(pub u64);

/// A hold: a read of the asker, which may name anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldId(pub u64);

/// The processes that run requests.
#[async_trait]
pub trait RunningRequests: Send + Sync + Debug {
    /// A mark that separates the notes before the call from the notes after its answer.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when a process does not answer: try again later.
    async fn mark(&self) -> Result<RequestMark, Error>;

    /// Whether such a request runs.
    ///
    /// # Errors
    /// As [`Self::mark`]. The caller treats an error as a yes.
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

    /// Whether a watch has seen all copies since it began: no process has come or gone.
    ///
    /// # Errors
    /// As [`Self::mark`].
    async fn has_seen_all(&self, watch: CopyWatchId) -> Result<bool, Error>;

    /// Ends a watch, without waiting for an answer.
    fn end_watch(&self, watch: CopyWatchId);

    /// Begins a hold; `what` describes its purpose. Until [`Hold`] ends it, nothing is freed except
    /// bytes that were found to be garbage before.
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

    /// The id of the watch.
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
