//! The partitions of a cluster, as a front end asks them, wherever they are served.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::accounts::ChangedAccounts;
use super::accounts::ChangesTo;
use super::accounts::account_of;
use super::calls;
use super::calls::AccountsAfter;
use super::calls::Answer;
use super::calls::IndexClientsOf;
use super::calls::ReadCall;
use super::calls::Shared;
use super::calls::WriteCall;
use super::joined::JoinedReads;
use super::joined::Question;
use super::served::ServedIndex;
use crate::coordinator::hosts::HostClaim;
use crate::coordinator::hosts::HostClaims;
use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::PartitionControl;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::rpc::Bounds;
use crate::rpc::CallError;
use crate::rpc::Method;
use crate::rpc::NodeIdentity;
use crate::rpc::Reason;
use crate::rpc::Refusal;
use crate::rpc::RemoteNode;
use crate::types::ExtentId;
use crate::types::NodeId;

/// How long it is asked again which requests count, while a process does not answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// For how long a read is asked again although it got an answer: that there is none now.
const YOUNG: Duration = Duration::from_secs(2);
/// The pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// How long one call may take. A write may wait in the queue of its partition.
pub(super) const CALL_TIME: Duration = Duration::from_secs(30);
/// How long a call waits for changes of accounts.
const CHANGES_TIME: Duration = Duration::from_secs(10);
/// The most bytes of an answer that is expected to be small. Most are so: then the call takes the
/// connection of small calls.
pub(super) const SMALL_ANSWER: u32 = 32 << 10;
/// The same of an answer to a write.
const WRITE_ANSWER: u32 = 8 << 10;
/// The most bytes of the row of a container or an account, and of a list of changed accounts.
const ROW_ANSWER: u32 = 256 << 10;
/// The most bytes of any answer.
pub(super) const ANSWER_MAX: u32 = 16 << 20;

/// Knows the way to other processes.
pub trait Peers: Send + Sync + Debug {
    /// The way to a node; `None` if it is this one, or not known.
    fn peer(&self, node: NodeId) -> Option<Arc<RemoteNode>>;

    /// The name of a node, this one too; `None` if it is not known.
    fn name(&self, node: NodeId) -> Option<String>;
}

/// The index of a cluster. It answers [`Error::WrongPartition`] when a partition may be served
/// elsewhere: then the caller, which knows the map, asks again.
#[derive(Debug)]
pub struct ClusterIndex {
    here: NodeId,
    served: Arc<ServedIndex>,
    claims: Arc<HostClaims>,
    peers: Arc<dyn Peers>,
    clock: Arc<dyn Clock>,
    joined: JoinedReads,
    /// Until when a request will probably have an answer, in milliseconds of the monotonic clock.
    reached_until: AtomicU64,
}

/// Why one attempt has no answer.
pub(super) enum Unanswered {
    /// Nothing was done. The next attempt may succeed.
    Again(String),
    /// Nothing was done, and the next attempt fails too.
    Never(String),
    /// It may have been done.
    Unknown(String),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        let why = error.to_string();
        match error {
            CallError::Unknown(_) => Self::Unknown(why),
            CallError::NotDone(
                Reason::TooLarge | Reason::Malformed | Reason::Refused(Refusal::Malformed),
            ) => Self::Never(why),
            CallError::NotDone(_) => Self::Again(why),
        }
    }
}

impl ClusterIndex {
    /// The index, as this process reaches it.
    #[must_use]
    pub fn new(
        (here, served): (NodeId, Arc<ServedIndex>),
        (claims, peers): (Arc<HostClaims>, Arc<dyn Peers>),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (joined, reached_until) = (JoinedReads::default(), AtomicU64::new(0));
        Self { here, served, claims, peers, clock, joined, reached_until }
    }

