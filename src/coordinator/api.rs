//! The coordinator trait: the smallest interface in the style of etcd on which every protocol of
//! the store can be built.

use std::fmt;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error as ThisError;

/// The version of the whole store. Grows by one with every transaction that changes a key. A key's
/// *mod revision* is the revision of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A value with the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Bytes,
    /// The revision of the transaction that wrote it.
    pub mod_revision: Revision,
}

/// All keys under a prefix as of one revision, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The revision of the store.
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
    /// Writes a value that is removed when the session ends.
    PutWithSession(Bytes, Bytes, Session),
    /// Removes a key. A key that does not exist counts as removed.
    Delete(Bytes),
}

/// The result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnReply {
    /// All conditions held; the changes are durable as of this revision.
    Committed(Revision),
    /// A condition did not hold at this revision, and nothing changed.
    Rejected(Revision),
}

/// A change of one key. Watches deliver changes in revision order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key.
    pub key: Bytes,
    /// Its new value; `None` if it was removed.
    pub value: Option<Bytes>,
    /// The revision of the transaction.
    pub revision: Revision,
}

/// A session that its owner keeps alive. Keys written with it are removed when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u64);

/// Why a call failed. Each variant demands another reaction of the caller.
#[derive(Clone, Debug, ThisError)]
pub enum Error {
    /// The outcome is unknown. Read the keys and compare before trying again.
    #[error("the coordinator did not answer; the change may or may not have happened")]
    Ambiguous,
    /// Nothing changed. Try again later.
    #[error("the coordinator is unavailable: {reason}")]
    Unavailable {
        /// For the operator.
        reason: Reason,
    },
    /// The watch fell behind, or began at a revision that is no longer kept. Read the range again,
    /// then watch from its revision.
    #[error("the changes since that revision are no longer kept; read the range again")]
    Compacted,
    /// The session has ended and its keys are removed. Others may own the resource that it
    /// protected.
    #[error("the session has ended")]
    SessionEnded,
    /// The store's file is damaged. Restore it.
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
    /// Its file has no room: the disk is full, or etcd's quota is used up. Calls succeed again when
    /// there is room.
    #[must_use]
    pub const fn full(text: String) -> Self {
        Self { text, is_full: true }
    }

    /// Whether its file has no room, so that calls succeed again when there is.
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
    /// Whether the call would succeed with room on the disk of the coordinator's file.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Unavailable { reason } if reason.is_full())
    }
}

/// A stream of changes under a prefix.
#[async_trait]
pub trait Watch: Send {
    /// The next change. Cancel safe. Once a change of a transaction was returned, its others under
    /// the prefix are returned without waiting.
    ///
    /// # Errors
    /// [`Error::Compacted`] if changes were missed. [`Error::Unavailable`] if the store cannot be
    /// reached; nothing is missed when this is called again.
    async fn next(&mut self) -> Result<Event, Error>;
}

/// The interface of the coordinator. Calls are linearizable, and a committed transaction is
/// durable.
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

    /// If all conditions of `when` hold, applies all changes of `then`, atomically and durably. At
    /// most 128 conditions and 128 changes.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] when it may have happened, [`Error::Unavailable`] when it has not.
    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error>;

    /// Watches changes of keys under a prefix, after revision `after` and without gaps.
    ///
    /// # Errors
    /// [`Error::Compacted`] if `after` is too old.
    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error>;

    /// Opens a session. It ends if it is not kept alive for `ttl`.
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
