//! Which partitions are under a change of the map: none is under two.
//!
//! A change waits here for one of the same partitions, and for no other: a merge may flush and compact for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::types::PartitionId;

/// All claims of a fleet.
#[derive(Debug, Default)]
pub(super) struct Claims {
    taken: Mutex<BTreeSet<PartitionId>>,
    freed: Notify,
}

/// Partitions that nobody else changes until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    of: Arc<Claims>,
    ids: BTreeSet<PartitionId>,
}

impl Claims {
    /// Claims partitions, all at once, when none of them is claimed any more.
    pub(super) async fn claim(self: &Arc<Self>, ids: &[PartitionId]) -> Claim {
        self.when(|taken| {
            let free = ids.iter().all(|id| !taken.contains(id));
            free.then(|| {
                taken.extend(ids);
                Claim { of: Arc::clone(self), ids: ids.iter().copied().collect() }
            })
        })
        .await
    }

    /// Waits until no partition is claimed.
    pub(super) async fn none(&self) {
        self.when(|taken| taken.is_empty().then_some(())).await;
    }

    /// The partitions under a change now.
    pub(super) fn taken(&self) -> BTreeSet<PartitionId> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn when<T>(&self, mut done: impl FnMut(&mut BTreeSet<PartitionId>) -> Option<T>) -> T {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Before the look: what is freed after it wakes us.
            freed.as_mut().enable();
            let found = done(&mut self.taken.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(found) = found {
                return found;
            }
            freed.await;
        }
    }
}

impl Claim {
    /// Gives one partition of this claim to a claim of its own.
    pub(super) fn hand_on(&mut self, id: PartitionId) -> Self {
        let ids = self.ids.take(&id).into_iter().collect();
        Self { of: Arc::clone(&self.of), ids }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|id| !self.ids.contains(id));
        drop(taken);
        self.of.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Context;
    use std::task::Waker;

    use super::*;

    fn ids(numbers: &[u64]) -> Vec<PartitionId> {
        numbers.iter().copied().map(PartitionId::new).collect()
    }

    fn is_ready<T>(work: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
        work.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn who_wants_a_claimed_partition_waits_and_nobody_else() {
        let claims = Arc::new(Claims::default());
        let mut first = claims.claim(&ids(&[1, 2, 3])).await;
        let other = claims.claim(&ids(&[4])).await;
        let third = ids(&[3, 5]);
        let mut waits = pin!(claims.claim(&third));
        assert!(!is_ready(waits.as_mut()));
        let three = first.hand_on(PartitionId::new(3));
        drop((first, other));
        assert_eq!(claims.taken(), ids(&[3]).into_iter().collect());
        assert!(!is_ready(waits.as_mut()), "nothing is half claimed");
        drop(three);
        let claim = waits.await;
        assert_eq!(claims.taken(), ids(&[3, 5]).into_iter().collect());
        let mut none = pin!(claims.none());
        assert!(!is_ready(none.as_mut()));
        drop(claim);
        none.await;
    }
}
