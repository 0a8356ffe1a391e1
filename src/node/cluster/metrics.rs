//! What a node knows of its cluster, as metrics. Each node shows what it follows of the
//! coordinator; what only the node that manages knows, that one shows.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::capacity::groups::GroupFollower;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeState;
use crate::coordinator::nodes::NodeTable;
use crate::index::FollowedMap;
use crate::reclaim::ReclaimMetrics;
use crate::telemetry::Registry;
use crate::types::NodeId;

use super::group_counts::GroupCounts;

/// What the node that manages does. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ManagerMetrics {
    /// 1 while this node manages.
    pub(super) manages: Gauge,
    /// Groups that repair has not finished.
    pub(super) unfinished: Gauge,
    /// Bytes that repair has had copied.
    pub(super) repaired_bytes: Counter,
    /// Of its audits.
    pub(super) audits: ReclaimMetrics,
}

/// What a node follows.
#[derive(Debug)]
pub(super) struct ClusterMetrics {
    pub(super) node: NodeId,
    pub(super) copies: u8,
    pub(super) table: Arc<NodeTable>,
    pub(super) groups: Arc<GroupFollower>,
    pub(super) map: Arc<FollowedMap>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

/// One word for the state of a node.
pub(super) const fn state_of(at: &NodeAt) -> &'static str {
    match (at.record.state, &at.life) {
        (NodeState::Removed, _) => "removed",
        (_, None) => "away",
        (NodeState::Active, Some(_)) => "active",
        (NodeState::Draining, Some(_)) => "draining",
    }
}

impl ClusterMetrics {
    /// Shows all of it.
    pub(super) fn register(self, manager: &ManagerMetrics, registry: &mut Registry) {
        let cluster = registry.sub_registry_with_prefix("cluster");
        let ManagerMetrics { manages, unfinished, repaired_bytes, audits } = manager.clone();
        cluster.register("manages", "1 at the node that manages the index, else 0", manages);
        let help = "Groups that repair has not finished, at the node that manages, else 0";
        cluster.register("unfinished_groups", help, unfinished);
        let help = "Bytes copied by repair, at the node that manages";
        cluster.register("repaired_bytes", help, repaired_bytes);
        for (name, help, counter) in [
            ("audits", "Audits finished, at the node that manages", audits.audits),
            (
                "audits_failed",
                "Audits that ended early; they are tried again",
                audits.audits_failed,
            ),
            ("audited_extents", "Extents audited", audits.audited_extents),
        ] {
            cluster.register(name, help, counter);
        }
        cluster.register_collector(Box::new(self));
    }
}

impl Collector for ClusterMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let nodes = self.table.all();
        let groups = self.groups.all();
        let has_copies =
            |at: &NodeAt| groups.iter().any(|group| group.record.members().contains(&at.id));
        // Nodes without copies come and go as the load wants.
        let shown = |at: &NodeAt| match state_of(at) {
            "away" if !has_copies(at) => "away without copies",
            state => state,
        };
        let help = "Nodes of the cluster by state. Those that were removed do not count.";
        let mut metric = encoder.encode_descriptor("nodes", help, None, MetricType::Gauge)?;
        for state in ["active", "away", "away without copies", "draining"] {
            let count = nodes.iter().filter(|at| shown(at) == state).count() as u64;
            metric.encode_family(&InState { state })?.encode_gauge(&count)?;
        }
        let of = GroupCounts::of(groups.iter().map(|at| &at.record), &nodes, self.copies);
        let served = self.map.all(|one| one.host.node() == self.node).len() as u64;
        for (name, help, value) in [
            ("groups", "Groups of extents that have bytes or may get some.", of.all),
            ("short_groups", "Groups with fewer copies now than the cluster wants.", of.short),
            ("partitions", "Partitions that the map gives to this node.", served),
        ] {
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)?;
        }
        Ok(())
    }
}
