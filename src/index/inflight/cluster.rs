//! The running requests of all processes of a cluster.
//!
//! A mark of the cluster stands for a mark of each process. It is kept here under a number. Those
//! processes are asked that have a session, or a write under way (ADR 0057). One of them that does
//! not answer keeps everything from being freed.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::calls::Asked;
use super::calls::EndWatch;
use super::calls::IsRunning;
use super::calls::Mark;
use super::calls::Marked;
use super::calls::Oldest;
use super::calls::Outcome;
use super::calls::WatchCopies;
use super::calls::Written;
use super::local::LocalRequests;
use crate::env::Tasks;
use crate::index::api::CopyWatchId;
use crate::index::api::Error;
use crate::index::api::HoldId;
use crate::index::api::OldestRead;
use crate::index::api::RequestMark;
use crate::index::api::Running;
use crate::index::api::RunningRequests;
use crate::rpc::Bounds;
use crate::rpc::Method;
use crate::rpc::NodeIdentity;
use crate::rpc::RemoteNode;
use crate::types::ExtentId;

/// How long a process may take for an answer.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(5), answer_bytes_max: 1 << 20 };
/// A process that does not answer for so long is named in the log, again and again.
const SILENCE_TOLD: Duration = Duration::from_secs(30);
/// Marks that are kept. For a forgotten one a later one is taken: more requests are waited for.
const MARKS_MAX: usize = 4096;

/// The processes whose requests count.
#[async_trait]
pub trait Processes: Send + Sync + Debug {
    /// All of them, this one too. One that is added later begins with a look-up after this call.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] if nobody knows now.
    async fn all(&self) -> Result<Vec<NodeIdentity>, Error>;

    /// Exactly those that have a session, after the coordinator was asked, and a number that
    /// changes when a session begins. The same answer twice means that no process has come or gone
    /// in between.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] if nobody knows now, or a write is under way of a process without a
    /// session.
    async fn settled(&self) -> Result<(BTreeSet<NodeIdentity>, u64), Error>;

    /// The way to one of them; `None` if it is not known.
    fn peer(&self, process: NodeIdentity) -> Option<Arc<RemoteNode>>;
}

/// Something of each process.
type Each<T> = BTreeMap<NodeIdentity, T>;

/// The requests of all processes.
#[derive(Debug)]
pub struct ClusterRequests {
    /// This process.
    here: NodeIdentity,
    own: LocalRequests,
    processes: Arc<dyn Processes>,
    tasks: Tasks,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The number of the next mark, and of the next watch.
    next: u64,
    marks: BTreeMap<u64, Each<RequestMark>>,
    watches: BTreeMap<u64, Watched>,
    /// Everything that was noted before these marks has ended.
    ended: Each<RequestMark>,
    /// Since when a process has not answered, or since that was told.
    silent: Each<Duration>,
}

/// A watch of copies in all processes.
#[derive(Clone, Debug)]
struct Watched {
    each: Each<CopyWatchId>,
    /// [`Processes::settled`] before it began.
    since: (BTreeSet<NodeIdentity>, u64),
}

impl Known {
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}

/// The mark of a question, and the same question with another mark.
fn with_mark(asked: &Running, mark: RequestMark) -> Running {
    match asked {
        Running::Read { extents, .. } => Running::Read { before: mark, extents: extents.clone() },
        Running::Layer { blob, .. } => Running::Layer { before: mark, blob: blob.clone() },
        Running::Change { .. } => Running::Change { before: mark },
        Running::Commit { .. } => Running::Commit { before: mark },
        Running::CopyLookUp { .. } => Running::CopyLookUp { before: mark },
        Running::Copy { .. } => asked.clone(),
    }
}

/// Whether everything that is asked about ended long ago.
fn has_ended(asked: &Running, mark: RequestMark, ended: RequestMark) -> bool {
    match asked {
        Running::Read { .. } | Running::Layer { .. } => mark.reads <= ended.reads,
        Running::Change { .. } | Running::Commit { .. } => mark.changes <= ended.changes,
        Running::CopyLookUp { .. } => mark.copies <= ended.copies,
        Running::Copy { .. } => false,
    }
}

