//! The coordinator trait: the smallest etcd-shaped interface that expresses every protocol of the
//! design.

use std::fmt;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error as ThisError;

/// Grows by one with every transaction that changes something. A key's *mod revision* is that of
/// its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A value with the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Bytes,
    /// The transaction that wrote it.
    pub mod_revision: Revision,
}

/// All keys under a prefix as of one revision, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The store's revision at the time.
    pub revision: Revision,
    /// Keys with values.
    pub entries: Vec<(Bytes, Versioned)>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key exists and was last changed by this revision.
    ModRevision(Bytes, Revision),
    /// The key does not exist.
    Absent(Bytes),
    /// The key exists with this value.
    Value(Bytes, Bytes),
}

/// A change of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes a value.
    Put(Bytes, Bytes),
    /// Writes a value that goes away with the session.
    PutWithSession(Bytes, Bytes, Session),
    /// Removes a key; one that does not exist counts as removed.
    Delete(Bytes),
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnReply {
    /// All conditions held; the changes are durable as of this revision.
    Committed(Revision),
    /// A condition did not hold at this revision; nothing changed.
    Rejected(Revision),
}

/// A change of one key, as watches deliver it, in revision order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key.
    pub key: Bytes,
    /// Its new value; `None` when removed.
    pub value: Option<Bytes>,
    /// The transaction.
    pub revision: Revision,
}

/// A lease kept alive by its owner; keys put with it go away when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u64);

/// Why a call failed; each variant is a different next step.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// The outcome is unknown: read again and compare before trying again.
    #[error("the coordinator did not answer; the change may or may not have happened")]
    Ambiguous,
    /// Nothing changed; try again later.
    #[error("the coordinator is unavailable: {reason}")]
    Unavailable {
        /// For the operator.
        reason: Reason,
    },
    /// The watch fell behind, or asked for a revision no longer kept: read the range again, then
    /// watch from there.
    #[error("the revision is no longer kept")]
    Compacted,
    /// The session ended: whatever it guarded belongs to others now.
    #[error("the session has ended")]
    SessionEnded,
    /// The store's file is damaged; restore it or rebuild it from the extents.
    #[error("the coordinator's store is damaged: {reason}")]
    Corrupt {
        /// For the operator.
        reason: String,
    },
}

/// Why the coordinator is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    text: String,
    is_full: bool,
}

impl Reason {
    /// Its disk is full: it goes on once there is room.
    #[must_use]
    pub const fn full(text: String) -> Self {
        Self { text, is_full: true }
    }

    /// Whether it goes on once there is room on its disk.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_full
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self { text, is_full: false }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error {
    /// Whether room on the store's disk is all that it takes.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Unavailable { reason } if reason.is_full())
    }
}

/// A stream of changes under a prefix.
#[async_trait]
pub trait Watch: Send {
    /// The next change. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Compacted`] when changes were missed.
    async fn next(&mut self) -> Result<Event, Error>;
}

/// The store. Linearizable; a committed transaction is durable.
#[async_trait]
pub trait Coordinator: Send + Sync + Debug {
    /// Reads one key.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error>;

    /// Reads all keys under a prefix at one revision.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error>;

    /// Applies all of `then` if all of `when` holds, atomically and durably. At most 128 conditions
    /// and changes.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] when it may have happened, [`Error::Unavailable`] when it has not.
    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error>;

    /// Changes under a prefix after `after`, without gaps.
    ///
    /// # Errors
    /// [`Error::Compacted`] when `after` is too old.
    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error>;

    /// Opens a session that ends when not kept alive for `ttl`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn open_session(&self, ttl: Duration) -> Result<Session, Error>;

    /// Keeps a session alive for another `ttl`.
    ///
    /// # Errors
    /// [`Error::SessionEnded`], [`Error::Unavailable`].
    async fn keep_alive(&self, session: Session) -> Result<(), Error>;

    /// Ends a session and removes its keys.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] when it may have happened, [`Error::Unavailable`] when it has not.
    async fn close_session(&self, session: Session) -> Result<(), Error>;
}
