//! The extents that this process creates: dealt from groups that it makes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex as AsyncMutex;

use super::Nodes;
use crate::capacity::ExtentIds;
use crate::capacity::ExtentKind;
use crate::capacity::groups;
use crate::capacity::groups::Dealer;
use crate::capacity::groups::Dealt;
use crate::capacity::groups::GroupFollower;
use crate::capacity::groups::GroupMaker;
use crate::capacity::groups::GroupRecord;
use crate::capacity::groups::GroupState;
use crate::capacity::groups::NodeRow;
use crate::capacity::groups::Placed;
use crate::capacity::groups::Want;
use crate::capacity::groups::place_apart;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Reason;
use crate::coordinator::nodes::NodeState;
use crate::env::Env;
use crate::types::ClusterNumber;
use crate::types::ExtentId;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

/// How long a node gets nothing new after a failure. It doubles with each further one.
const PASSED_OVER: Duration = Duration::from_secs(5);
/// The longest time.
const PASSED_OVER_MAX: Duration = Duration::from_secs(60);
/// A node is full if it has less room.
pub(super) const ROOM_MIN: u64 = 1 << 30;
/// The same for logs and runs, which are short and may use what disks hold back for them. Without a
/// new log a partition does not open.
const INDEX_ROOM_MIN: u64 = 32 << 20;

/// What a process needs for using the extents of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterParts {
    /// The machine.
    pub env: Env,
    /// Has the records of groups.
    pub coordinator: Arc<dyn Coordinator>,
    /// Follows them.
    pub groups: Arc<GroupFollower>,
    /// The nodes of the cluster.
    pub nodes: Arc<dyn Nodes>,
    /// The number of the cluster.
    pub cluster: ClusterNumber,
    /// This process.
    pub writer: Incarnation,
    /// How many copies an extent has.
    pub copies: usize,
}

/// The extents that this process creates. Groups of data and groups of the index are made apart;
/// logs and runs are created in the same ones.
#[derive(Debug)]
pub struct GroupIds {
    /// For tasks.
    this: Weak<Self>,
    parts: ClusterParts,
    maker: GroupMaker,
    data: AsyncMutex<Dealer>,
    index: AsyncMutex<Dealer>,
    /// Nodes that are passed over.
    suspects: Mutex<BTreeMap<NodeId, Suspect>>,
    /// Extents that were created since groups were looked after last.
    created: Mutex<Vec<ExtentId>>,
    /// Extents of other processes that nobody had when they were released. They may be created
    /// until their groups are closed.
    unused: Mutex<BTreeSet<ExtentId>>,
    /// Groups that are to be closed.
    closing: Mutex<BTreeSet<GroupId>>,
    is_refilling: AtomicBool,
    /// Whether this process has created a log or a run: it serves the index.
    serves_index: AtomicBool,
}

/// A node that failed.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// When it failed last.
    at: Duration,
    until: Duration,
    pause: Duration,
}

/// While this is there, a task looks after the groups.
struct Refilling<'a>(&'a AtomicBool);

impl Drop for Refilling<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The kinds of groups.
const KINDS: [ExtentKind; 2] = [ExtentKind::Data, ExtentKind::Log];

