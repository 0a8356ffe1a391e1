//! Copies that outlive their request: those from other servers (ADR 0017).
//!
//! The request commits the destination without bytes, and a work row beside it. [`run`] finds the
//! work rows at the start of the program and whenever one was committed, copies the bytes and
//! commits the outcome (`work.rs`). Only the row is durable: a copy that a crash interrupts starts
//! over, and the audit frees the bytes that it had stored. A copy that panics is tried again a few
//! times, then it fails. Accounts take turns (`turns.rs`).
//!
//! In a cluster any front end carries out any copy, under a lease in the work row (`leases.rs`).

mod ends;
mod leases;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::auth::SecretContext;
use crate::frontend::commit;
use crate::frontend::copies::AGAIN;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::Located;
use crate::frontend::ops::copies::pending::ends::{account_of, position};
use crate::frontend::ops::copies::pending::leases::LOOKS_EVERY;
use crate::frontend::ops::copies::pending::leases::Leases;
use crate::frontend::ops::copies::pending::work::carry_out;
use crate::frontend::source::Fetched;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::CopyEnd;
use crate::index::CopyJob;
use crate::index::CopyLink;
use crate::index::EndCopy;
use crate::index::PendingCopy;
use crate::index::ReadCopyJobs;
use crate::index::Router;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::copy::CopySource;
use crate::types::AccountId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// Work rows per read.
const JOBS: usize = 64;

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

#[cfg(test)]
mod tests;
