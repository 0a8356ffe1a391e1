//! How the front ends of a cluster share pending copies: each carries out those for which it has
//! the lease (ADR 0064).
//!
//! A lease keeps two processes from fetching a source at the same time. Nothing depends on it: the
//! first end of a copy that is committed counts, and a second one frees its bytes. So a process
//! whose lease has expired goes on until it hears that another one has taken the copy.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Builder;
use uuid::Uuid;

use crate::frontend::commit;
use crate::frontend::copies::Place;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::CopyJob;
use crate::index::CopyLease;
use crate::index::LeaseCopy;
use crate::index::PendingCopy;

use super::work::again_later;
use super::work::carry_out;

/// How often copies are looked for that no other process carries out any more, and copies in
/// partitions that did not answer.
pub(super) const LOOKS_EVERY: Duration = Duration::from_secs(10);
/// How long a lease lasts. After the death of its process the copy waits for that time.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// How often it is renewed. Clients see progress that is so old at most.
pub(super) const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// The leases of this process.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    pub(super) front: Arc<FrontEnd>,
    /// The id of all its leases: it carries out a copy once at a time.
    id: Uuid,
}

impl Leases {
    pub(super) fn new(front: Arc<FrontEnd>) -> Self {
        let (high, low) = (front.env.rand.next_u64(), front.env.rand.next_u64());
        let random = u128::from(high) << 64 | u128::from(low);
        let id = Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
        Self { front, id }
    }

    /// Whether this process does not carry out this copy, and no other one has a lease of it, as
    /// far as the clock of this one can tell.
    pub(super) fn may_take(&self, job: &CopyJob) -> bool {
        let now = self.front.env.clock.now();
        let is_free = |lease: CopyLease| lease.id == self.id || lease.until <= now;
        job.lease.is_none_or(is_free) && !self.front.copies.is_running(job.id)
    }

    /// Takes the lease and carries the copy out, unless another process has taken it.
    pub(super) async fn carry_out(&self, pending: PendingCopy, place: Place) {
        let (front, id) = (&self.front, place.id);
        match self.renew(&pending, 0).await {
            Ok(()) => {}
            // Without the pause it would be tried again at once, if the clocks differ.
            Err(index::Error::Refused(index::Refused::CopyPending)) => {
                let now = front.env.clock.monotonic();
                return front.copies.rest(id, now, LOOKS_EVERY);
            }
            Err(index::Error::Refused(refused)) => {
                tracing::debug!(%id, %refused, "a copy has ended before it was begun here");
                return front.copies.settled(id);
            }
            Err(error) => {
                tracing::debug!(%id, %error, "no lease of a copy");
                return again_later(front, place).await;
            }
        }
        let copied = Arc::clone(&place.running.copied);
        let lost = self.lost(&pending, &copied);
        carry_out(front, &pending, place, lost).await;
    }

    /// Renews the lease. Returns when another process has taken the copy, or it has ended.
    pub(super) async fn lost(&self, pending: &PendingCopy, copied: &AtomicU64) {
        let id = pending.job.id;
        loop {
            self.front.env.clock.sleep(RENEWED_EVERY).await;
            match self.renew(pending, copied.load(Ordering::Relaxed)).await {
                Ok(()) => {}
                Err(index::Error::Refused(refused)) => {
                    tracing::debug!(%id, %refused, "a copy is not carried out here any more");
                    return;
                }
                Err(error) => tracing::debug!(%id, %error, "the lease of a copy is not renewed"),
            }
        }
    }

    pub(super) async fn renew(
        &self,
        pending: &PendingCopy,
        copied: u64,
    ) -> Result<(), index::Error> {
        let (blob, id) = (pending.blob.clone(), pending.job.id);
        let write = LeaseCopy { blob, id, lease: self.id, duration: LEASE, copied };
        commit::commit(&self.front.rows, write, None).await
    }
}
