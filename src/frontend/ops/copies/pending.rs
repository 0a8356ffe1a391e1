//! Copies that outlive their request: those from other servers (ADR 0017).
//!
//! The request commits the destination without bytes, and a work row beside it. [`run`] finds the
//! work rows at the start of the program and whenever one was committed, copies the bytes and
//! commits the outcome. Only the row is durable: a copy that a crash interrupts starts over, and
//! the audit frees the bytes that it had stored. A copy that panics is tried again a few times,
//! then it fails. Accounts take turns (`turns.rs`).
//!
//! In a cluster any front end carries out any copy, under a lease in the work row (`leases.rs`).

mod ends;
mod leases;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::auth::SecretContext;
use crate::frontend::commit;
use crate::frontend::copies::AGAIN;
use crate::frontend::copies::Place;
use crate::frontend::copies::Running;
use crate::frontend::copy_failure;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::pending::ends::{PANICS_MAX, given_up};
use crate::frontend::ops::copies::pending::ends::{account_of, link, position};
use crate::frontend::ops::copies::pending::leases::Leases;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::copies::take::Wanted;
use crate::frontend::source;
use crate::frontend::source::FetchAccount;
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
use crate::index::Router;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::copy::ArchivedSource;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::SourceConditions;
use crate::types::AccountId;
use crate::types::BlobKind;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// Work rows per read.
const JOBS: usize = 64;
/// The longest time that a copy may take, as on the service.
const TIME_MAX: Duration = Duration::from_secs(14 * 24 * 3_600);
/// How often copies are looked for that no other process carries out any more, and copies in
/// partitions that did not answer.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// The blob that a pending copy writes, and the id of the copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination<'a> {
    pub(super) blob: &'a RoutingKey,
    pub(super) copy: Uuid,
}

/// The work row of a copy, with all that is needed to fetch the source again.
pub(super) fn job(
    front: &FrontEnd,
    Destination { blob, copy: id }: Destination<'_>,
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
        lease: None,
    }
}

