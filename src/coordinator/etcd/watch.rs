//! Watches. A task reads the stream of etcd, opens it again when it breaks, and hands over whole
//! revisions.
//!
//! Older etcds may lose a removal at the very revision up to which they are compacted, without
//! ending the watch (etcd issues 18089 and 19179). So while a watch reads the past, it also reads
//! at the revision before each batch: as long as that succeeds, no compaction is beyond it. Etcd
//! also reads the past for a watch whose reader is slow. That is not covered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::api::Error;
use super::super::api::Event;
use super::super::api::Revision;
use super::super::api::Watch;
use super::client::Client;
use super::client::Repeat;
use super::grpc::Answers;
use super::grpc::CallError;
use super::keys::Keys;
use super::keys::end_of;
use super::meaning::Meaning;
use super::meaning::meaning;
use super::meaning::of_read;
use super::wire;
use super::wire::RangeRequest;
use super::wire::WatchCreate;
use super::wire::WatchRequest;
use super::wire::WatchResponse;

/// Batches that wait for their reader. Further ones wait in etcd.
const BATCHES_MAX: usize = 16;
/// The pause before a stream is opened again. It doubles with each attempt that fails.
const PAUSE: Duration = Duration::from_millis(50);
/// A stream that lasted so long counts as one that worked.
const STABLE: Duration = Duration::from_secs(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

type Batch = Result<Vec<Event>, Error>;

/// A watch. Its task ends when it is dropped.
#[derive(Debug)]
pub(super) struct EtcdWatch {
    ready: VecDeque<Event>,
    batches: mpsc::Receiver<Batch>,
    /// The error after which there is nothing more.
    ended: Option<Error>,
}

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some(error) = &self.ended {
                return Err(error.clone());
            }
            match self.batches.recv().await {
                Some(Ok(events)) => self.ready = events.into(),
                Some(Err(error)) => {
                    if matches!(error, Error::Compacted) {
                        self.ended = Some(error.clone());
                    }
                    return Err(error);
                }
                None => {
                    return Err(Error::Unavailable { reason: "the program is stopping".into() });
                }
            }
        }
    }
}

/// Watches the names under `prefix` after the revision `after`.
///
/// # Errors
/// [`Error::Compacted`] if it is too old, [`Error::Unavailable`].
pub(super) async fn watch(
    client: &Arc<Client>,
    keys: &Keys,
    prefix: &[u8],
    after: Revision,
) -> Result<EtcdWatch, Error> {
    let seen = i64::try_from(after.0).unwrap_or(i64::MAX).min(i64::MAX - 1);
    let (sender, batches) = mpsc::channel(BATCHES_MAX);
    let reader = Reader {
        client: Arc::clone(client),
        keys: keys.clone(),
        prefix: keys.outer(prefix),
        seen,
        held: Vec::new(),
        batches: sender,
    };
    let source = reader.open_in_time().await?;
    let tasks = &client.env().tasks;
    let stopping = tasks.stopping();
    drop(tasks.spawn("etcd watch", async move { reader.run(source, stopping).await }));
    Ok(EtcdWatch { ready: VecDeque::new(), batches, ended: None })
}

/// A stream of etcd.
struct Source {
    answers: Answers<WatchResponse>,
    /// Changes up to this revision come from the past.
    past: i64,
}

/// Why a stream is read no longer.
enum Halt {
    /// To be opened again.
    Broken(Error),
    /// There is nothing more to be had.
    Ended(Error),
    /// Nobody reads.
    Unread,
}

struct Reader {
    client: Arc<Client>,
    keys: Keys,
    prefix: Bytes,
    /// All changes up to this revision were handed over.
    seen: i64,
    /// Changes of one revision, of which more may follow.
    held: Vec<Event>,
    batches: mpsc::Sender<Batch>,
}

impl Reader {
    async fn run(mut self, mut source: Source, stopping: CancellationToken) {
        let unread = self.batches.clone();
        tokio::select! {
            biased;
            () = stopping.cancelled() => {}
            () = unread.closed() => {}
            () = self.follow(&mut source) => {}
        }
    }

    /// Hands changes over until the watch ends.
    async fn follow(&mut self, source: &mut Source) {
        let clock = Arc::clone(&self.client.env().clock);
        let mut pause = PAUSE;
        loop {
            let (before, opened) = (self.seen, clock.monotonic());
            let mut halt = self.read(source).await;
            if self.seen > before || clock.monotonic().saturating_sub(opened) > STABLE {
                pause = PAUSE;
            }
            // Streams open and break and bring nothing: the reader learns of it.
            if let Halt::Broken(error) = &halt
                && pause == PAUSE_MAX
                && self.batches.send(Err(error.clone())).await.is_err()
            {
                return;
            }
            loop {
                let error = match halt {
                    Halt::Unread => return,
                    Halt::Ended(error) => {
                        // If nobody reads, nobody needs it.
                        self.batches.send(Err(error)).await.ok();
                        return;
                    }
                    Halt::Broken(error) => error,
                };
                tracing::debug!(%error, seen = self.seen, "a watch of etcd broke; it is resumed");
                clock.sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                // What was held comes again.
                self.held.clear();
                match self.open_in_time().await {
                    Ok(opened) => {
                        *source = opened;
                        break;
                    }
                    Err(Error::Compacted) => halt = Halt::Ended(Error::Compacted),
                    Err(error) => {
                        // The reader learns of it; meanwhile the watch tries on.
                        if self.batches.send(Err(error.clone())).await.is_err() {
                            return;
                        }
                        halt = Halt::Broken(error);
                    }
                }
            }
        }
    }

