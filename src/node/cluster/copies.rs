//! The copies of a node: it follows the records of their groups, settles those that nobody else
//! settles, mends what is damaged, and frees what others have freed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::capacity::CapacityNode;
use crate::capacity::LocalMember;
use crate::capacity::cluster::ClusterCapacity;
use crate::capacity::cluster::Settled;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::KnownGroups;
use crate::coordinator;
use crate::coordinator::nodes::NodeTable;
use crate::env::Clock;
use crate::env::Env;
use crate::env::Tasks;
use crate::node::error::NodeError;
use crate::node::storage::Storage;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;

use super::absent::Absent;
use super::absent::DEAD_AFTER;
use super::settings::Place;
use super::tasks::run;

/// How soon after the start other members are asked what they have freed, and how often extents are
/// removed of which nothing is used.
const FREES_AFTER: Duration = Duration::from_secs(20);
/// How often other members are asked.
const FREES_EVERY: Duration = Duration::from_secs(24 * 3600);
/// The pause between two extents.
const FREES_APART: Duration = Duration::from_millis(5);
/// How often copies that have no end yet are looked at.
const SETTLES_EVERY: Duration = Duration::from_secs(3);

/// The copies of this node, if it has the role for them. A node without it must have none.
pub(super) async fn own_copies(
    env: &Env,
    storage: &Storage,
    (node, place): (NodeId, &Place),
    groups: &Arc<GroupFollower>,
) -> Result<Option<Arc<LocalMember>>, NodeError> {
    if place.roles.has(NodeRoles::CAPACITY) {
        return Ok(Some(Arc::new(member(env, storage, node, groups).await?)));
    }
    if storage.capacity.extents().await.is_empty() {
        return Ok(None);
    }
    Err(NodeError::NeedsCapacity { name: place.name.clone() })
}

/// The copies of this node. It follows the records of groups from now on.
async fn member(
    env: &Env,
    storage: &Storage,
    node: NodeId,
    groups: &Arc<GroupFollower>,
) -> Result<LocalMember, coordinator::Error> {
    let own = Arc::clone(&storage.coordinator);
    let known = KnownGroups::open(node, own, Arc::clone(groups)).await?;
    let member = LocalMember::new(Arc::clone(&storage.capacity)).heeding(Arc::new(known));
    let (following, clock) = (member.clone(), Arc::clone(&env.clock));
    run(&env.tasks, "groups of a node", async move {
        following.follow_groups(clock.as_ref()).await;
    });
    Ok(member)
}

/// Mends the copies of this node and settles them, from now on.
pub(super) fn look_after_copies(
    tasks: &Tasks,
    (clock, capacity): (&Arc<dyn Clock>, &Arc<ClusterCapacity>),
    (storage, local): (&Storage, Arc<LocalMember>),
    table: &Arc<NodeTable>,
) {
    local.note_missing();
    let mending = Arc::clone(capacity);
    let mended = Arc::clone(&local);
    run(tasks, "mend copies", async move { mending.mend_local(&mended).await });
    let (freeing, own, timed) = (Arc::clone(capacity), Arc::clone(&local), Arc::clone(clock));
    run(tasks, "frees of copies", async move { follow_frees(&freeing, &own, &*timed).await });
    let (own, capacity) = (Arc::clone(&storage.capacity), Arc::clone(capacity));
    let settling = settle(Arc::clone(clock), capacity, own, Arc::clone(table));
    run(tasks, "settle copies", settling);
}

/// Frees what the copies of this node have missed, soon after the start and then once a day, and
/// removes extents of which nothing is used any more, for ever.
async fn follow_frees(cluster: &ClusterCapacity, local: &LocalMember, clock: &dyn Clock) {
    let mut next_round = clock.monotonic() + FREES_AFTER;
    loop {
        clock.sleep(FREES_AFTER).await;
        let removed = cluster.remove_dead(local).await;
        if removed > 0 {
            tracing::debug!(removed, "extents without used bytes were removed");
        }
        if clock.monotonic() < next_round {
            continue;
        }
        let (mut freed, mut failed) = (0, None);
        for extent in local.whole_extents() {
            match cluster.catch_up_frees(extent, local).await {
                Ok(bytes) => freed += bytes,
                Err(error) => failed = Some(error),
            }
            clock.sleep(FREES_APART).await;
        }
        if let Some(error) = failed {
            tracing::info!(%error, "some copies may have bytes that others have freed");
        }
        if freed > 0 {
            tracing::info!(freed, "bytes were freed that other nodes had freed before");
        }
        next_round = clock.monotonic() + FREES_EVERY;
    }
}

/// Settles the copies of this node that nobody else settles, for ever.
async fn settle(
    clock: Arc<dyn Clock>,
    cluster: Arc<ClusterCapacity>,
    own: Arc<CapacityNode>,
    table: Arc<NodeTable>,
) {
    // Writers without a session.
    let absent: Mutex<Absent<Incarnation>> = Mutex::default();
    // What was logged last.
    let mut failing = None;
    loop {
        let now = clock.monotonic();
        let lives = table.all().into_iter().filter_map(|at| at.life);
        let lives: BTreeSet<Incarnation> = lives.map(|life| life.incarnation).collect();
        let is_dead = |writer: Incarnation| {
            let mut absent = absent.lock().unwrap_or_else(PoisonError::into_inner);
            if lives.contains(&writer) {
                absent.forget(&writer);
                return false;
            }
            absent.note(writer, DEAD_AFTER, now)
        };
        let settled = cluster.settle_copies(own.unsealed(), is_dead).await;
        let Settled { sealed, left, failed } = settled;
        let now_failing = failed.as_ref().map(|(extent, _)| *extent);
        if let Some((extent, error)) = failed.filter(|_| now_failing != failing) {
            tracing::warn!(%extent, %error, sealed, left, "a copy has no end yet");
        } else if sealed > 0 {
            tracing::info!(sealed, left, "copies were settled");
        }
        failing = now_failing;
        clock.sleep(SETTLES_EVERY).await;
    }
}
