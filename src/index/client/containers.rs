//! Writes into containers that others may delete, and the deletion of containers that must be
//! empty. Neither loses a write: one that was acknowledged is in the container, or the container
//! was deleted before the write was (ADR 0033).
//!
//! A write notes its commit in [`InFlight`], then reads the container again, then commits. A
//! deletion closes the container, then takes a mark, then waits until no commit from before the
//! mark runs, then checks whether the container is empty. When a write and a deletion meet:
//! - The write read the container before it was closed. Its commit was noted before that, so before
//!   the mark. The deletion waits for it and finds its rows.
//! - The write read the container after it was closed. It does not commit. It removes its note,
//!   because the deletion may wait for it, and begins again a little later.
//!
//! The container's row has the time of the closing, which identifies the closing. A deletion that
//! ends without an answer leaves it there. A request that meets a closing that is too old opens the
//! container again. That needs no agreement of clocks: the deletion removes the row only while it
//! has the time of its own closing, so a container that was opened too early is not deleted.

use std::sync::Arc;
use std::time::Duration;

use crate::env::Clock;
use crate::index::Router;
use crate::index::api::CloseContainer;
use crate::index::api::DeleteContainer;
use crate::index::api::Error;
use crate::index::api::History;
use crate::index::api::ListBlobs;
use crate::index::api::ReadContainer;
use crate::index::api::Refused;
use crate::index::api::ReopenContainer;
use crate::index::api::Running;
use crate::index::api::RunningRequests;
use crate::index::api::UpdateContainer;
use crate::index::inflight::ChangeNote;
use crate::index::inflight::InFlight;
use crate::index::record::ContainerRecord;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Protection;
use crate::types::Timestamp;

/// The longest time for which a container stays closed. A request that has seen the same closing
/// for this long opens the container again.
const CLOSED_MAX: Duration = Duration::from_secs(10);
/// How long a deletion may take from the closing to its last write. It is shorter, so that no
/// request opens a container that will be deleted.
const DELETION_MAX: Duration = Duration::from_secs(8);
/// How long a write or a deletion waits for other deletions.
const PATIENCE: Duration = Duration::from_secs(25);
/// The longest check of a container before it is closed.
const EMPTY_CHECK_MAX: Duration = Duration::from_secs(20);
/// The first and the longest pause between two polls of a wait.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A container as a request found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundContainer {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// Its id: a container made later under the same name has another one.
    pub id: ContainerId,
    /// How its blobs are protected if its row does not say so: the settings of its account.
    pub protection: Protection,
}

/// A container that a write may commit into.
#[derive(Debug)]
pub struct Entered {
    /// The note of the commit. The caller keeps it until the commit is answered.
    pub note: ChangeNote,
    /// How blobs of the container are protected.
    pub protection: Protection,
}

/// Commits writes into containers, and deletes empty containers.
#[derive(Clone, Debug)]
pub struct Containers {
    /// Routes to partitions.
    pub router: Arc<Router>,
    /// Where this process notes its commits.
    pub inflight: InFlight,
    /// Whom a deletion asks about the commits of all processes.
    pub requests: Arc<dyn RunningRequests>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A check whether a container is empty.
#[derive(Clone, Copy)]
struct EmptyCheck {
    account: AccountId,
    /// The parts of the blobs' history that make a container non-empty.
    counts: History,
    /// When it is given up.
    until: Duration,
}

impl Containers {
    /// Reads a container again before a write into it commits, and waits while it is closed. The
    /// caller keeps the answer until its commit is answered. `noted` is a note of the commit that
    /// was made before; it is given back while this waits.
    ///
    /// # Errors
    /// [`Refused::ContainerNotFound`] if the container was deleted, [`Error::Overloaded`] if it
    /// stays closed, and the answers of its partition. Nothing was written then.
    pub async fn enter(&self, noted: ChangeNote, found: &FoundContainer) -> Result<Entered, Error> {
        let mut noted = Some(noted);
        let mut wait = Wait::new(self.clock.as_ref());
        loop {
            let note = noted.take().unwrap_or_else(|| self.inflight.commit());
            let record = self.read(found.account, &found.name).await?;
            if record.id != found.id {
                return Err(Refused::ContainerNotFound.into());
            }
            let Some(closed) = record.closed() else {
                let protection = record.protection(found.protection);
                return Ok(Entered { note, protection });
            };
            drop(note);
            self.wait_for(&mut wait, &found.name, (found.account, closed)).await?;
        }
    }

    /// Changes a setting of a container on which writes depend: versions, object lock. Every write
    /// that is acknowledged after this has seen the change.
    ///
    /// # Errors
    /// Those of the guard and of the partition; [`Error::Overloaded`] if commits that began before
    /// take too long. The change is made then, and may be repeated.
    pub async fn change_demands(&self, change: UpdateContainer) -> Result<(), Error> {
        let until = self.clock.monotonic() + DELETION_MAX;
        self.router.tell(change).await?;
        self.commits_end(until).await
    }

