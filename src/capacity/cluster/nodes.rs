//! Where the members of a group are found.

use std::fmt::Debug;
use std::sync::Arc;

use crate::capacity::Member;
use crate::capacity::groups::NodeRow;
use crate::types::NodeId;

/// The nodes of a cluster, as a process reaches them.
pub trait Nodes: Send + Sync + Debug {
    /// The copies of a node; `None` if it is not known where it is.
    fn member(&self, node: NodeId) -> Option<Arc<dyn Member>>;

    /// The node of this process, if it has copies.
    fn here(&self) -> Option<NodeId>;

    /// The table of nodes, by which the members of new groups are chosen.
    fn table(&self) -> Vec<NodeRow>;
}
