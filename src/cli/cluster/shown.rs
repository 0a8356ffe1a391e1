//! How a cluster is shown.

use serde_json::Value;
use serde_json::json;

use crate::cli::output::on_terminal;
use crate::cli::table::table;
use crate::node::cluster::ClusterStatus;
use crate::node::cluster::NodeStatus;
use crate::node::cluster::Role;
use crate::node::config::Size;

const HEADS: [&str; 10] = [
    "name",
    "state",
    "roles",
    "address",
    "machine",
    "zone",
    "room",
    "groups",
    "partitions",
    "manages",
];

fn roles(node: &NodeStatus) -> Vec<&'static str> {
    node.at.life.as_ref().map(|life| Role::names(life.roles)).unwrap_or_default()
}

fn row(node: &NodeStatus) -> [String; 10] {
    let (record, life) = (&node.at.record, node.at.life.as_ref());
    [
        record.name.clone(),
        node.state().to_owned(),
        roles(node).join(","),
        life.map(|life| format!("{}:{}", life.host, life.port)).unwrap_or_default(),
        record.machine.clone(),
        record.zone.clone(),
        life.map(|life| Size::new(life.room).rounded()).unwrap_or_default(),
        node.groups.to_string(),
        node.partitions.to_string(),
        if node.is_managing { "yes" } else { "" }.to_owned(),
    ]
}

/// A line about the cluster, and one for each node.
pub(super) fn as_text(status: &ClusterStatus) -> String {
    let rows: Vec<[String; 10]> = status.nodes.iter().map(row).collect();
    let ClusterStatus { record, groups, short, unfinished, .. } = status;
    let (number, copies) = (record.number, record.copies);
    let cluster = format!(
        "cluster {number}, {copies} copies; {groups} groups, {short} with fewer copies now, \
         {unfinished} to be repaired\n"
    );
    cluster + &table(on_terminal(), HEADS, &rows)
}

/// The same for programs.
pub(super) fn as_json(status: &ClusterStatus) -> Value {
    let node = |node: &NodeStatus| {
        let (record, life) = (&node.at.record, node.at.life.as_ref());
        json!({
            "id": node.at.id.get(),
            "name": record.name,
            "state": node.state(),
            "roles": roles(node),
            "address": life.map(|life| format!("{}:{}", life.host, life.port)),
            "machine": record.machine,
            "zone": record.zone,
            "room": life.map(|life| life.room),
            "groups": node.groups,
            "serving": node.is_serving,
            "partitions": node.partitions,
            "managing": node.is_managing,
        })
    };
    json!({
        "number": status.record.number.get(),
        "copies": status.record.copies,
        "generation": status.record.generation,
        "groups": status.groups,
        "short_groups": status.short,
        "unfinished_groups": status.unfinished,
        "nodes": status.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::cluster::ClusterRecord;
    use crate::coordinator::nodes::NodeAt;
    use crate::coordinator::nodes::NodeLife;
    use crate::coordinator::nodes::NodeRecord;
    use crate::coordinator::nodes::NodeState;
    use crate::types::ClusterNumber;
    use crate::types::Incarnation;
    use crate::types::NodeId;
    use crate::types::NodeRoles;
    use crate::types::Timestamp;

    fn node(state: NodeState, lives: bool) -> NodeStatus {
        let life = NodeLife {
            incarnation: Incarnation::new(4),
            roles: NodeRoles::CAPACITY.with(NodeRoles::FRONT),
            host: "10.0.0.1".to_owned(),
            port: 10_070,
            time: Timestamp::ZERO,
            room: 3 << 30,
            load: 0,
        };
        let record = NodeRecord {
            name: "a".to_owned(),
            machine: "m".to_owned(),
            zone: "z".to_owned(),
            state,
        };
        let at = NodeAt { id: NodeId::new(9), record, life: lives.then_some(life) };
        let (is_managing, is_serving) = (lives, lives);
        NodeStatus { at, is_managing, is_serving, partitions: 4, groups: 12 }
    }

    #[test]
    fn nodes_are_shown_with_what_they_do_and_those_that_are_away_too() {
        let (roles, address) = ("front,capacity", "10.0.0.1:10070");
        let there = ["a", "active", roles, address, "m", "z", "3072MiB", "12", "4", "yes"];
        assert_eq!(row(&node(NodeState::Active, true)), there);
        let away = ["a", "away", "", "", "m", "z", "", "12", "4", ""];
        assert_eq!(row(&node(NodeState::Draining, false)), away);
        assert_eq!(node(NodeState::Removed, true).state(), "removed");
        let number = ClusterNumber::new(5);
        let record = ClusterRecord { number, id: 1, generation: 1, copies: 3 };
        let nodes = vec![node(NodeState::Active, true), node(NodeState::Active, false)];
        let json = as_json(&ClusterStatus { record, nodes, groups: 20, short: 1, unfinished: 2 });
        assert_eq!(json["nodes"][0]["roles"], json!(["front", "capacity"]));
        assert_eq!(json["nodes"][0]["serving"], true);
        assert_eq!(json["nodes"][0]["partitions"], 4);
        assert_eq!(json["nodes"][1]["address"], Value::Null);
    }
}