/// The kind of the groups in which extents of this kind are created.
pub(super) const fn group_kind(kind: ExtentKind) -> ExtentKind {
    match kind {
        ExtentKind::Data => ExtentKind::Data,
        ExtentKind::Log | ExtentKind::Run => ExtentKind::Log,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn room_min(kind: ExtentKind) -> u64 {
    match kind {
        ExtentKind::Data => ROOM_MIN,
        ExtentKind::Log | ExtentKind::Run => INDEX_ROOM_MIN,
    }
}

/// Whether a node gets new extents.
fn takes(table: &[NodeRow], node: NodeId) -> bool {
    let row = table.iter().find(|row| row.id == node);
    row.is_some_and(|row| row.state == NodeState::Active && !row.is_away)
}

impl GroupIds {
    /// Makes no group yet.
    #[must_use]
    pub fn new(parts: ClusterParts) -> Arc<Self> {
        let maker = GroupMaker::new(Arc::clone(&parts.coordinator), parts.cluster, parts.writer);
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            parts,
            maker,
            data: AsyncMutex::default(),
            index: AsyncMutex::default(),
            suspects: Mutex::default(),
            created: Mutex::default(),
            unused: Mutex::default(),
            closing: Mutex::default(),
            is_refilling: AtomicBool::new(false),
            serves_index: AtomicBool::new(false),
        })
    }

    const fn dealer(&self, kind: ExtentKind) -> &AsyncMutex<Dealer> {
        match kind {
            ExtentKind::Data => &self.data,
            ExtentKind::Log | ExtentKind::Run => &self.index,
        }
    }

    /// Passes a node over for a while: it failed or was silent.
    pub(super) fn suspect(&self, node: NodeId) {
        let now = self.parts.env.clock.monotonic();
        let mut suspects = lock(&self.suspects);
        let known = suspects.get(&node).copied();
        let (until, pause) = match known {
            // By an extent that was open before.
            Some(known) if now < known.until => (known.until, known.pause),
            // A node that was well for as long as it had been passed over begins anew.
            Some(known) if now < known.until + known.pause => {
                let pause = (known.pause * 2).min(PASSED_OVER_MAX);
                (now + pause, pause)
            }
            Some(_) | None => (now + PASSED_OVER, PASSED_OVER),
        };
        if known.is_none_or(|known| known.until < until) {
            tracing::warn!(%node, ?pause, "a node failed and gets no new extents for a while");
        }
        suspects.insert(node, Suspect { at: now, until, pause });
    }

    /// The nodes that failed lately, the last one first.
    pub(super) fn suspects(&self) -> Vec<NodeId> {
        let now = self.parts.env.clock.monotonic();
        let suspects = lock(&self.suspects);
        let lately = suspects.iter().filter(|(_, one)| now < one.until);
        let mut lately: Vec<_> = lately.map(|(node, one)| (Reverse(one.at), *node)).collect();
        lately.sort_unstable();
        lately.into_iter().map(|(_, node)| node).collect()
    }

    /// The nodes that get nothing new now: all that failed lately, if there are enough others; else
    /// only the one that failed last, which costs a copy. With two nodes too few nothing is
    /// written, so the others are tried again.
    pub(super) fn passed_over(&self) -> Vec<NodeId> {
        let mut nodes = self.suspects();
        if nodes.is_empty() {
            return nodes;
        }
        let found = |without: &[NodeId]| self.place(ROOM_MIN, without, (&[], 0)).members.len();
        if found(&nodes) < self.parts.copies {
            nodes.truncate(1);
        }
        if found(&nodes) < self.copies_min() {
            nodes.clear();
        }
        nodes
    }

    /// How many copies an extent has.
    pub(super) const fn copies(&self) -> usize {
        self.parts.copies
    }

    /// One copy less than wanted, and never none.
    pub(super) fn copies_min(&self) -> usize {
        self.parts.copies.saturating_sub(1).max(1)
    }

    /// Whether extents are better created in another group: a member is passed over.
    pub(super) fn avoids(&self, record: &GroupRecord) -> bool {
        self.passed_over().iter().any(|node| record.has_member(*node))
    }

    /// Whether a closed group will get other members: one of them takes nothing new, or it has
    /// fewer copies than there could be.
    pub(super) fn leaves(&self, record: &GroupRecord) -> bool {
        let table = self.parts.nodes.table();
        let is_left = record.members().iter().any(|node| !takes(&table, *node));
        let has_fewer = || {
            let possible = self.place(ROOM_MIN, &self.passed_over(), (&[], 0)).members.len();
            record.members().len() < possible
        };
        record.state() == GroupState::Closed && (is_left || has_fewer())
    }

    /// Whether the extents of a group are created by this process.
    pub(super) fn is_writer(&self, record: &GroupRecord) -> bool {
        record.writer() == self.parts.writer
    }

    /// Notes that nobody has an extent of another process, which is to be released.
    pub(super) fn wait_for_closing(&self, extent: ExtentId) {
        lock(&self.unused).insert(extent);
    }

    /// Notes that an extent is gone, so that nobody creates it any more.
    pub(super) fn forget_unused(&self, extent: ExtentId) {
        lock(&self.unused).remove(&extent);
    }

    /// Whether nobody had an extent of another process when it was to be released, and its group is
    /// open still. Then its members need not be asked again.
    pub(super) fn waits_for_closing(&self, extent: ExtentId, record: &GroupRecord) -> bool {
        let mut unused = lock(&self.unused);
        unused.contains(&extent) && (record.state() == GroupState::Open || !unused.remove(&extent))
    }

    /// Notes that all members have an extent, or that it is never created.
    pub(super) fn created(&self, extent: ExtentId) {
        lock(&self.created).push(extent);
    }

    /// Members for a group, on nodes with so much room, without these nodes, beside the groups of
    /// the others.
    fn place(
        &self,
        room_min: u64,
        without: &[NodeId],
        (others, random): (&[NodeId], u64),
    ) -> Placed {
        let mut table = self.parts.nodes.table();
        for row in &mut table {
            row.is_away |= without.contains(&row.id);
        }
        let want = Want { copies: self.parts.copies, room_min, random };
        place_apart(&table, want, others)
    }

    /// Makes a group and adds it to those that are dealt.
    async fn make(
        &self,
        kind: ExtentKind,
        dealer: &mut Dealer,
        without: &[NodeId],
    ) -> Result<(), coordinator::Error> {
        let random = self.parts.env.rand.next_u64();
        let Placed { members, full_machines } =
            self.place(room_min(kind), without, (&dealer.members(), random));
        // A full node is not an absent one.
        if members.len() < self.parts.copies && full_machines > 0 {
            let reason = Reason::full("too few nodes of the cluster have room".to_owned());
            return Err(coordinator::Error::Unavailable { reason });
        }
        if members.len() < self.copies_min() {
            let reason = "too few nodes of the cluster take new extents".into();
            return Err(coordinator::Error::Unavailable { reason });
        }
        if members.len() < self.parts.copies {
            tracing::warn!(?members, "there are too few nodes: a group has fewer copies");
        }
        match self.maker.make(kind, &members).await {
            Ok(group) => {
                self.parts.groups.note(group.clone());
                dealer.add(group);
                Ok(())
            }
            Err(groups::Error::Coordinator(error)) => Err(error),
            Err(error) => Err(coordinator::Error::Unavailable { reason: error.to_string().into() }),
        }
    }

    /// Looks after the groups of a kind: closes those that are used up or have a member that is
    /// away, and makes as many as are wanted.
    async fn refill(
        &self,
        kind: ExtentKind,
        created: &[ExtentId],
    ) -> Result<(), coordinator::Error> {
        let mut dealer = self.dealer(kind).lock().await;
        for extent in created {
            dealer.created(*extent);
        }
        let table = self.parts.nodes.table();
        let mut closing = Vec::new();
        for node in dealer.members().into_iter().filter(|node| !takes(&table, *node)) {
            closing.append(&mut dealer.without_member(node));
        }
        // Made while nodes were passed over.
        let copies = self.place(ROOM_MIN, &self.passed_over(), (&[], 0)).members.len();
        closing.append(&mut dealer.with_fewer_members(copies));
        closing.append(&mut dealer.used_up());
        lock(&self.closing).extend(closing);
        for _ in 0..dealer.wants(self.parts.env.clock.monotonic()) {
            let without = self.passed_over();
            self.make(kind, &mut dealer, &without).await?;
        }
        Ok(())
    }

    async fn close_groups(&self) {
        let closing = std::mem::take(&mut *lock(&self.closing));
        for group in closing {
            let closed = |record: &GroupRecord| Ok(record.closed());
            match groups::change(&*self.parts.coordinator, group, &[], closed).await {
                Ok(at) => self.parts.groups.note(at),
                Err(error) => {
                    tracing::debug!(%group, %error, "a group is closed later");
                    lock(&self.closing).insert(group);
                }
            }
        }
    }

    /// Looks after all groups in a task, unless one does. Called for each id that is issued, and
    /// every few seconds by a process that issues none.
    pub fn look_after(&self) {
        let Some(this) = self.this.upgrade() else { return };
        if self.is_refilling.swap(true, Ordering::AcqRel) {
            return;
        }
        let tasks = self.parts.env.tasks.clone();
        drop(tasks.spawn("groups", async move {
            // Also after a panic.
            let refilling = Refilling(&this.is_refilling);
            let created = std::mem::take(&mut *lock(&this.created));
            let serves_index = this.serves_index.load(Ordering::Relaxed);
            for kind in KINDS.into_iter().filter(|kind| *kind == ExtentKind::Data || serves_index) {
                if let Err(error) = this.refill(kind, &created).await {
                    tracing::debug!(%error, "a group is made later");
                }
            }
            this.close_groups().await;
            drop(refilling);
        }));
    }

    async fn deal(&self, kind: ExtentKind) -> Result<Dealt, coordinator::Error> {
        if group_kind(kind) == ExtentKind::Log {
            self.serves_index.store(true, Ordering::Relaxed);
        }
        let mut dealer = self.dealer(kind).lock().await;
        let passed_over = self.passed_over();
        let mut avoid = &passed_over[..];
        if dealer.least_of(avoid) != Some(0)
            && let Err(error) = self.make(group_kind(kind), &mut dealer, avoid).await
        {
            // A group with a node that is passed over is better than none, and one with all its
            // copies better than one with fewer.
            avoid = &[];
            if dealer.least_of(avoid).is_none()
                && self.make(group_kind(kind), &mut dealer, avoid).await.is_err()
            {
                return Err(error);
            }
        }
        let dealt = dealer.deal(self.parts.env.clock.monotonic(), avoid);
        dealt.ok_or_else(|| coordinator::Error::Unavailable { reason: "no group is left".into() })
    }
}

#[async_trait]
impl ExtentIds for GroupIds {
    async fn next_extent(&self, kind: ExtentKind) -> Result<ExtentId, coordinator::Error> {
        let dealt = self.deal(kind).await?;
        self.look_after();
        Ok(dealt.extent)
    }
}
