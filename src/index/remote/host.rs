//! The partitions of a cluster, as a front end asks them, wherever they are served.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::accounts::ChangedAccounts;
use super::accounts::ChangesTo;
use super::accounts::account_of;
use super::calls;
use super::calls::AccountsAfter;
use super::calls::Answer;
use super::calls::FrontEndsOf;
use super::calls::ReadCall;
use super::calls::Shared;
use super::calls::WriteCall;
use super::joined::JoinedReads;
use super::joined::Question;
use super::served::ServedIndex;
use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::IndexHost;
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

/// How long a request looks for the process that serves the index. A takeover takes seconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// For how long a read is asked again although it got an answer: that there is none now.
const YOUNG: Duration = Duration::from_secs(2);
/// The pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// How long one call may take. A write may wait in the queue of its partition.
const CALL_TIME: Duration = Duration::from_secs(30);
/// How long a call waits for changes of accounts.
const CHANGES_TIME: Duration = Duration::from_secs(10);
/// The most bytes of an answer that is expected to be small. Most are so: then the call takes the
/// connection of small calls.
const SMALL_ANSWER: u32 = 32 << 10;
/// The same of an answer to a write.
const WRITE_ANSWER: u32 = 8 << 10;
/// The most bytes of the row of a container or an account, and of a list of changed accounts.
const ROW_ANSWER: u32 = 256 << 10;
/// The most bytes of any answer.
const ANSWER_MAX: u32 = 16 << 20;

/// Where the index is served.
#[derive(Clone, Debug)]
pub enum ServedAt {
    /// By another process.
    There(Arc<RemoteNode>),
    /// By nobody, as far as this process knows, or by this one soon.
    Nowhere,
}

/// Knows which process serves the index.
#[async_trait]
pub trait IndexPlace: Send + Sync + Debug {
    /// Where it is served now.
    fn now(&self) -> ServedAt;

    /// Waits until it is served elsewhere than at a place from [`Self::now`]. Cancel safe.
    async fn moved_from(&self, place: &ServedAt);
}

/// The index of a cluster. Requests wait while nobody serves it.
#[derive(Debug)]
pub struct ClusterIndex {
    served: Arc<ServedIndex>,
    place: Arc<dyn IndexPlace>,
    clock: Arc<dyn Clock>,
    joined: JoinedReads,
    /// Until when a request will probably have an answer, in milliseconds of the monotonic clock.
    reached_until: AtomicU64,
}