    /// The processes that serve partitions, as far as this one knows.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostClaim> {
        self.claims.all()
    }

    /// Waits until other processes than these serve partitions. Cancel safe.
    pub async fn hosts_changed_from(&self, seen: &[HostClaim]) {
        self.claims.changed_from(seen).await;
    }

    /// Whether a request that waits for the index now will probably have an answer.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let until = Duration::from_millis(self.reached_until.load(Ordering::Relaxed));
        self.clock.monotonic() < until
    }

    /// The processes whose requests count for reclaim: those that any process which serves
    /// partitions lets in.
    ///
    /// # Errors
    /// [`Error::Overloaded`] while one of them does not answer.
    pub async fn index_clients(
        &self,
        with_session: &dyn super::IndexClients,
    ) -> Result<Vec<NodeIdentity>, Error> {
        let mut attempts = Attempts::new(&*self.clock);
        loop {
            match self.index_clients_once(with_session).await {
                Ok(all) => return Ok(all),
                Err(unanswered) => attempts.after(unanswered).await?,
            }
        }
    }

    async fn index_clients_once(
        &self,
        with_session: &dyn super::IndexClients,
    ) -> Result<Vec<NodeIdentity>, Unanswered> {
        let mut hosts = self.hosts();
        if hosts.is_empty() {
            return Err(Unanswered::Again(NOBODY.to_owned()));
        }
        // What this process sees counts even if it has not heard of its own claim yet.
        hosts.retain(|host| host.holder.node != self.here);
        let ask = |host: &HostClaim| {
            let node = host.holder.node;
            async move { self.call::<IndexClientsOf, _>(node, &(), SMALL_ANSWER, CALL_TIME).await }
        };
        if hosts.is_empty() && self.served.host().is_none() {
            // It is the only one, and begins or stops to serve.
            return Err(Unanswered::Again(NOBODY.to_owned()));
        }
        let own = self.served.index_clients(with_session);
        let mut all: BTreeSet<NodeIdentity> = own.into_iter().collect();
        for answer in join_all(hosts.iter().map(ask)).await {
            match answer? {
                Answer::Done(some) => all.extend(some),
                Answer::Failed(_) | Answer::NotHere | Answer::TooLarge(_) => {
                    return Err(Unanswered::Again(NOBODY.to_owned()));
                }
            }
        }
        Ok(all.into_iter().collect())
    }

    /// Waits for changes of accounts by the partitions of a process: see `AccountChanges::after`.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    pub async fn accounts_after(
        &self,
        host: HostClaim,
        seen: Option<ChangesTo>,
    ) -> Result<ChangedAccounts, Error> {
        let node = host.holder.node;
        let changed = if node == self.here {
            Ok(Answer::Done(self.served.accounts.after_or_soon(&*self.clock, seen).await))
        } else {
            self.call::<AccountsAfter, _>(node, &seen, ROW_ANSWER, CHANGES_TIME).await
        };
        match changed {
            Ok(Answer::Done(changed)) => {
                self.note_reached();
                Ok(changed)
            }
            Ok(_) => Err(Error::NoAnswer(NOBODY.to_owned())),
            Err(Unanswered::Again(why) | Unanswered::Never(why) | Unanswered::Unknown(why)) => {
                Err(Error::NoAnswer(why))
            }
        }
    }

    fn note_reached(&self) {
        let until = (self.clock.monotonic() + PATIENCE).as_millis();
        self.reached_until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Shows and changes the partitions of this process, if it is that of a node.
    pub(super) fn own_control(&self, node: NodeId) -> Option<Arc<dyn PartitionControl>> {
        self.served.control().filter(|_| node == self.here).cloned()
    }

    /// The name of a node, if it is known.
    pub(super) fn node_name(&self, node: NodeId) -> Option<String> {
        self.peers.name(node)
    }

    /// The clock.
    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The partitions of this process, if it is the one of a target and serves them.
    fn here_for(&self, target: Target) -> Option<&Arc<dyn IndexHost>> {
        self.served.host().filter(|_| target.host.node() == self.here)
    }

    /// Makes a call to another process that serves partitions, once.
    pub(super) async fn call<M, T>(
        &self,
        node: NodeId,
        call: &M::Call,
        answer_bytes_max: u32,
        time: Duration,
    ) -> Result<Answer<T>, Unanswered>
    where
        M: Method<Answer = Answer<T>>,
        M::Call: Sync,
    {
        let (Some(claim), Some(peer)) = (self.claims.get(node), self.peers.peer(node)) else {
            return Err(Unanswered::Again(NOBODY.to_owned()));
        };
        let bounds = Bounds { time, answer_bytes_max };
        tokio::select! {
            biased;
            answer = peer.call::<M>(call, Vec::new(), bounds) => {
                answer.map(|(answer, _)| answer).map_err(Unanswered::from)
            }
            // A process that stands still does not answer. What it was told may happen later.
            () = self.claims.ended(claim) => {
                Err(Unanswered::Unknown("the process serves no partitions any more".to_owned()))
            }
        }
    }
}

/// The attempts of one request.
struct Attempts<'a> {
    clock: &'a dyn Clock,
    began: Duration,
}

impl<'a> Attempts<'a> {
    fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, began: clock.monotonic() }
    }

    /// Pauses before the next attempt, unless the time for them is over.
    ///
    /// # Errors
    /// [`Error::Overloaded`]: nothing was done.
    async fn again(&mut self, why: &str) -> Result<(), Error> {
        if self.clock.monotonic() >= self.began + PATIENCE {
            tracing::warn!(why, "it is not known whose requests count");
            return Err(Error::Overloaded);
        }
        self.clock.sleep(PAUSE).await;
        Ok(())
    }

    /// As [`Self::again`], after an attempt that may be repeated.
    async fn after(&mut self, unanswered: Unanswered) -> Result<(), Error> {
        match unanswered {
            Unanswered::Again(why) => self.again(&why).await,
            Unanswered::Unknown(why) => self.again(&why).await.map_err(|_| Error::NoAnswer(why)),
            Unanswered::Never(why) => {
                tracing::error!(why, "the process that serves the index takes no such call");
                Err(Error::Overloaded)
            }
        }
    }
}

