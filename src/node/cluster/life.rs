//! The life of a node in its cluster: it begins with a session in the coordinator, and goes on for
//! as long as that.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capacity::CapacityNode;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::nodes::Alive;
use crate::coordinator::nodes::JoinError;
use crate::coordinator::nodes::NodeLife;
use crate::coordinator::nodes::SESSION;
use crate::env::Clock;
use crate::env::Env;
use crate::node::error::NodeError;
use crate::node::listeners::Bound;
use crate::node::storage::Storage;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;
use crate::types::Timestamp;

use super::settings::Place;

/// How long a node waits before it tries again what the coordinator refused.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a start waits for the end of an earlier life.
const EARLIER_LIFE: Duration = SESSION.saturating_add(Duration::from_secs(5));

/// Whether the node must not be a part of the cluster any more, and why.
#[derive(Debug, Default)]
pub(super) struct Over {
    why: Mutex<Option<NodeError>>,
    said: CancellationToken,
}

impl Over {
    /// Says why the node must stop, unless that was said before.
    pub(super) fn say(&self, why: impl Into<NodeError>) {
        let why = why.into();
        tracing::error!(%why, "the node stops");
        if !self.said.is_cancelled() {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        }
        self.said.cancel();
    }

    /// Waits until the node must stop, and returns why.
    pub(super) async fn wait(&self) -> NodeError {
        self.said.cancelled().await;
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner).take();
        why.unwrap_or(NodeError::Removed)
    }
}

pub(super) fn life(storage: &Storage, place: &Place, listener: &Bound) -> NodeLife {
    NodeLife {
        incarnation: Incarnation::new(0),
        roles: place.roles,
        host: place.host.clone(),
        port: listener.address.port(),
        time: Timestamp::ZERO,
        room: storage.capacity.room(),
        // Load is not measured yet: placement weighs room alone.
        load: 0,
    }
}

/// Begins a life. An earlier life of this data directory has ended, but the coordinator may not
/// know it yet.
pub(super) async fn begin(
    env: &Env,
    coordinator: &Arc<dyn Coordinator>,
    cluster: &ClusterRecord,
    (node, life): (NodeId, NodeLife),
) -> Result<Alive, JoinError> {
    let began = env.clock.monotonic();
    let mut is_first = true;
    loop {
        let life = NodeLife { time: env.clock.now(), ..life.clone() };
        match Alive::begin(Arc::clone(coordinator), cluster.number, node, life).await {
            Err(JoinError::Alive { .. }) if env.clock.monotonic() < began + EARLIER_LIFE => {
                if is_first {
                    let most = SESSION.as_secs();
                    tracing::info!(%node, "the session of its earlier life ends in {most} s at most");
                }
                is_first = false;
                env.clock.sleep(PAUSE).await;
            }
            begun => return begun,
        }
    }
}

/// Keeps the life up until the node stops. If its session ends, since the coordinator heard nothing
/// of it, the life is resumed, or the node must stop: if it asks the index.
pub(super) fn live(
    env: &Env,
    mut alive: Alive,
    capacity: Arc<CapacityNode>,
    over: Arc<Over>,
) -> JoinHandle<Alive> {
    let (stop, clock) = (env.tasks.stopping(), Arc::clone(&env.clock));
    env.tasks.spawn("life of the node", async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            why = keep(&mut alive, clock.as_ref(), &capacity) => {
                let is_removed = matches!(why, JoinError::NoSuchNode(_));
                over.say(if is_removed { NodeError::Removed } else { why.into() });
            }
        }
        alive
    })
}

/// Returns when the node must stop.
async fn keep(alive: &mut Alive, clock: &dyn Clock, capacity: &CapacityNode) -> JoinError {
    loop {
        // Room, and a load that is not measured yet (see `life`).
        alive.keep(clock, || (capacity.room(), 0)).await;
        if alive.life().roles.has_some(NodeRoles::ASKING) {
            // Its requests must not go on under the next session (ADR 0057).
            return alive.why_over().await.unwrap_or(JoinError::SessionEnded);
        }
        tracing::warn!("the session of this node has ended: others believed that it was away");
        loop {
            match alive.resume().await {
                Ok(()) => break,
                Err(error @ (JoinError::NoSuchNode(_) | JoinError::Alive { .. })) => return error,
                Err(
                    error @ (JoinError::NameTaken(_)
                    | JoinError::SessionEnded
                    | JoinError::Coordinator(_)),
                ) => {
                    tracing::warn!(%error, "the session of this node is not opened again");
                    clock.sleep(PAUSE).await;
                }
            }
        }
    }
}
