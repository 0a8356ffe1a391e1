//! Copies that outlive their request: those from other servers (ADR 0017).
//!
//! The request commits the destination without bytes and a work row beside it. [`run`] finds work
//! rows, at the start of the program and whenever one was made, carries them out and commits their
//! end. The row is the only memory: a copy that a crash cut begins anew, and what it had stored is
//! left to the audit. So does one that panicked, a few times; then it fails. Accounts take turns
//! (`turns.rs`).

mod ends;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::header::IF_MATCH;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::auth::SecretContext;
use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::copies::AGAIN;
use crate::frontend::copies::Place;
use crate::frontend::copies::Running;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::pending::ends::{PANICS_MAX, given_up};
use crate::frontend::ops::copies::pending::ends::{account_of, link, position};
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::route::Router;
use crate::frontend::source;
use crate::frontend::source::By;
use crate::frontend::source::Fetched;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::CopyEnd;
use crate::index::CopyJob;
use crate::index::CopyLink;
use crate::index::EndCopy;
use crate::index::PendingCopy;
use crate::index::ReadCopyJobs;
use crate::protocol::azure::errors::one_line;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::operation::BlobPath;
use crate::types::AccountId;
use crate::types::BlobKind;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// Work rows read at once.
const JOBS: usize = 64;
/// How long a copy may take, as on the service.
const TIME_MAX: Duration = Duration::from_secs(14 * 24 * 3_600);
/// How long after some copies were out of reach they are looked for again.
const LOOK: Duration = Duration::from_secs(10);

/// What a request leaves to be done.
pub(super) fn job(
    front: &FrontEnd,
    (blob, id): (&RoutingKey, Uuid),
    source: &CopySource,
    fetched: &Fetched,
) -> CopyJob {
    let (url, authorization) = (source.url.to_string(), source.authorization.clone());
    let link = Zeroizing::new(CopyLink { url, authorization }.encode());
    CopyJob {
        id,
        source: front.accounts.secrets().seal(&SecretContext::copy_source(blob, id), &link),
        etag: fetched.etag.clone(),
        md5: source.md5,
        crc64: source.crc64,
    }
}