/// Why it was not asked.
pub(super) const NOBODY: &str = "the process serves no partitions";

/// How many bytes the next attempt takes, since the answer had more than `bytes`. It may have
/// grown by then.
fn larger(bytes: u32, needed: u32) -> Result<u32, Error> {
    if bytes >= ANSWER_MAX {
        return Err(too_large());
    }
    Ok(needed.saturating_add(needed / 4).clamp(bytes.saturating_mul(2), ANSWER_MAX))
}

/// The error of an answer that is too large for a message.
fn too_large() -> Error {
    Error::NoAnswer("the answer of the index is too large".to_owned())
}

/// The most bytes of the answer to a read, as far as that is known before.
const fn expected_bytes(read: &Read) -> u32 {
    // A page of references has megabytes, and costs as much to find.
    if matches!(read, Read::References(_)) { ANSWER_MAX } else { SMALL_ANSWER }
}

/// The most bytes of the answer to a write.
fn answer_bytes(write: &Write) -> u32 {
    let is_row = account_of(write).is_some() || matches!(write, Write::CloseContainer(_));
    if is_row { ROW_ANSWER } else { WRITE_ANSWER }
}

/// The error of a request that another process may answer by now. It changed nothing, or may be
/// repeated.
fn elsewhere(unanswered: Unanswered) -> Error {
    match unanswered {
        Unanswered::Again(why) | Unanswered::Unknown(why) => {
            tracing::debug!(why, "a partition is asked again, wherever it is");
            Error::WrongPartition
        }
        Unanswered::Never(why) => {
            tracing::error!(why, "the process that serves the partition takes no such call");
            Error::Overloaded
        }
    }
}

#[async_trait]
impl IndexHost for ClusterIndex {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        if let Some(host) = self.here_for(target) {
            return host.read(target, read).await;
        }
        match Question::of(target, &read) {
            Some(question) => {
                let ask = || self.read_there(target, read);
                self.joined.read(question, &*self.clock, ask).await
            }
            None => self.read_there(target, read).await,
        }
    }

    async fn read_kept(&self, target: Target, read: &Read) -> Result<ReadReply, Error> {
        match self.here_for(target) {
            Some(host) => host.read_kept(target, read).await,
            None => self.read(target, read.clone()).await,
        }
    }

    async fn write_shared(&self, target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        self.write_as(target, None, write).await
    }

    /// The caller, which may have to ask another partition, sends it again if the outcome is
    /// unknown.
    async fn write_once(
        &self,
        target: Target,
        id: WriteId,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        self.write_as(target, Some(id), write).await
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        match self.served.host() {
            Some(host) => host.owned_extents().await,
            None => Vec::new(),
        }
    }
}

impl ClusterIndex {
    /// Reads from a partition of another process.
    async fn read_there(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        let call = ReadCall { target, read: Shared(Arc::new(read)) };
        let (began, mut bytes) = (self.clock.monotonic(), expected_bytes(&call.read.0));
        let node = target.host.node();
        loop {
            match self.call::<calls::Read, _>(node, &call, bytes, CALL_TIME).await {
                Ok(Answer::Done(reply)) => return Ok(reply),
                // The process may just be stopping.
                Ok(Answer::Failed(Error::NoAnswer(_)))
                    if self.clock.monotonic() < began + YOUNG =>
                {
                    self.clock.sleep(PAUSE).await;
                }
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(Answer::TooLarge(needed)) => bytes = larger(bytes, needed)?,
                Ok(Answer::NotHere) => return Err(elsewhere(Unanswered::Again(NOBODY.into()))),
                // A question may be asked twice.
                Err(unanswered) => return Err(elsewhere(unanswered)),
            }
        }
    }

    async fn write_as(
        &self,
        target: Target,
        id: Option<WriteId>,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        if let Some(host) = self.here_for(target) {
            return self.served.write(&**host, (target, id), write).await;
        }
        let (node, mut bytes) = (target.host.node(), answer_bytes(&write));
        // A repetition gets the same answer again.
        let is_repeatable = id.map_or(write.is_repeatable(), |id| id.is_repeated);
        let call = WriteCall { target, id, write: Shared(write) };
        loop {
            match self.call::<calls::Write, _>(node, &call, bytes, CALL_TIME).await {
                Ok(Answer::Done(reply)) => return Ok(reply),
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(Answer::NotHere) => return Err(elsewhere(Unanswered::Again(NOBODY.into()))),
                Ok(Answer::TooLarge(needed)) if is_repeatable => {
                    bytes = larger(bytes, needed)?;
                }
                // It was done. A repetition takes the answer.
                Ok(Answer::TooLarge(_)) => return Err(too_large()),
                Err(Unanswered::Unknown(why)) if !call.write.0.is_repeatable() => {
                    return Err(Error::NoAnswer(format!("it may have happened: {why}")));
                }
                Err(unanswered) => return Err(elsewhere(unanswered)),
            }
        }
    }
}
