//! Whom the store of a data directory belongs to: a node alone, or a node of a cluster. Each
//! refuses the other's, since a node of a cluster does not decide alone where its extents end.

use std::path::Path;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::coordinator::cluster::ClusterRecord;
use crate::node::disks::list::CLUSTER_KEY as KEY;
use crate::node::error::NodeError;
use crate::types::NodeId;

/// The version of the value.
const VERSION: u32 = 1;

/// Whose store it is. Its key in the node's own store has [`Stored`] as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A node that is the whole store.
    Alone,
    /// A node of a cluster.
    Cluster(ClusterRecord),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// The cluster's number.
    number: u16,
    /// The cluster's id, in hexadecimal digits.
    id: String,
    /// The node, once it has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<u64>,
}

impl Stored {
    fn of(record: &ClusterRecord, node: Option<NodeId>) -> Self {
        let id = format!("{:032x}", record.id);
        let node = node.map(NodeId::get);
        Self { version: VERSION, number: record.number.get(), id, node }
    }
}

/// Refuses the store of somebody else to a node of a cluster. Nothing is changed. The list of disks
/// refuses that of a cluster to a node alone.
///
/// # Errors
/// [`NodeError::OfSingleNode`], [`NodeError::OfOtherCluster`], [`NodeError::CoordinatorFailed`].
pub(super) async fn check(
    owner: Owner,
    own: &dyn Coordinator,
    path: &Path,
) -> Result<(), NodeError> {
    let path = path.parent().unwrap_or(path).to_owned();
    let Owner::Cluster(record) = owner else { return Ok(()) };
    match read(own).await? {
        Some(stored) => {
            let expected = Stored::of(&record, None);
            if (stored.number, &stored.id) == (expected.number, &expected.id) {
                Ok(())
            } else {
                Err(NodeError::OfOtherCluster { path })
            }
        }
        // A first start may have been interrupted before the store was marked.
        None if own.range(b"").await?.entries.is_empty() => Ok(()),
        None => Err(NodeError::OfSingleNode { path }),
    }
}

/// Marks a store that nobody has marked.
///
/// # Errors
/// [`NodeError::CoordinatorFailed`].
pub(super) async fn mark(owner: Owner, own: &dyn Coordinator) -> Result<(), NodeError> {
    match owner {
        Owner::Alone => Ok(()),
        Owner::Cluster(_) if read(own).await?.is_some() => Ok(()),
        Owner::Cluster(record) => Ok(write(own, &Stored::of(&record, None)).await?),
    }
}

/// The id of the node whose store it is; `None` before it has one.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn node_of(
    own: &dyn Coordinator,
) -> Result<Option<NodeId>, coordinator::Error> {
    Ok(read(own).await?.and_then(|stored| stored.node).map(NodeId::new))
}

/// Stores the id of the node, for ever.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn set_node(
    own: &dyn Coordinator,
    record: &ClusterRecord,
    node: NodeId,
) -> Result<(), coordinator::Error> {
    write(own, &Stored::of(record, Some(node))).await
}

async fn read(own: &dyn Coordinator) -> Result<Option<Stored>, coordinator::Error> {
    let Some(found) = own.get(KEY).await? else { return Ok(None) };
    let corrupt = |why: String| {
        let reason = format!("what this node knows of its cluster cannot be read: {why}");
        coordinator::Error::Corrupt { reason }
    };
    let stored: Stored =
        serde_json::from_slice(&found.value).map_err(|error| corrupt(error.to_string()))?;
    if stored.version == VERSION {
        Ok(Some(stored))
    } else {
        Err(corrupt(format!("version {}; use the program that wrote it", stored.version)))
    }
}

async fn write(own: &dyn Coordinator, stored: &Stored) -> Result<(), coordinator::Error> {
    let value = serde_json::to_vec(stored).expect("numbers and a string are JSON");
    own.txn(&[], &[Op::Put(Bytes::from_static(KEY), value.into())]).await?;
    Ok(())
}
