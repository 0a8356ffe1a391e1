//! The claims of the processes that serve partitions. Each has one of its own, which it keeps while
//! it serves. Layout: `api-spec/nodes.md`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use bytes::Bytes;

use super::api::Coordinator;
use super::api::Error;
use super::api::Event;
use super::api::Revision;
use super::api::Snapshot;
use super::claim::Holder;
use super::follow::Follows;
use super::follow::follow;
use crate::env::Clock;
use crate::env::Observed;
use crate::types::NodeId;

/// The prefix of the keys.
const PREFIX: &str = "claim/host/";

/// The key of the claim of a node to serve partitions.
#[must_use]
pub fn host_claim(node: NodeId) -> Bytes {
    format!("{PREFIX}{:016x}", node.get()).into()
}

/// A claim to serve partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// The process.
    pub holder: Holder,
    /// Which transaction wrote it. Another one is a claim of another process.
    pub revision: Revision,
}

/// The claims as of one revision. They may be behind the coordinator, never ahead.
#[derive(Debug, Default)]
pub struct HostClaims {
    known: Observed<Known>,
}

#[derive(Debug, Default)]
struct Known {
    claims: BTreeMap<NodeId, HostClaim>,
    /// The nodes that have had a claim since this follows them.
    seen: BTreeSet<NodeId>,
    revision: Revision,
}

impl HostClaims {
    /// Reads all claims. [`Self::follow`] keeps them up to date.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn start(coordinator: &dyn Coordinator) -> Result<Self, Error> {
        let claims = Self::default();
        claims.take_all(coordinator.range(PREFIX.as_bytes()).await?);
        Ok(claims)
    }

    /// Reads all claims again: it knows everything that was changed before this call.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn refresh(&self, coordinator: &dyn Coordinator) -> Result<(), Error> {
        self.take_all(coordinator.range(PREFIX.as_bytes()).await?);
        Ok(())
    }

    /// Follows the claims for ever.
    ///
    /// Cancel safe: another call goes on.
    pub async fn follow(&self, coordinator: &dyn Coordinator, clock: &dyn Clock) {
        follow(coordinator, clock, self).await;
    }

    /// All claims, by node.
    #[must_use]
    pub fn all(&self) -> Vec<HostClaim> {
        self.known.look(|known| known.claims.values().copied().collect())
    }

    /// The claim of a node.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<HostClaim> {
        self.known.look(|known| known.claims.get(&node).copied())
    }

    /// Whether a node has had a claim since this process follows them.
    #[must_use]
    pub fn has_seen(&self, node: NodeId) -> bool {
        self.known.look(|known| known.seen.contains(&node))
    }

    /// Waits until a claim is not held any more. Cancel safe.
    pub async fn ended(&self, claim: HostClaim) {
        let is_over = |known: &Known| known.claims.get(&claim.holder.node) != Some(&claim);
        self.known.wait_until(is_over).await;
    }

    /// Waits until the claims are others than these. Cancel safe.
    pub async fn changed_from(&self, seen: &[HostClaim]) {
        self.known.wait_until(|known| !known.claims.values().eq(seen)).await;
    }
}

impl Known {
    fn put(&mut self, key: &[u8], value: Option<&[u8]>, revision: Revision) {
        let digits = key.strip_prefix(PREFIX.as_bytes());
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let node = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(node) = node.map(NodeId::new) else { return };
        let holder = value.and_then(Holder::decode).filter(|holder| holder.node == node);
        match holder {
            Some(holder) => {
                self.seen.insert(node);
                self.claims.insert(node, HostClaim { holder, revision });
            }
            None => drop(self.claims.remove(&node)),
        }
    }
}

impl Follows for HostClaims {
    fn prefix(&self) -> &'static [u8] {
        PREFIX.as_bytes()
    }

    fn revision(&self) -> Revision {
        self.known.look(|known| known.revision)
    }

    fn take(&self, events: Vec<Event>) {
        self.known.change(|known| {
            // Older ones than the claims that were read again are in them.
            let before = known.revision;
            for Event { key, value, revision } in events {
                if revision > before {
                    known.put(&key, value.as_deref(), revision);
                    known.revision = known.revision.max(revision);
                }
            }
        });
    }

    fn take_all(&self, all: Snapshot) {
        self.known.change(|known| {
            // Claims that came meanwhile are not forgotten.
            if all.revision < known.revision {
                return;
            }
            known.claims.clear();
            known.revision = all.revision;
            for (key, entry) in all.entries {
                known.put(&key, Some(&entry.value), entry.mod_revision);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::types::Incarnation;

    fn claim(node: u64, incarnation: u64) -> Holder {
        Holder { node: NodeId::new(node), incarnation: Incarnation::new(incarnation) }
    }

    #[test]
    fn claims_are_those_of_the_coordinator() {
        let claims = HostClaims::default();
        let event = |node, holder: Option<Holder>, revision| Event {
            key: host_claim(NodeId::new(node)),
            value: holder.map(Holder::encode),
            revision: Revision(revision),
        };
        assert_eq!(host_claim(NodeId::new(258)), "claim/host/0000000000000102");
        claims.take(vec![event(1, Some(claim(1, 7)), 3), event(2, Some(claim(2, 8)), 3)]);
        let first = HostClaim { holder: claim(1, 7), revision: Revision(3) };
        assert_eq!(claims.get(NodeId::new(1)), Some(first));
        assert_eq!(claims.all().len(), 2);
        // Of another node than its key, or of a newer release.
        claims.take(vec![event(2, Some(claim(3, 8)), 4)]);
        assert_eq!(claims.get(NodeId::new(2)), None);
        claims.take(vec![event(1, None, 5)]);
        assert!(claims.all().is_empty());
        assert!(claims.has_seen(NodeId::new(1)) && !claims.has_seen(NodeId::new(3)));
        assert_eq!(claims.revision(), Revision(5));
    }

    #[tokio::test]
    async fn end_of_a_claim_is_waited_for() {
        let claims = HostClaims::default();
        let put = |incarnation, revision| {
            let (node, value) = (NodeId::new(1), Some(claim(1, incarnation).encode()));
            claims.take(vec![Event { key: host_claim(node), value, revision: Revision(revision) }]);
        };
        put(7, 1);
        let first = claims.get(NodeId::new(1)).unwrap();
        let mut ended = Box::pin(claims.ended(first));
        assert!(futures_util::poll!(&mut ended).is_pending());
        // A later life has it.
        put(8, 2);
        assert!(futures_util::poll!(&mut ended).is_ready());
        claims.changed_from(&[first]).await;
    }

    #[tokio::test]
    async fn events_and_answers_that_come_late_change_nothing() {
        use std::sync::Arc;
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let coordinator = SimulatedStore::new().open(&env);
        let claims = HostClaims::start(&coordinator).await.unwrap();
        let put = |node, life| {
            crate::coordinator::Op::Put(host_claim(NodeId::new(node)), claim(node, life).encode())
        };
        coordinator.txn(&[], &[put(1, 1)]).await.unwrap();
        let old = coordinator.range(PREFIX.as_bytes()).await.unwrap();
        coordinator.txn(&[], &[put(1, 2), put(2, 1)]).await.unwrap();
        claims.refresh(&coordinator).await.unwrap();
        let all = claims.all();
        assert_eq!(all.len(), 2);
        // The watch is behind.
        let gone = Event { key: host_claim(NodeId::new(1)), value: None, revision: old.revision };
        claims.take(vec![gone]);
        claims.take_all(old);
        assert_eq!(claims.all(), all);
    }
}
