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
use crate::types::ClusterNumber;
use crate::types::NodeId;

/// The version of the value.
const VERSION: u32 = 1;
/// What the keys begin with that the store of a node of a cluster has: its disks and whose it is,
/// and what it has followed (`capacity/groups/known.rs`).
const KEPT: [&[u8]; 2] = [b"node/", b"followed/"];
/// Keys that one transaction removes.
const TOGETHER: usize = 64;

/// Whose store it is. Its key in the node's own store has [`Stored`] as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A node that is the whole store.
    Alone,
    /// A node that is the whole store, and becomes the first node of a cluster.
    Founder,
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
    /// Whether the store still has the index of a node alone, which becomes that of the cluster.
    #[serde(default, skip_serializing_if = "is_false")]
    adopting: bool,
    /// Whether the transaction that makes the cluster may have been sent.
    #[serde(default, skip_serializing_if = "is_false")]
    finishing: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Stored {
    fn of(record: &ClusterRecord, node: Option<NodeId>) -> Self {
        let id = format!("{:032x}", record.id);
        let node = node.map(NodeId::get);
        let (adopting, finishing) = (false, false);
        Self { version: VERSION, number: record.number.get(), id, node, adopting, finishing }
    }
}

/// A node alone that becomes the first node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) struct Founding {
    /// The number of the cluster.
    pub(in crate::node) number: ClusterNumber,
    /// Its id.
    pub(in crate::node) id: u128,
    /// Whether the cluster may be made, somewhere.
    pub(in crate::node) is_finishing: bool,
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
    let found = read(own).await?;
    let record = match owner {
        Owner::Alone => return Ok(()),
        Owner::Founder => {
            let is_node = found.is_some_and(|stored| !stored.adopting);
            return if is_node { Err(NodeError::OfCluster { path }) } else { Ok(()) };
        }
        Owner::Cluster(record) => record,
    };
    match found {
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
        Owner::Alone | Owner::Founder => Ok(()),
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

/// The cluster that a node alone is founding, if it is.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn founding(
    own: &dyn Coordinator,
) -> Result<Option<Founding>, coordinator::Error> {
    let Some(stored) = read(own).await?.filter(|stored| stored.adopting) else { return Ok(None) };
    let id = u128::from_str_radix(&stored.id, 16).map_err(|error| corrupt(&error.to_string()))?;
    let (number, is_finishing) = (ClusterNumber::new(stored.number), stored.finishing);
    Ok(Some(Founding { number, id, is_finishing }))
}

/// Marks the store of a node alone: from now on no start as a node alone opens it.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn found(
    own: &dyn Coordinator,
    record: &ClusterRecord,
    node: NodeId,
) -> Result<(), coordinator::Error> {
    write(own, &Stored { adopting: true, ..Stored::of(record, Some(node)) }).await
}

/// Notes that the cluster is about to be made, so that the store founds no other one.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn finishing(own: &dyn Coordinator) -> Result<(), coordinator::Error> {
    let Some(stored) = read(own).await? else { return Ok(()) };
    write(own, &Stored { finishing: true, ..stored }).await
}

/// The store is that of a node of a cluster from now on: its cluster has the index. What is left of
/// the index here is removed.
///
/// # Errors
/// Those of its own store. A later call goes on.
pub(in crate::node) async fn founded(own: &dyn Coordinator) -> Result<(), coordinator::Error> {
    let Some(stored) = read(own).await? else { return Ok(()) };
    if stored.adopting {
        write(own, &Stored { adopting: false, finishing: false, ..stored }).await?;
    }
    let all = own.range(b"").await?.entries.into_iter().map(|(key, _)| key);
    let is_kept = |key: &Bytes| KEPT.iter().any(|prefix| key.starts_with(prefix));
    let old: Vec<Op> = all.filter(|key| !is_kept(key)).map(Op::Delete).collect();
    for some in old.chunks(TOGETHER) {
        own.txn(&[], some).await?;
    }
    Ok(())
}

/// Takes the mark of [`found`] away: the store is that of a node alone again.
///
/// # Errors
/// Those of its own store.
pub(in crate::node) async fn unfound(own: &dyn Coordinator) -> Result<(), coordinator::Error> {
    own.txn(&[], &[Op::Delete(Bytes::from_static(KEY))]).await.map(|_| ())
}

fn corrupt(why: &str) -> coordinator::Error {
    let reason = format!("what this node knows of its cluster cannot be read: {why}");
    coordinator::Error::Corrupt { reason }
}

async fn read(own: &dyn Coordinator) -> Result<Option<Stored>, coordinator::Error> {
    let Some(found) = own.get(KEY).await? else { return Ok(None) };
    let stored: Stored =
        serde_json::from_slice(&found.value).map_err(|error| corrupt(&error.to_string()))?;
    if stored.version == VERSION {
        Ok(Some(stored))
    } else {
        Err(corrupt(&format!("version {}; use the program that wrote it", stored.version)))
    }
}

async fn write(own: &dyn Coordinator, stored: &Stored) -> Result<(), coordinator::Error> {
    let value = serde_json::to_vec(stored).expect("numbers and a string are JSON");
    own.txn(&[], &[Op::Put(Bytes::from_static(KEY), value.into())]).await?;
    Ok(())
}