    /// Reads one stream as long as it goes.
    async fn read(&mut self, source: &mut Source) -> Halt {
        loop {
            let answer = match source.answers.next().await {
                Ok(Some(answer)) => answer,
                Ok(None) => return Halt::Broken(unavailable("etcd ended a watch")),
                Err(error) => return Halt::Broken(of_read(&error)),
            };
            if let Some(error) = refusal(&answer) {
                return halted(error);
            }
            let (header, is_part) = (answer.header, answer.fragment);
            let revision = self.client.note(header);
            if answer.events.is_empty() && !is_part {
                if self.held.is_empty() && !answer.created {
                    if self.seen < source.past
                        && let Err(error) = self.check_kept(self.seen).await
                    {
                        return halted(error);
                    }
                    // Etcd reports how far a watch is only if it has got all changes up to there.
                    self.seen = self.seen.max(revision);
                }
                continue;
            }
            if self.seen < source.past
                && let Err(error) = self.check_kept(self.seen).await
            {
                return halted(error);
            }
            for event in answer.events {
                if let Err(error) = self.take(event) {
                    return Halt::Broken(error);
                }
            }
            if let Err(halt) = self.hand_over(is_part).await {
                return halt;
            }
        }
    }

    /// Takes one change of an answer.
    fn take(&mut self, event: wire::Event) -> Result<(), Error> {
        let kv = event.kv.unwrap_or_default();
        let value = match event.kind {
            wire::EVENT_PUT => Some(kv.value),
            wire::EVENT_DELETE => None,
            kind => return Err(unavailable(&format!("etcd reports a change of kind {kind}"))),
        };
        let key = self.keys.inner(&kv.key);
        let key = key.ok_or_else(|| unavailable("etcd reports a change of a foreign key"))?;
        let revision = Revision(u64::try_from(kv.mod_revision).unwrap_or(0));
        if kv.mod_revision > self.seen {
            self.held.push(Event { key, value, revision });
        }
        Ok(())
    }

    /// Hands over the changes that are held, without those of a revision of which more may follow.
    async fn hand_over(&mut self, is_part: bool) -> Result<(), Halt> {
        let Some(last) = self.held.last().map(|event| event.revision) else { return Ok(()) };
        let whole = if is_part {
            self.held.partition_point(|event| event.revision < last)
        } else {
            self.held.len()
        };
        let events: Vec<Event> = self.held.drain(..whole).collect();
        let Some(newest) = events.last().map(|event| event.revision) else { return Ok(()) };
        self.batches.send(Ok(events)).await.map_err(|_| Halt::Unread)?;
        self.seen = i64::try_from(newest.0).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Opens a stream, in as many attempts as the timeout of a call permits, and checks that it
    /// misses nothing.
    async fn open_in_time(&self) -> Result<Source, Error> {
        let clock = &self.client.env().clock;
        let source = tokio::select! {
            biased;
            opened = self.attempts() => opened?,
            () = clock.sleep(self.client.call_timeout()) => {
                self.client.link.leave_current();
                return Err(unavailable("etcd opens no watch in time"));
            }
        };
        // A read that the whole etcd answers. The member of the stream may not yet know of a
        // compaction, or of a change.
        self.check_kept(self.seen).await?;
        Ok(source)
    }

    async fn attempts(&self) -> Result<Source, Error> {
        let mut pause = PAUSE;
        loop {
            let error = match self.open().await {
                Ok(source) => return Ok(source),
                Err(error) => error,
            };
            match meaning(&error) {
                Meaning::NotDone | Meaning::Unknown | Meaning::Token => {}
                Meaning::Refused
                | Meaning::Compacted
                | Meaning::Future
                | Meaning::NoLease
                | Meaning::Full
                | Meaning::Corrupt
                | Meaning::TooLarge => return Err(of_read(&error)),
            }
            self.client.env().clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Opens a stream and waits until etcd has begun it.
    async fn open(&self) -> Result<Source, CallError> {
        let create = WatchCreate {
            key: self.prefix.clone(),
            range_end: end_of(&self.prefix),
            start_revision: self.seen + 1,
            progress_notify: true,
            fragment: true,
        };
        let mut answers = self.client.stream(&WatchRequest { create: Some(create) }).await?;
        let lost = || CallError::Lost("etcd ended a watch".to_owned());
        let first = answers.next().await?.ok_or_else(lost)?;
        if first.canceled {
            // Etcd calls a token that it does not know a lack of permission here.
            self.client.forget_token().await;
            return Err(CallError::Lost(format!("etcd refused a watch: {}", first.cancel_reason)));
        }
        Ok(Source { answers, past: self.client.note(first.header) })
    }

    /// Checks that the changes after a revision are kept.
    async fn check_kept(&self, revision: i64) -> Result<(), Error> {
        let read = RangeRequest {
            key: self.prefix.clone(),
            count_only: true,
            // Nothing was changed before revision 1, and 0 would be the newest.
            revision: revision.max(1),
            ..RangeRequest::default()
        };
        let answer = self.client.call(&read, Repeat::Harmless).await;
        self.client.note(answer.map_err(|error| of_read(&error))?.header);
        Ok(())
    }
}

/// Why etcd ends a watch with this answer.
fn refusal(answer: &WatchResponse) -> Option<Error> {
    if answer.compact_revision != 0 {
        return Some(Error::Compacted);
    }
    let why = || unavailable(&format!("etcd ended a watch: {}", answer.cancel_reason));
    answer.canceled.then(why)
}

fn halted(error: Error) -> Halt {
    match error {
        Error::Compacted => Halt::Ended(error),
        Error::Ambiguous
        | Error::Unavailable { .. }
        | Error::SessionEnded
        | Error::Corrupt { .. } => Halt::Broken(error),
    }
}

fn unavailable(reason: &str) -> Error {
    Error::Unavailable { reason: reason.into() }
}
