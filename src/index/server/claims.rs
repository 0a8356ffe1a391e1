//! Which partitions take part in a change of the map. None takes part in two at a time.
//!
//! A change waits for changes of the same partitions, and for no others: a merge may flush and
//! compact for long. It does not wait for a partition that a move left closed, because that may
//! never open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::types::PartitionId;

/// All claims of a server.
#[derive(Debug, Default)]
pub(super) struct Claims {
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    /// Partitions that take part in a change.
    changing: BTreeSet<PartitionId>,
    /// Partitions that a change left closed, and that are being opened.
    closed: BTreeSet<PartitionId>,
}

/// Partitions that no other change uses until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    of: Arc<Claims>,
    ids: BTreeSet<PartitionId>,
}

impl Claims {
    /// Waits until none of the partitions is claimed, then claims all of them. `None` if one of
    /// them is closed.
    pub(super) async fn claim(self: &Arc<Self>, ids: &[PartitionId]) -> Option<Claim> {
        self.when(|taken| {
            if ids.iter().any(|id| taken.closed.contains(id)) {
                return Some(None);
            }
            let free = ids.iter().all(|id| !taken.changing.contains(id));
            free.then(|| {
                taken.changing.extend(ids);
                Some(Claim { of: Arc::clone(self), ids: ids.iter().copied().collect() })
            })
        })
        .await
    }

    /// Waits until no partition is claimed.
    pub(super) async fn none(&self) {
        let is_empty = |taken: &Taken| taken.changing.is_empty() && taken.closed.is_empty();
        self.when(|taken| is_empty(taken).then_some(())).await;
    }

    /// The partitions under a change now.
    pub(super) fn taken(&self) -> BTreeSet<PartitionId> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).changing.clone()
    }

    async fn when<T>(&self, mut done: impl FnMut(&mut Taken) -> Option<T>) -> T {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Before the check: a claim that is dropped after the check then wakes this task.
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
    /// The first of its partitions.
    pub(super) fn first(&self) -> Option<PartitionId> {
        self.ids.first().copied()
    }

    /// Gives one partition of this claim, which is closed from now on, to a claim of its own.
    pub(super) fn leave_closed(&mut self, id: PartitionId) -> Self {
        let ids: BTreeSet<PartitionId> = self.ids.take(&id).into_iter().collect();
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.changing.remove(&id);
        taken.closed.extend(&ids);
        drop(taken);
        self.of.freed.notify_waiters();
        Self { of: Arc::clone(&self.of), ids }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.changing.retain(|id| !self.ids.contains(id));
        taken.closed.retain(|id| !self.ids.contains(id));
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
        let first = claims.claim(&ids(&[1, 2, 3])).await.unwrap();
        let other = claims.claim(&ids(&[4])).await.unwrap();
        let third = ids(&[3, 5]);
        let mut waits = pin!(claims.claim(&third));
        assert!(!is_ready(waits.as_mut()));
        drop(other);
        assert_eq!(claims.taken(), ids(&[1, 2, 3]).into_iter().collect());
        assert!(!is_ready(waits.as_mut()), "nothing is half claimed");
        drop(first);
        let claim = waits.await.unwrap();
        assert_eq!(claims.taken(), ids(&[3, 5]).into_iter().collect());
        let mut none = pin!(claims.none());
        assert!(!is_ready(none.as_mut()));
        drop(claim);
        none.await;
    }

    #[tokio::test]
    async fn nobody_waits_for_a_closed_partition_but_the_end() {
        let claims = Arc::new(Claims::default());
        let mut first = claims.claim(&ids(&[1, 2])).await.unwrap();
        let both = ids(&[2, 7]);
        let mut waits = pin!(claims.claim(&both));
        assert!(!is_ready(waits.as_mut()));
        let two = first.leave_closed(PartitionId::new(2));
        assert!(waits.await.is_none());
        assert!(claims.claim(&ids(&[2])).await.is_none());
        assert!(claims.claim(&ids(&[7])).await.is_some(), "nothing of a refused claim is taken");
        drop(first);
        let mut none = pin!(claims.none());
        assert!(!is_ready(none.as_mut()));
        drop(two);
        none.await;
        assert!(claims.claim(&ids(&[2])).await.is_some());
    }
}