impl ClusterRequests {
    /// The requests of this process, which are `own`, and of the others.
    #[must_use]
    pub fn shared(
        here: NodeIdentity,
        own: LocalRequests,
        processes: Arc<dyn Processes>,
        tasks: Tasks,
    ) -> Arc<dyn RunningRequests> {
        Arc::new(Self { here, own, processes, tasks, known: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks another process.
    async fn call<M, C, A>(&self, process: NodeIdentity, about: C) -> Result<A, Error>
    where
        M: Method<Call = Asked<C>, Answer = Outcome<A>>,
        C: Send + Sync,
    {
        let call = Asked { to: process.incarnation, about };
        let peer = self.processes.peer(process);
        let unknown = || Error::NoAnswer(format!("{process} is not known"));
        let answered = peer.ok_or_else(unknown)?.call::<M>(&call, Vec::new(), BOUNDS).await;
        self.note_silence(process, answered.is_err());
        let failed = |error| Error::NoAnswer(format!("{process} does not answer: {error}"));
        answered.map_err(failed)?.0
    }

    /// Says it when a process that has a session does not answer for long: nothing is freed.
    fn note_silence(&self, process: NodeIdentity, is_silent: bool) {
        let now = self.own.now();
        let mut known = self.lock();
        if !is_silent {
            known.silent.remove(&process);
            return;
        }
        let since = known.silent.entry(process).or_insert(now);
        if now.saturating_sub(*since) >= SILENCE_TOLD {
            *since = now;
            tracing::warn!(
                %process,
                "a process has a session and cannot be asked about its requests: no space is freed \
                 until it answers or ends; can this node reach its --node-listen?"
            );
        }
    }

    async fn marked(&self, process: NodeIdentity) -> Result<(NodeIdentity, Marked), Error> {
        if process == self.here {
            let (mark, ended) = self.own.marks();
            return Ok((process, Marked { mark, ended }));
        }
        Ok((process, self.call::<Mark, _, _>(process, ()).await?))
    }

    /// Whether such a request runs in a process that had this mark.
    async fn runs_in(
        &self,
        asked: &Running,
        (process, mark): (NodeIdentity, RequestMark),
    ) -> Result<bool, Error> {
        let ended = self.lock().ended.get(&process).copied();
        if ended.is_some_and(|ended| has_ended(asked, mark, ended)) {
            return Ok(false);
        }
        let asked = with_mark(asked, mark);
        if process == self.here {
            return self.own.is_running(asked).await;
        }
        match self.call::<IsRunning, _, _>(process, asked).await {
            Ok(answer) => Ok(answer),
            // Its requests ended with its session.
            Err(_) if !self.processes.all().await?.contains(&process) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn end_watches(&self, watches: Each<CopyWatchId>) {
        for (process, watch) in watches {
            if process == self.here {
                self.own.end_watch(watch);
            } else if let Some(peer) = self.processes.peer(process) {
                let call = Asked { to: process.incarnation, about: watch };
                drop(self.tasks.spawn("end a watch of copies", async move {
                    // If it does not arrive, the process keeps some ids until it ends.
                    drop(peer.call::<EndWatch>(&call, Vec::new(), BOUNDS).await);
                }));
            }
        }
    }

    /// Whether a copy has named the extent since a watch began, as far as that can be excluded.
    async fn was_copied(&self, since: CopyWatchId, extent: ExtentId) -> Result<bool, Error> {
        let Some(watched) = self.lock().watches.get(&since.0).cloned() else { return Ok(true) };
        for (process, since) in watched.each {
            let asked = Running::Copy { since, extent };
            let answer = if process == self.here {
                self.own.is_running(asked).await
            } else {
                self.call::<IsRunning, _, _>(process, asked).await
            };
            if answer? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl RunningRequests for ClusterRequests {
    async fn mark(&self) -> Result<RequestMark, Error> {
        let all = self.processes.all().await?;
        let marked = try_join_all(all.into_iter().map(|process| self.marked(process))).await?;
        let mut known = self.lock();
        let number = known.number();
        let marks = marked.iter().map(|(process, marked)| (*process, marked.mark)).collect();
        known.marks.insert(number, marks);
        known.ended = marked.iter().map(|(process, marked)| (*process, marked.ended)).collect();
        if known.marks.len() > MARKS_MAX {
            known.marks.pop_first();
        }
        Ok(RequestMark { reads: number, changes: number, copies: number })
    }

    async fn is_running(&self, asked: Running) -> Result<bool, Error> {
        let before = match &asked {
            Running::Copy { since, extent } => return self.was_copied(*since, *extent).await,
            Running::Read { before, .. } | Running::Layer { before, .. } => before.reads,
            Running::Change { before } | Running::Commit { before } => before.changes,
            Running::CopyLookUp { before } => before.copies,
        };
        let marks = self.lock().marks.range(before..).next().map(|(_, marks)| marks.clone());
        // A mark that was not made here.
        let Some(marks) = marks else { return Ok(true) };
        for marked in marks {
            if self.runs_in(&asked, marked).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn written_extents(&self) -> Result<BTreeSet<ExtentId>, Error> {
        let mut written = BTreeSet::new();
        for process in self.processes.all().await? {
            written.extend(if process == self.here {
                self.own.written_extents().await?
            } else {
                self.call::<Written, _, _>(process, ()).await?
            });
        }
        Ok(written)
    }

    async fn oldest_read(&self) -> Result<Option<OldestRead>, Error> {
        let mut oldest: Option<OldestRead> = None;
        for process in self.processes.all().await? {
            let read = if process == self.here {
                self.own.oldest_read().await?
            } else {
                self.call::<Oldest, _, _>(process, ()).await?
            };
            let age = |read: &Option<OldestRead>| read.as_ref().map(|read| read.age);
            if age(&read) > age(&oldest) {
                oldest = read;
            }
        }
        Ok(oldest)
    }

    async fn watch_copies(&self) -> Result<CopyWatchId, Error> {
        let (mut watches, since) = (Each::new(), self.processes.settled().await?);
        for process in since.0.iter().copied() {
            let watch = if process == self.here {
                self.own.watch_copies().await
            } else {
                self.call::<WatchCopies, _, _>(process, ()).await
            };
            match watch {
                Ok(watch) => drop(watches.insert(process, watch)),
                Err(error) => {
                    self.end_watches(watches);
                    return Err(error);
                }
            }
        }
        let mut known = self.lock();
        let number = known.number();
        known.watches.insert(number, Watched { each: watches, since });
        Ok(CopyWatchId(number))
    }

    async fn has_seen_all(&self, watch: CopyWatchId) -> Result<bool, Error> {
        let watched = self.lock().watches.get(&watch.0).cloned();
        let Some(watched) = watched else { return Ok(false) };
        Ok(self.processes.settled().await? == watched.since)
    }

    fn end_watch(&self, watch: CopyWatchId) {
        let watched = self.lock().watches.remove(&watch.0);
        self.end_watches(watched.map(|watched| watched.each).unwrap_or_default());
    }

    /// Noted in this process, whom all others ask.
    async fn hold(&self, what: String) -> Result<HoldId, Error> {
        self.own.hold(what).await
    }

    fn end_hold(&self, hold: HoldId) {
        self.own.end_hold(hold);
    }
}