    /// Deletes a container if it has no blobs and nothing of their history that counts. Staged
    /// blocks do not count. Not cancel-safe: a deletion that is cancelled leaves the container
    /// closed for some seconds.
    ///
    /// # Errors
    /// [`Refused::ContainerNotEmpty`], [`Refused::ContainerNotFound`], what the guard refuses,
    /// [`Error::Overloaded`] if it took too long, and the answers of partitions.
    pub async fn delete_if_empty(
        &self,
        delete: DeleteContainer,
        counts: History,
    ) -> Result<(), Error> {
        // Most non-empty containers are found here, before any request waits.
        let record = self.read(delete.account, &delete.name).await?;
        let check = EmptyCheck {
            account: delete.account,
            counts,
            until: self.clock.monotonic() + EMPTY_CHECK_MAX,
        };
        self.check_empty(&record, check).await?;
        let until = self.clock.monotonic() + DELETION_MAX;
        let record = self.close(&delete).await?;
        let Some(closed) = record.closed() else {
            return Err(Error::Unavailable("a container was closed at no time".to_owned()));
        };
        let (account, name) = (delete.account, delete.name.clone());
        let deleted =
            self.delete_closed(delete, &record, EmptyCheck { counts, until, ..check }).await;
        if deleted.is_err()
            && let Err(error) = self.router.tell(ReopenContainer { account, name, closed }).await
        {
            tracing::warn!(%error, "a container stays closed for some seconds: it was not deleted");
        }
        deleted
    }

    async fn delete_closed(
        &self,
        delete: DeleteContainer,
        record: &ContainerRecord,
        check: EmptyCheck,
    ) -> Result<(), Error> {
        self.commits_end(check.until).await?;
        self.check_empty(record, check).await?;
        let delete = DeleteContainer { closed: record.closed(), ..delete };
        match self.router.tell(delete).await {
            Err(Error::Refused(Refused::ContainerReopened)) => Err(Error::Overloaded),
            answer => answer,
        }
    }

    /// Closes a container. Waits while another deletion has closed it.
    async fn close(&self, delete: &DeleteContainer) -> Result<ContainerRecord, Error> {
        let (account, name, guard) = (delete.account, &delete.name, &delete.guard);
        let mut wait = Wait::new(self.clock.as_ref());
        loop {
            let close = CloseContainer { account, name: name.clone(), guard: guard.clone() };
            match self.router.tell(close).await {
                Err(Error::Refused(Refused::ContainerClosed)) => {}
                answer => return answer,
            }
            if let Some(closed) = self.read(account, name).await?.closed() {
                self.wait_for(&mut wait, name, (account, closed)).await?;
            }
        }
    }

    /// Waits until every commit has ended that may have read the container before it was closed.
    async fn commits_end(&self, until: Duration) -> Result<(), Error> {
        let before = self.until_answered(until, || self.requests.mark()).await?;
        let mut pause = PAUSE_MIN;
        let running = || self.requests.is_running(Running::Commit { before });
        while self.until_answered(until, running).await? {
            if self.clock.monotonic() >= until {
                return Err(Error::Overloaded);
            }
            self.clock.sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
        Ok(())
    }

    /// Asks again while a process does not answer: its requests end with its session.
    async fn until_answered<T, F>(&self, until: Duration, ask: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        loop {
            match ask().await {
                Err(Error::NoAnswer(why)) if self.clock.monotonic() < until => {
                    tracing::debug!(why, "running requests are asked for again");
                    self.clock.sleep(PAUSE_MAX).await;
                }
                Err(Error::NoAnswer(_)) => return Err(Error::Overloaded),
                answer => return answer,
            }
        }
    }

    async fn check_empty(&self, record: &ContainerRecord, check: EmptyCheck) -> Result<(), Error> {
        let first = ListBlobs::first_page(check.account, record.id, record.collation, 1);
        let mut list = ListBlobs { history: check.counts, ..first };
        loop {
            let page = self.router.list(&list).await?;
            if !page.entries.is_empty() {
                return Err(Refused::ContainerNotEmpty.into());
            }
            let Some(next) = page.next else { return Ok(()) };
            if self.clock.monotonic() >= check.until {
                return Err(Error::Overloaded);
            }
            list.from = Some(next);
        }
    }

    async fn read(
        &self,
        account: AccountId,
        name: &ContainerName,
    ) -> Result<Box<ContainerRecord>, Error> {
        self.router.ask(ReadContainer(account, name.clone())).await
    }

    /// Waits a little for the end of a closing, or opens the container if the closing is too old.
    async fn wait_for(
        &self,
        wait: &mut Wait,
        name: &ContainerName,
        (account, closed): (AccountId, Timestamp),
    ) -> Result<(), Error> {
        let now = self.clock.monotonic();
        if wait.closed != Some(closed) {
            (wait.closed, wait.seen) = (Some(closed), now);
        }
        let is_old = now.saturating_sub(wait.seen) >= CLOSED_MAX
            || closed.plus(CLOSED_MAX) <= self.clock.now();
        if is_old {
            tracing::info!(container = %name, "a container is opened: its deletion did not end");
            return self.router.tell(ReopenContainer { account, name: name.clone(), closed }).await;
        }
        if now >= wait.until {
            return Err(Error::Overloaded);
        }
        self.clock.sleep(wait.pause).await;
        wait.pause = wait.pause.saturating_mul(2).min(PAUSE_MAX);
        Ok(())
    }
}

/// A wait for the end of closings.
struct Wait {
    until: Duration,
    pause: Duration,
    /// The closing last seen, and when it was seen first.
    closed: Option<Timestamp>,
    seen: Duration,
}

impl Wait {
    fn new(clock: &dyn Clock) -> Self {
        let now = clock.monotonic();
        Self { until: now + PATIENCE, pause: PAUSE_MIN, closed: None, seen: now }
    }
}

#[cfg(test)]
mod tests;