/// Why one attempt has no answer.
enum Unanswered {
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
        served: Arc<ServedIndex>,
        place: Arc<dyn IndexPlace>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (joined, reached_until) = (JoinedReads::default(), AtomicU64::new(0));
        Self { served, place, clock, joined, reached_until }
    }

    /// Whether this process serves it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.served.host().is_some()
    }

    /// As [`ServedIndex::copy_news`], of this process.
    pub async fn copy_news(&self) -> Vec<Uuid> {
        self.served.copy_news().await
    }

    /// Whether a request that waits for the index now will probably have an answer.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let until = Duration::from_millis(self.reached_until.load(Ordering::Relaxed));
        self.is_here() || self.clock.monotonic() < until
    }

    /// The processes whose requests count for reclaim.
    ///
    /// # Errors
    /// [`Error::Overloaded`] while no process serves the index.
    pub async fn front_ends(
        &self,
        here: &dyn super::FrontEnds,
    ) -> Result<Vec<NodeIdentity>, Error> {
        let mut attempts = Attempts::new(&*self.clock);
        loop {
            if self.served.host().is_some() {
                return Ok(self.served.front_ends(here));
            }
            if self.served.has_ended() {
                return Err(Error::Overloaded);
            }
            match self.call::<FrontEndsOf, _>(&(), SMALL_ANSWER, CALL_TIME).await {
                Ok(Answer::Done(all)) => return Ok(all),
                Ok(_) => attempts.again(NOBODY).await?,
                Err(unanswered) => attempts.after(unanswered).await?,
            }
        }
    }

    /// Waits for changes of accounts by any process: see `AccountChanges::after`.
    ///
    /// # Errors
    /// [`Error::NoAnswer`].
    pub async fn accounts_after(&self, seen: Option<ChangesTo>) -> Result<ChangedAccounts, Error> {
        if self.served.host().is_some() {
            return Ok(self.served.accounts.after(seen).await);
        }
        let failed = |why: String| Error::NoAnswer(why);
        match self.call::<AccountsAfter, _>(&seen, ROW_ANSWER, CHANGES_TIME).await {
            Ok(Answer::Done(changed)) => {
                let until = (self.clock.monotonic() + PATIENCE).as_millis();
                self.reached_until
                    .store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
                Ok(changed)
            }
            Ok(_) => Err(failed(NOBODY.to_owned())),
            Err(Unanswered::Again(why) | Unanswered::Never(why) | Unanswered::Unknown(why)) => {
                Err(failed(why))
            }
        }
    }

    /// Makes a call to the process that serves the index, once.
    async fn call<M, T>(
        &self,
        call: &M::Call,
        answer_bytes_max: u32,
        time: Duration,
    ) -> Result<Answer<T>, Unanswered>
    where
        M: Method<Answer = Answer<T>>,
        M::Call: Sync,
    {
        let place = self.place.now();
        let ServedAt::There(peer) = &place else {
            return Err(Unanswered::Again(NOBODY.to_owned()));
        };
        let bounds = Bounds { time, answer_bytes_max };
        tokio::select! {
            biased;
            answer = peer.call::<M>(call, Vec::new(), bounds) => {
                answer.map(|(answer, _)| answer).map_err(Unanswered::from)
            }
            // A process that stands still does not answer. What it was told may happen later.
            () = self.place.moved_from(&place) => {
                Err(Unanswered::Unknown("another process serves the index now".to_owned()))
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

    /// Whether the first one has begun just now.
    fn are_young(&self) -> bool {
        self.clock.monotonic() < self.began + YOUNG
    }

    /// Pauses before the next attempt, unless the time for them is over.
    ///
    /// # Errors
    /// [`Error::Overloaded`]: nothing was done.
    async fn again(&mut self, why: &str) -> Result<(), Error> {
        if self.clock.monotonic() >= self.began + PATIENCE {
            tracing::warn!(why, "a request found nobody that serves the index");
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
const NOBODY: &str = "no process serves the index";

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

/// The most bytes of the answer to a write.
fn answer_bytes(write: &Write) -> u32 {
    let is_row = account_of(write).is_some() || matches!(write, Write::CloseContainer(_));
    if is_row { ROW_ANSWER } else { WRITE_ANSWER }
}

#[async_trait]
impl IndexHost for ClusterIndex {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        if let Some(host) = self.served.host() {
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
        match self.served.host() {
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
    /// Reads from a partition of the process that serves it.
    async fn read_there(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        let call = ReadCall { target, read: Shared(Arc::new(read)) };
        let (mut attempts, mut bytes) = (Attempts::new(&*self.clock), SMALL_ANSWER);
        loop {
            // This process may have begun to serve it.
            if let Some(host) = self.served.host() {
                return host.read_kept(target, &call.read.0).await;
            }
            match self.call::<calls::Read, _>(&call, bytes, CALL_TIME).await {
                Ok(Answer::Done(reply)) => return Ok(reply),
                // The process may just be stopping.
                Ok(Answer::Failed(Error::NoAnswer(why))) if attempts.are_young() => {
                    attempts.again(&why).await?;
                }
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(Answer::TooLarge(needed)) => bytes = larger(bytes, needed)?,
                Ok(Answer::NotHere) => attempts.again(NOBODY).await?,
                Err(unanswered) => attempts.after(unanswered).await?,
            }
        }
    }

    async fn write_as(
        &self,
        target: Target,
        id: Option<WriteId>,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        let mut bytes = answer_bytes(&write);
        // A repetition gets the same answer again.
        let is_repeatable = id.map_or(write.is_repeatable(), |id| id.is_repeated);
        let call = WriteCall { target, id, write: Shared(write) };
        let mut attempts = Attempts::new(&*self.clock);
        loop {
            if let Some(host) = self.served.host() {
                return self.served.write(&**host, (target, id), call.write.0).await;
            }
            match self.call::<calls::Write, _>(&call, bytes, CALL_TIME).await {
                Ok(Answer::Done(reply)) => return Ok(reply),
                Ok(Answer::Failed(error)) => return Err(error),
                Ok(Answer::NotHere) => attempts.again(NOBODY).await?,
                Ok(Answer::TooLarge(needed)) if is_repeatable => {
                    bytes = larger(bytes, needed)?;
                }
                // It was done. A repetition takes the answer.
                Ok(Answer::TooLarge(_)) => return Err(too_large()),
                Err(unanswered @ Unanswered::Unknown(_)) if call.write.0.is_repeatable() => {
                    attempts.after(unanswered).await?;
                }
                Err(Unanswered::Unknown(why)) => {
                    return Err(Error::NoAnswer(format!("it may have happened: {why}")));
                }
                Err(unanswered) => attempts.after(unanswered).await?,
            }
        }
    }
}
