//! Whether the process that has a claim is gone, as another node sees it.

use std::cmp::Ordering;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::coordinator::claim::Holder;
use crate::coordinator::claim::WatchHolder;
use crate::coordinator::nodes::NodeLife;
use crate::coordinator::nodes::NodeTable;
use crate::env::Clock;
use crate::env::net::Dial;
use crate::env::net::TcpDial;

/// How often it is looked whether a process listens at the holder's address.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// So many refused connections in a row show that none does.
const REFUSED: u32 = 2;

/// Looks at the address of the holder. A process that was killed listens no more, and its machine
/// says so at once. A machine that is gone, or a process that stands still, says nothing: its claim
/// ends by itself.
#[derive(Debug)]
pub(super) struct WatchByAddress {
    pub(super) table: Arc<NodeTable>,
    pub(super) clock: Arc<dyn Clock>,
}

impl WatchByAddress {
    /// Whether all addresses of a node refuse connections.
    async fn is_refused(life: &NodeLife) -> bool {
        let Ok(addresses) = TcpDial.resolve(&life.host, life.port).await else { return false };
        for address in &addresses {
            match TcpDial.connect(*address).await {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Ok(_) | Err(_) => return false,
            }
        }
        !addresses.is_empty()
    }
}

#[async_trait]
impl WatchHolder for WatchByAddress {
    async fn gone(&self, holder: Holder) {
        let mut refused = 0;
        while refused < REFUSED {
            self.clock.sleep(LOOKS_EVERY).await;
            let Some(life) = self.table.get(holder.node).and_then(|at| at.life) else { continue };
            match life.incarnation.cmp(&holder.incarnation) {
                // Only one process at a time has the data directory of a node.
                Ordering::Greater => return,
                Ordering::Equal if Self::is_refused(&life).await => refused += 1,
                // The table may be older than the claim.
                Ordering::Equal | Ordering::Less => refused = 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::Coordinator;
    use crate::coordinator::SimulatedStore;
    use crate::coordinator::nodes;
    use crate::coordinator::nodes::Alive;
    use crate::coordinator::nodes::NodeRecord;
    use crate::coordinator::nodes::NodeState;
    use crate::env::Env;
    use crate::env::OsClock;
    use crate::env::SeededRand;
    use crate::env::Tasks;
    use crate::types::ClusterNumber;
    use crate::types::Incarnation;
    use crate::types::NodeRoles;
    use crate::types::Timestamp;

    const CLUSTER: ClusterNumber = ClusterNumber::new(3);

    /// Whether the watch still waits after some looks.
    async fn still_waits(watch: &WatchByAddress, holder: Holder) -> bool {
        tokio::select! {
            biased;
            () = watch.gone(holder) => false,
            () = watch.clock.sleep(LOOKS_EVERY * 6) => true,
        }
    }

    #[tokio::test]
    async fn holder_is_gone_when_nobody_listens_at_the_address_of_its_own_life() {
        let (clock, rand) = (Arc::new(OsClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let coordinator = Arc::new(SimulatedStore::new().open(&env)) as Arc<dyn Coordinator>;
        let node = nodes::new_id(&*coordinator, CLUSTER).await.unwrap();
        let record = NodeRecord {
            name: "one".to_owned(),
            machine: "one".to_owned(),
            zone: "zone".to_owned(),
            state: NodeState::Active,
        };
        nodes::add(&*coordinator, node, &record).await.unwrap();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let life = NodeLife {
            incarnation: Incarnation::new(0),
            roles: NodeRoles::ALL,
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            time: Timestamp::ZERO,
            room: 1 << 30,
            load: 0,
        };
        let alive = Alive::begin(Arc::clone(&coordinator), CLUSTER, node, life).await.unwrap();
        let table = Arc::new(NodeTable::start(Arc::clone(&coordinator)).await.unwrap());
        let watch = WatchByAddress { table, clock: Arc::clone(&env.clock) };
        let incarnation = alive.life().incarnation;
        let holder = Holder { node, incarnation };
        assert!(still_waits(&watch, holder).await, "it accepts connections");
        drop(listener);
        watch.gone(holder).await;
        // The table knows an earlier life only: where the holder lives is not known.
        let later = Holder { node, incarnation: Incarnation::new(incarnation.get() + 1) };
        assert!(still_waits(&watch, later).await);
        let earlier = Holder { node, incarnation: Incarnation::new(incarnation.get() - 1) };
        watch.gone(earlier).await;
    }
}