/// Abort Copy Blob.
pub(crate) async fn abort(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    (id, precondition): (Uuid, Precondition),
) -> Result<Reply, Refusal> {
    let key = lookup::blob_key(front, account, path).await?;
    let end = CopyEnd::Aborted(precondition.lease);
    let end = EndCopy { blob: RoutingKey::blob(&key), id, end };
    match commit::commit(front, Box::new(end), None).await {
        Ok(_) => {
            front.copies.abort(id);
            Ok(Reply::CopyAborted)
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Carries pending copies out until the program stops.
pub async fn run(front: Arc<FrontEnd>) {
    let stopping = front.env.tasks.stopping();
    let mut look = Scan::default();
    let mut missed = 0;
    loop {
        let found = tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            found = start_all(&front, &mut look) => found,
        };
        if look.missed.len() > missed {
            let partitions = &look.missed;
            tracing::warn!(
                ?partitions,
                "pending copies in partitions that do not answer wait; other copies go on"
            );
        }
        missed = look.missed.len();
        let again = async {
            match found {
                Ok(()) if missed == 0 => std::future::pending().await,
                Ok(()) => front.env.clock.sleep(LOOK).await,
                Err(error) => {
                    tracing::debug!(%error, "pending copies cannot be read");
                    front.env.clock.sleep(AGAIN).await;
                }
            }
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = front.copies.wake.notified() => {}
            () = again => {}
        }
        if front.copies.panicked.swap(false, Ordering::Relaxed) {
            front.env.clock.sleep(AGAIN).await;
        }
    }
}

/// Where copies are looked for.
#[derive(Debug, Default)]
struct Scan {
    /// The position from which the next account is looked for.
    turn: Bytes,
    /// Partitions that did not answer, and that this look had to go on without.
    missed: BTreeSet<PartitionId>,
}

/// Starts what is pending and not running as far as there is room, one copy of each account after
/// the other.
async fn start_all(front: &Arc<FrontEnd>, look: &mut Scan) -> Result<(), index::Error> {
    look.missed.clear();
    while start_round(front, look).await? {}
    Ok(())
}

/// Starts one more copy of each account that has one pending and not its share; whether any was
/// started, and there is room for more.
async fn start_round(front: &Arc<FrontEnd>, look: &mut Scan) -> Result<bool, index::Error> {
    let begin = look.turn.clone();
    let (mut started, mut wrapped) = (false, false);
    while !front.copies.is_full() {
        match next_account(&front.router, look).await? {
            Some((account, _)) if wrapped && position(account) >= begin => return Ok(started),
            Some((account, jobs)) => {
                started |= start_one(front, account, jobs);
                look.turn = position(AccountId::new(account.get().saturating_add(1)));
            }
            None if wrapped || begin.is_empty() => {
                look.turn = Bytes::new();
                return Ok(started);
            }
            None => {
                look.turn = Bytes::new();
                wrapped = true;
            }
        }
    }
    Ok(false)
}

/// The next account at or behind a position that has copies pending, and the first of them. An
/// account runs fewer than a page of them: one that does not run is among these if there is any.
async fn next_account(
    router: &Router,
    look: &mut Scan,
) -> Result<Option<(AccountId, Vec<PendingCopy>)>, index::Error> {
    let mut from = Some(look.turn.clone());
    while let Some(start) = from {
        let read = ReadCopyJobs { from: start.clone(), limit: JOBS };
        let (mut jobs, mut nexts) = (Vec::new(), Vec::new());
        let (end, answers) = match router.ask_each(&start, read).await {
            Err(error) if error.is_outage() => (end_of_range(router, &start), vec![Err(error)]),
            answers => answers?,
        };
        for (number, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok((some, next)) => {
                    jobs.extend(some);
                    nexts.extend(next);
                }
                // What is damaged or too busy costs the copies that lie there.
                Err(error) if error.is_outage() => {
                    tracing::debug!(%error, "some pending copies cannot be read");
                    look.missed.extend(router.map().at(&start).get(number).map(|one| one.id));
                    nexts.extend(end.clone());
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(account) = jobs.iter().map(account_of).min() {
            jobs.retain(|pending| account_of(pending) == account);
            return Ok(Some((account, jobs)));
        }
        from = nexts.into_iter().min();
    }
    Ok(None)
}

/// Where the range of a position ends.
fn end_of_range(router: &Router, position: &[u8]) -> Option<Bytes> {
    let map = router.map();
    let high = map.at(position).first()?.keys.range().high()?;
    Some(high.as_bytes().clone())
}

/// Starts the first of these that neither runs nor rests.
fn start_one(front: &Arc<FrontEnd>, account: AccountId, jobs: Vec<PendingCopy>) -> bool {
    for pending in jobs {
        if let Some(place) =
            front.copies.take_up((pending.job.id, account), front.env.clock.monotonic())
        {
            let of = Arc::clone(front);
            drop(front.env.tasks.spawn("copy", carry_out(of, pending, place)));
            return true;
        }
    }
    false
}

async fn carry_out(front: Arc<FrontEnd>, pending: PendingCopy, place: Place) {
    let (id, running) = (place.id, &place.running);
    let stopping = front.env.tasks.stopping();
    let fetching = async {
        if place.panics >= PANICS_MAX {
            return Err(given_up());
        }
        fetch(&front, &pending, running).await
    };
    let done = tokio::select! {
        biased;
        // The work row stays: the next start takes it up.
        () = stopping.cancelled() => return,
        () = running.abort.cancelled() => return,
        done = fetching => done,
    };
    let Err(error) = settle(&front, &pending, done).await else {
        return front.copies.settled(id);
    };
    let pause = front.copies.rest(id, front.env.clock.monotonic());
    tracing::debug!(
        %id, %error, ?pause,
        "the end of a copy was not committed; the copy is tried again"
    );
    // Others have its place meanwhile.
    drop(place);
    tokio::select! {
        biased;
        () = stopping.cancelled() => {}
        () = front.env.clock.sleep(pause) => front.copies.wake.notify_one(),
    }
}

/// Commits how a copy ended; an error means that it has not.
async fn settle(
    front: &FrontEnd,
    pending: &PendingCopy,
    done: Result<(CopyEnd, Option<Hold>), Refusal>,
) -> Result<(), index::Error> {
    let (end, hold) = match done {
        Ok(done) => done,
        Err(error) if error.reason == Reason::ServerBusy => return Err(index::Error::Overloaded),
        Err(error) => (CopyEnd::Failed(one_line(&error)), None),
    };
    let end = EndCopy { blob: pending.blob.clone(), id: pending.job.id, end };
    let write = Box::new(end);
    let answer = match hold {
        Some(hold) => take::commit(front, write, hold).await,
        None => commit::commit(front, write, None).await,
    };
    match answer {
        // Aborted meanwhile, or gone with its container.
        Ok(_)
        | Err(index::Error::NoPendingCopy | index::Error::OtherCopy | index::Error::BlobNotFound) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

async fn fetch(
    front: &FrontEnd,
    pending: &PendingCopy,
    running: &Running,
) -> Result<(CopyEnd, Option<Hold>), Refusal> {
    let job = &pending.job;
    let link = link(front, pending).ok_or(Reason::InternalError)?;
    let gone = || Refusal::new(Reason::CannotVerifyCopySource).status(409);
    let mut conditions = HeaderMap::new();
    if let Some(etag) = &job.etag {
        let etag = HeaderValue::from_str(etag).map_err(|_| gone())?;
        conditions.insert(IF_MATCH, etag);
    }
    let source = CopySource {
        url: link.url.parse().map_err(|_| gone())?,
        authorization: link.authorization,
        conditions,
        range: None,
        md5: job.md5,
        crc64: job.crc64,
    };
    let by = By { payer: account_of(pending), admitted: None };
    let mut fetched = source::open_outside(front, by, &source, TIME_MAX).await?;
    fetched.count = Some(Arc::clone(&running.copied));
    let page_blob = matches!(fetched.facts.kind, BlobKind::Page { .. });
    let found = Source::Outside(Box::new(fetched));
    let taken = if page_blob {
        pages::take(front, &pending.blob, found).await?
    } else {
        take::take(front, found, &source, Form::Blob).await?
    };
    Ok((CopyEnd::Success { content: taken.content, crc64: taken.crc64 }, Some(taken.hold)))
}

#[cfg(test)]
mod tests;
