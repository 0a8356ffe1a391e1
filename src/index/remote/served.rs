//! The index that this process serves.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;

use super::accounts::AccountChanges;
use super::accounts::account_of;
use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::PartitionControl;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::api::WriterSessions;
use crate::rpc::NodeIdentity;

/// The pause before it is looked again whether writes have ended.
const END_PAUSE: Duration = Duration::from_millis(5);

/// The processes that ask the index and have a session, this one too. A process whose session ends
/// has no running requests when it opens the next one.
#[async_trait]
pub trait IndexClients: Send + Sync + Debug {
    /// All of them.
    fn all(&self) -> Vec<NodeIdentity>;

    /// Whether this is one of them.
    fn has(&self, process: NodeIdentity) -> bool;

    /// Learns which sessions there are now.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: it could not, or this process has no session itself.
    async fn refresh(&self) -> Result<(), Error>;
}

/// The index of this process, from when it serves it until it stops.
#[derive(Debug)]
pub struct ServedIndex {
    host: OnceLock<Arc<dyn IndexHost>>,
    control: OnceLock<Arc<dyn PartitionControl>>,
    /// It is served no more.
    has_ended: AtomicBool,
    /// How many writes of other processes are under way.
    writing: Mutex<BTreeMap<NodeIdentity, usize>>,
    /// Accounts that it has changed.
    pub accounts: AccountChanges,
}

impl ServedIndex {
    /// The index that a process does not serve yet.
    #[must_use]
    pub fn new(process: NodeIdentity) -> Self {
        Self {
            host: OnceLock::new(),
            control: OnceLock::new(),
            has_ended: AtomicBool::new(false),
            writing: Mutex::default(),
            accounts: AccountChanges::new(process),
        }
    }

    /// Serves the partitions of this host from now on.
    ///
    /// # Panics
    /// If the process serves partitions already.
    pub fn serve(&self, host: Arc<dyn IndexHost>) {
        self.host.set(host).expect("a process begins to serve the index once");
    }

    /// Shows and changes partitions from now on when it is asked to.
    pub fn control_through(&self, control: Arc<dyn PartitionControl>) {
        self.control.get_or_init(|| control);
    }

    pub(super) fn control(&self) -> Option<&Arc<dyn PartitionControl>> {
        self.control.get().filter(|_| !self.has_ended())
    }

    /// The partitions; `None` if this process does not serve them.
    #[must_use]
    pub fn host(&self) -> Option<&Arc<dyn IndexHost>> {
        self.host.get().filter(|_| !self.has_ended.load(Ordering::SeqCst))
    }

    /// Whether this process served it and stops.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Begins no more requests: other processes ask the next one that serves. Waits until the
    /// writes of others have ended, but not for longer than `patience`.
    pub async fn end(&self, clock: &dyn Clock, patience: Duration) {
        self.has_ended.store(true, Ordering::SeqCst);
        let until = clock.monotonic() + patience;
        // A write is noted before the host is looked at.
        while !self.lock().is_empty() && clock.monotonic() < until {
            clock.sleep(END_PAUSE).await;
        }
    }

    /// Notes a write of another process before its session is looked at. Until the note is dropped,
    /// the process counts as one whose requests may need anything.
    pub(super) fn writing(&self, process: NodeIdentity) -> Writing<'_> {
        *self.lock().entry(process).or_insert(0) += 1;
        Writing { served: self, process }
    }

    /// The processes whose requests count: those with a session, and those whose session has ended
    /// while a write of theirs is under way here.
    #[must_use]
    pub fn index_clients(&self, with_session: &dyn IndexClients) -> Vec<NodeIdentity> {
        let mut all: BTreeSet<NodeIdentity> = with_session.all().into_iter().collect();
        // After that: a write is noted before its session is looked at.
        all.extend(self.lock().keys());
        all.into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeIdentity, usize>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a partition of `host`. Not cancel safe, as [`IndexHost::write_shared`].
    ///
    /// # Errors
    /// Those of the partition.
    pub(super) async fn write(
        &self,
        host: &dyn IndexHost,
        (target, id): (Target, Option<WriteId>),
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        let account = account_of(&write).cloned();
        let answer = match id {
            Some(id) => host.write_once(target, id, write).await,
            None => host.write_shared(target, write).await,
        };
        if let Some(account) = account {
            self.accounts.note(account);
        }
        answer
    }
}

/// Which processes have ended that write to the index here.
#[derive(Debug)]
pub struct KnownWriters {
    served: Arc<ServedIndex>,
    with_session: Arc<dyn IndexClients>,
}

impl KnownWriters {
    /// Those of the index that this process serves, or will serve.
    #[must_use]
    pub fn new(served: Arc<ServedIndex>, with_session: Arc<dyn IndexClients>) -> Self {
        Self { served, with_session }
    }
}

#[async_trait]
impl WriterSessions for KnownWriters {
    /// Not before this process serves. What the owner before knew is caught up with before a
    /// partition is opened.
    fn has_ended(&self, process: NodeIdentity) -> bool {
        let is_ended = self.served.host().is_some() && !self.with_session.has(process);
        // After that: a write is noted before its session is looked at.
        is_ended && !self.served.lock().contains_key(&process)
    }

    /// A process whose session the last owner has seen end is not let in by this one either.
    async fn catch_up(&self) -> Result<(), Error> {
        self.with_session.refresh().await
    }
}

/// A write of another process that is under way.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    served: &'a ServedIndex,
    process: NodeIdentity,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut writing = self.served.lock();
        if let Some(count) = writing.get_mut(&self.process) {
            *count -= 1;
            if *count == 0 {
                writing.remove(&self.process);
            }
        }
    }
}