/// Abort Copy Blob.
pub(crate) async fn abort(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    id: Uuid,
) -> Result<Reply, Refusal> {
    let Located { blob, precondition, .. } = blob.locate(&front.rows).await?;
    let end = CopyEnd::Aborted(precondition.lease);
    let end = EndCopy { blob: RoutingKey::blob(&blob.key), id, end };
    match commit::commit(&front.rows, Box::new(end), None).await {
        Ok(_) => {
            front.copies.abort(id);
            Ok(Reply::CopyAborted)
        }
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Carries out pending copies until the program stops: those that no other process carries out,
/// if there are `others`.
pub async fn run(front: Arc<FrontEnd>, others: bool) {
    let stopping = front.env.tasks.stopping();
    let leases = others.then(|| Leases::new(Arc::clone(&front)));
    let mut scan = Scan { leases, ..Scan::default() };
    let mut missed = 0;
    loop {
        let found = tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            found = start_all(&front, &mut scan) => found,
        };
        if scan.missed.len() > missed {
            let partitions = &scan.missed;
            tracing::warn!(
                ?partitions,
                "pending copies in partitions that do not answer wait; other copies go on"
            );
        }
        missed = scan.missed.len();
        let again = async {
            match found {
                // Other processes begin more copies than they can carry out, or are killed.
                Ok(()) if missed == 0 && scan.leases.is_none() => std::future::pending().await,
                Ok(()) => front.env.clock.sleep(LOOKS_EVERY).await,
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

/// A scan of all work rows.
#[derive(Debug, Default)]
struct Scan {
    /// How copies are shared with other processes, if there are any.
    leases: Option<Leases>,
    /// The position from which the next account is searched.
    turn: Bytes,
    /// Partitions that did not answer; this scan skips them.
    missed: BTreeSet<PartitionId>,
}

/// The pending copies of one account.
#[derive(Debug)]
struct AccountCopies {
    account: AccountId,
    /// The first of them.
    pending: Vec<PendingCopy>,
}

/// A copy that has its bytes, or has failed permanently.
struct Outcome {
    end: CopyEnd,
    hold: Option<Hold>,
}

/// Starts pending copies that do not run while places are free, one of each account in turn.
async fn start_all(front: &Arc<FrontEnd>, scan: &mut Scan) -> Result<(), index::Error> {
    scan.missed.clear();
    while start_round(front, scan).await? {}
    Ok(())
}

/// Starts one more copy of each account that has one pending and is below its share. Returns
/// whether any was started and places are left.
async fn start_round(front: &Arc<FrontEnd>, scan: &mut Scan) -> Result<bool, index::Error> {
    let begin = scan.turn.clone();
    let (mut started, mut wrapped) = (false, false);
    while !front.copies.is_full() {
        match next_account(&front.rows.router, scan).await? {
            Some(found) if wrapped && position(found.account) >= begin => return Ok(started),
            Some(found) => {
                let account = found.account;
                started |= start_one(front, found, scan.leases.as_ref());
                scan.turn = position(AccountId::new(account.get().saturating_add(1)));
            }
            None if wrapped || begin.is_empty() => {
                scan.turn = Bytes::new();
                return Ok(started);
            }
            None => {
                scan.turn = Bytes::new();
                wrapped = true;
            }
        }
    }
    Ok(false)
}

/// The next account with pending copies, from the position of the scan on. An account runs fewer
/// copies here than a page has, so if some copy does not run, the page has one. Copies of other
/// processes are passed over, with all pages that have nothing else.
async fn next_account(
    router: &Router,
    scan: &mut Scan,
) -> Result<Option<AccountCopies>, index::Error> {
    let mut from = Some(scan.turn.clone());
    while let Some(start) = from {
        let read = ReadCopyJobs { from: start.clone(), limit: JOBS };
        let (mut jobs, mut nexts) = (Vec::new(), Vec::new());
        let (end, answers) = match router.ask_each(&start, read).await {
            Ok(answers) => answers,
            Err(error @ index::Error::Refused(_)) => return Err(error),
            Err(error) => (router.end_of_range(&start), vec![Err(error)]),
        };
        for (number, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(page) => {
                    jobs.extend(page.jobs);
                    nexts.extend(page.next);
                }
                Err(error @ index::Error::Refused(_)) => return Err(error),
                // A partition that is damaged or overloaded delays only the copies in it.
                Err(error) => {
                    tracing::debug!(%error, "some pending copies cannot be read");
                    scan.missed.extend(router.map().at(&start).get(number).map(|one| one.id));
                    nexts.extend(end.clone());
                }
            }
        }
        jobs.retain(|one| scan.leases.as_ref().is_none_or(|leases| leases.may_take(&one.job)));
        if let Some(account) = jobs.iter().map(account_of).min() {
            jobs.retain(|pending| account_of(pending) == account);
            return Ok(Some(AccountCopies { account, pending: jobs }));
        }
        from = nexts.into_iter().min();
    }
    Ok(None)
}

/// Starts the first copy that neither runs nor pauses.
fn start_one(
    front: &Arc<FrontEnd>,
    AccountCopies { account, pending }: AccountCopies,
    leases: Option<&Leases>,
) -> bool {
    for pending in pending {
        let now = front.env.clock.monotonic();
        if let Some(place) = front.copies.take_up(pending.job.id, account, now) {
            let (of, leases) = (Arc::clone(front), leases.cloned());
            let work = async move {
                match leases {
                    Some(leases) => leases.carry_out(pending, place).await,
                    None => carry_out(&of, &pending, place, std::future::pending()).await,
                }
            };
            drop(front.env.tasks.spawn("copy", work));
            return true;
        }
    }
    false
}

/// Carries out a copy, until another process may do so.
async fn carry_out(
    front: &Arc<FrontEnd>,
    pending: &PendingCopy,
    place: Place,
    lost: impl Future<Output = ()>,
) {
    let (id, running) = (place.id, &place.running);
    let stopping = front.env.tasks.stopping();
    let fetching = async {
        if place.panics >= PANICS_MAX {
            return Err(given_up());
        }
        fetch(front, pending, running).await
    };
    let done = tokio::select! {
        biased;
        // The work row stays: the copy is carried out after the next start.
        () = stopping.cancelled() => return,
        () = running.abort.cancelled() => return,
        () = lost => return,
        done = fetching => done,
    };
    let Err(error) = settle(front, pending, done).await else {
        return front.copies.settled(id);
    };
    tracing::debug!(%id, %error, "the end of a copy was not committed; the copy is tried again");
    again_later(front, place).await;
}

/// Has a copy tried again after a pause, in which its place is free for others.
async fn again_later(front: &FrontEnd, place: Place) {
    let pause = front.copies.pause(place.id, front.env.clock.monotonic());
    drop(place);
    tokio::select! {
        biased;
        () = front.env.tasks.stopping().cancelled_owned() => {}
        () = front.env.clock.sleep(pause) => front.copies.wake.notify_one(),
    }
}

/// Commits the outcome of a copy. On an error the copy is still pending.
async fn settle(
    front: &FrontEnd,
    pending: &PendingCopy,
    done: Result<Outcome, Refusal>,
) -> Result<(), index::Error> {
    let Outcome { end, hold } = match done {
        Ok(done) => done,
        Err(error) if error.reason == Reason::ServerBusy => return Err(index::Error::Overloaded),
        Err(error) => Outcome { end: CopyEnd::Failed(copy_failure::write(&error)), hold: None },
    };
    let end = EndCopy { blob: pending.blob.clone(), id: pending.job.id, end };
    match take::commit(&front.rows, None, Box::new(end), hold).await {
        // Aborted meanwhile, or deleted with its container.
        Ok(_)
        | Err(index::Error::Refused(
            index::Refused::NoPendingCopy
            | index::Refused::OtherCopy
            | index::Refused::BlobNotFound,
        )) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn fetch(
    front: &FrontEnd,
    pending: &PendingCopy,
    running: &Running,
) -> Result<Outcome, Refusal> {
    let job = &pending.job;
    let link = link(front, pending).ok_or(Reason::InternalError)?;
    let gone = || Refusal::new(Reason::CannotVerifyCopySource).status(409);
    let if_match = job.etag.clone();
    let conditions = SourceConditions { if_match, ..SourceConditions::default() };
    let source = CopySource {
        url: link.url.parse().map_err(|_| gone())?,
        authorization: link.authorization,
        key: None,
        conditions,
        range: None,
        md5: job.md5,
        crc64: job.crc64,
        purpose: CopyPurpose::Copy { sync: false },
        archived: ArchivedSource::Refused,
    };
    let by = FetchAccount { payer: account_of(pending), admitted: None };
    let mut fetched = source::open_outside(front, by, &source, TIME_MAX).await?;
    fetched.count = Some(Arc::clone(&running.copied));
    let page_blob = matches!(fetched.facts.kind, BlobKind::Page { .. });
    let found = Source::Outside(Box::new(fetched));
    let taken = if page_blob {
        pages::take(front, &pending.blob, found, None).await?
    } else {
        let wanted = Wanted { source: &source, form: Form::Blob, key: None };
        take::take(front, found, wanted).await?
    };
    let end = CopyEnd::Success { content: taken.content, crc64: taken.kept_crc64 };
    Ok(Outcome { end, hold: Some(taken.hold) })
}

#[cfg(test)]
mod tests;
