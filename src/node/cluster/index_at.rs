//! Which node serves the index, as the coordinator says.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Event;
use crate::coordinator::Follows;
use crate::coordinator::Revision;
use crate::coordinator::Snapshot;
use crate::coordinator::claim::Holder;
use crate::coordinator::claim::SERVES_INDEX;
use crate::coordinator::follow;
use crate::env::Clock;
use crate::index::remote::IndexPlace;
use crate::index::remote::ServedAt;

use super::reached::ReachedNodes;

/// Follows the claim to serve the index.
#[derive(Debug)]
pub(super) struct IndexAt {
    coordinator: Arc<dyn Coordinator>,
    reached: Arc<ReachedNodes>,
    /// Who had the claim last, and the revision up to which that is known. The last holder counts
    /// while nobody has the claim: what it says of rows is right as long as it says anything, since
    /// the logs' members give leases for it, and what else it says matters only with that.
    known: watch::Sender<(Option<Holder>, Revision)>,
}

impl IndexAt {
    /// Reads who has the claim. [`Self::follow`] keeps that up to date.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub(super) async fn start(
        coordinator: Arc<dyn Coordinator>,
        reached: Arc<ReachedNodes>,
    ) -> Result<Self, coordinator::Error> {
        let all = coordinator.range(SERVES_INDEX).await?;
        let at = Self { coordinator, reached, known: watch::Sender::default() };
        at.take_all(all);
        Ok(at)
    }

    /// Follows the claim for ever.
    ///
    /// Cancel safe: another call goes on.
    pub(super) async fn follow(&self, clock: &dyn Clock) {
        follow(self.coordinator.as_ref(), clock, self).await;
    }

    fn note(&self, holder: Option<Holder>, revision: Revision) {
        self.known.send_modify(|known| *known = (holder.or(known.0), revision.max(known.1)));
    }
}

impl Follows for IndexAt {
    fn prefix(&self) -> &'static [u8] {
        SERVES_INDEX
    }

    fn revision(&self) -> Revision {
        self.known.borrow().1
    }

    fn take(&self, events: Vec<Event>) {
        for event in events {
            let holder = event.value.and_then(|value| Holder::decode(&value));
            self.note(holder, event.revision);
        }
    }

    fn take_all(&self, all: Snapshot) {
        let holders = all.entries.iter().map(|(_, found)| Holder::decode(&found.value));
        self.note(holders.flatten().next(), all.revision);
    }
}

#[async_trait]
impl IndexPlace for IndexAt {
    fn now(&self) -> ServedAt {
        let holder = self.known.borrow().0;
        let peer = holder.and_then(|holder| self.reached.peer(holder.node));
        peer.map_or(ServedAt::Nowhere, ServedAt::There)
    }

    async fn moved_from(&self, place: &ServedAt) {
        let mut known = self.known.subscribe();
        let ServedAt::There(before) = place else { return std::future::pending().await };
        loop {
            known.borrow_and_update();
            let is_there = match self.now() {
                ServedAt::There(now) => Arc::ptr_eq(&now, before),
                ServedAt::Nowhere => false,
            };
            if !is_there || known.changed().await.is_err() {
                return;
            }
        }
    }
}
