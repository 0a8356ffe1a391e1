//! Writes that happen once: in a cluster a front end numbers its writes, so that it may send one
//! again whose outcome it does not know (ADR 0049, 0058).

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Error;
use crate::index::api::Write;
use crate::rpc::NodeIdentity;

/// The number of a write, and what its sender knows about others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteId {
    /// The process that sends the write.
    pub process: NodeIdentity,
    /// Its number among the writes of this process.
    pub number: u64,
    /// Lower numbers are settled: the process will not ask for them again, and refuses to believe
    /// any answer to them.
    pub settled: u64,
    /// Whether the write was sent before, and the outcome of that is unknown. Then any answer to it
    /// is kept, a refusal too: else the earlier attempt might be carried out after the refusal.
    pub is_repeated: bool,
}

/// Says which processes have ended. Nothing is kept for the writes of those.
#[async_trait]
pub trait WriterSessions: Send + Sync + std::fmt::Debug {
    /// Whether the process has certainly ended, and no write of it is under way here or accepted
    /// later by any process.
    fn has_ended(&self, process: NodeIdentity) -> bool;

    /// Learns what the process knew that served a partition before, which cannot serve it any more.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the partition may not be served yet.
    async fn catch_up(&self) -> Result<(), Error>;
}

impl Write {
    /// Whether it may be done twice, so that it needs no number: it marks what a source has as
    /// shared.
    #[must_use]
    pub const fn is_repeatable(&self) -> bool {
        matches!(self, Self::Share(_) | Self::SharePages(_))
    }
}
