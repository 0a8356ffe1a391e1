//! Makes the store of a node alone the first node of a new cluster, in place (ADR 0063).
//!
//! 1. The store is marked: no start as a node alone opens it any more.
//! 2. What its coordinator holds of the index is copied to that of the cluster, with this node as
//!    the host of all partitions, and each group of its extents gets a record. Nobody counts that
//!    yet.
//! 3. The store notes that, and one transaction makes the cluster.
//! 4. The store forgets the index that it had.
//!
//! An interrupted adoption is finished by the same command, or by a start of the node once the
//! cluster is made. Until then it can be undone.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use crate::capacity::Capacity;
use crate::capacity::ExtentState;
use crate::capacity::groups;
use crate::capacity::groups::GroupRecord;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::coordinator::adoption::Adoption;
use crate::coordinator::adoption::Found;
use crate::coordinator::cluster::ClusterError;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::counter::NODE_IDS;
use crate::env::Env;
use crate::index;
use crate::index::ExtentRecord;
use crate::index::PartitionDescriptor;
use crate::index::PartitionMap;
use crate::index::UNRECORDED_KEY;
use crate::index::open_offline;
use crate::node::config::master_key_beside;
use crate::node::disks::State;
use crate::node::disks::directories;
use crate::node::disks::read as read_disks;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::storage::Founding;
use crate::node::storage::Storage;
use crate::node::storage::finishing;
use crate::node::storage::found;
use crate::node::storage::founded;
use crate::node::storage::founding;
use crate::node::storage::unfound;
use crate::types::ClusterNumber;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GroupId;
use crate::types::HostId;
use crate::types::NodeId;

use super::authority::Authority;
use super::coordinator::connect;
use super::init::new_record;
use super::settings::CoordinatorSettings;

/// Why a node alone cannot become the first node of a cluster. Each message says what to do.
#[derive(Debug, Error)]
pub enum AdoptError {
    /// There is no index.
    #[error("{0} has no index yet: start `blockyard node` with an empty directory instead")]
    NoIndex(PathBuf),
    /// A disk is being emptied.
    #[error(
        "the disk {0} is being drained: let `blockyard serve` finish that and remove the disk, or \
         put it back in use"
    )]
    Draining(String),
    /// A disk cannot be used.
    #[error("a disk of the store is out of service, and what lies on it would be lost: repair it")]
    DiskOut,
    /// The store has no key ring, or perhaps plain secrets.
    #[error("{0} was last written by an older release: start `blockyard serve` once, and stop it")]
    OldSecrets(PathBuf),
    /// An extent is open.
    #[error("extent {0} could not be sealed: start `blockyard serve` once, and stop it")]
    NotSealed(ExtentId),
    /// It was begun as the node of a cluster of another number.
    #[error("it was begun with --number {0}: give the same one, or undo it with --undo first")]
    OtherNumber(ClusterNumber),
    /// The cluster may have been made in another coordinator.
    #[error(
        "this store may have become the first node of cluster {0} in another etcd or under another \
         --coordinator-prefix: give those of the first try"
    )]
    Elsewhere(ClusterNumber),
    /// The index cannot be read.
    #[error("{0}: `blockyard check` tells more; repair the store before it is adopted")]
    Damaged(index::Error),
    /// Logs and runs may be in no record.
    #[error(
        "some extents of an older release are in no record yet: start `blockyard serve` once with \
         all its disks, and stop it"
    )]
    Unrecorded,
    /// There is nothing to undo.
    #[error("{0} is not being adopted: there is nothing to undo")]
    NotBegun(PathBuf),
}

/// The store, and what the cluster is to be.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// All data directories of the node, in order.
    pub data: Vec<PathBuf>,
    /// Its master key file; `None`: the one beside the first directory.
    pub master_key_file: Option<PathBuf>,
    /// The number of the cluster; drawn if `None`.
    pub number: Option<ClusterNumber>,
    /// Copies of each extent.
    pub copies: u8,
}

/// What was adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedStore {
    /// The cluster.
    pub cluster: ClusterRecord,
    /// Partitions of the index.
    pub partitions: usize,
    /// Extents, which have one copy now.
    pub extents: usize,
}

/// Makes the store of a stopped node alone the first node of a new cluster.
///
/// # Errors
/// [`NodeError`]. If the store was marked before, the same call goes on with it.
pub async fn adopt(
    settings: &CoordinatorSettings,
    adopt: &Adopt,
    env: &Env,
) -> Result<AdoptedStore, NodeError> {
    directories::check(&adopt.data)?;
    let coordinator = connect(settings, env).await?;
    let storage = Storage::open_to_found(&adopt.data, env).await?;
    let adopted = adopt_store(&storage, &*coordinator, adopt, env).await;
    storage.capacity.shutdown().await;
    adopted
}

/// Gives an interrupted adoption up: the store is that of a node alone again. Returns whether there
/// was something of it in this coordinator.
///
/// # Errors
/// [`NodeError`]; [`ClusterError::Made`] if the cluster is made.
pub async fn undo(
    settings: &CoordinatorSettings,
    data: &[PathBuf],
    env: &Env,
) -> Result<bool, NodeError> {
    directories::check(data)?;
    let coordinator = connect(settings, env).await?;
    let storage = Storage::open_to_found(data, env).await?;
    let undone = undo_store(&storage, &*coordinator, first(data)).await;
    storage.capacity.shutdown().await;
    undone
}

async fn undo_store(
    storage: &Storage,
    coordinator: &dyn Coordinator,
    first: &Path,
) -> Result<bool, NodeError> {
    let own = storage.coordinator.as_ref();
    let begun = founding(own).await?.ok_or_else(|| AdoptError::NotBegun(first.to_owned()))?;
    let record = record_of(begun, 1);
    let made = ClusterError::Made { number: record.number };
    let is_here = match Adoption::find(coordinator, &record).await {
        Ok(Found::Live) => return Err(made.into()),
        Ok(Found::Begun) => {
            let adoption = Adoption::begin(coordinator, record).await?.ok_or(made)?;
            adoption.undo(is_copied).await?;
            true
        }
        // What is here belongs to somebody else.
        Ok(Found::Nothing)
        | Err(ClusterError::Made { .. } | ClusterError::Adopting | ClusterError::NotEmpty { .. }) =>
        {
            if begun.is_finishing {
                return Err(AdoptError::Elsewhere(begun.number).into());
            }
            false
        }
        Err(error) => return Err(error.into()),
    };
    unfound(own).await?;
    Ok(is_here)
}

/// Whether a key of the cluster's coordinator is one that an adoption copies.
fn is_copied(key: &[u8]) -> bool {
    groups::is_key(key) || PartitionDescriptor::is_key(key) || ExtentRecord::is_key(key)
}

fn first(data: &[PathBuf]) -> &Path {
    data.first().map_or_else(|| Path::new(""), PathBuf::as_path)
}

fn record_of(Founding { number, id, .. }: Founding, copies: u8) -> ClusterRecord {
    ClusterRecord { number, id, generation: 1, copies }
}

async fn adopt_store(
    storage: &Storage,
    coordinator: &dyn Coordinator,
    adopt: &Adopt,
    env: &Env,
) -> Result<AdoptedStore, NodeError> {
    let own = storage.coordinator.as_ref();
    let path = first(&adopt.data);
    let file = match &adopt.master_key_file {
        Some(file) => file.clone(),
        None => master_key_beside(path)?,
    };
    let old_secrets = || AdoptError::OldSecrets(path.to_owned());
    let ring = master_key::open_for_check(&file, own).await?.ok_or_else(old_secrets)?;
    let key_ring = master_key::handed_over(own).await?.ok_or_else(old_secrets)?;
    let record = record_for(own, coordinator, adopt, env).await?;
    // The first id of its counter.
    let node = NodeId::new(record.number.ids().start);
    let groups = groups_of(storage, node).await?;
    let map = PartitionMap::load(own).await?;
    if map.partitions().is_empty() {
        return Err(AdoptError::NoIndex(path.to_owned()).into());
    }
    for one in map.partitions() {
        let capacity = Arc::clone(&storage.capacity) as Arc<dyn Capacity>;
        open_offline(capacity, one).await.map_err(AdoptError::Damaged)?;
    }
    // A mark that is there already may say that the cluster is made now.
    if founding(own).await?.is_none_or(|begun| begun.id != record.id) {
        found(own, &record, node).await?;
    }
    if let Some(adoption) = Adoption::begin(coordinator, record).await? {
        adoption.copy(&groups.iter().map(groups::put).collect::<Vec<_>>()).await?;
        adoption.copy(&index_of(own, &map, node).await?).await?;
        finishing(own).await?;
        adoption.finish(&[put(key_ring), put(first_node(node))]).await?;
    }
    Authority::open(coordinator, &ring, &record, env.clock.now()).await?;
    founded(own).await?;
    let extents = storage.capacity.extents().await.len();
    let cluster = ClusterRecord::read(coordinator).await?;
    Ok(AdoptedStore { cluster, partitions: map.partitions().len(), extents })
}

/// The record of the cluster: the one that was begun here, or a new one.
async fn record_for(
    own: &dyn Coordinator,
    coordinator: &dyn Coordinator,
    adopt: &Adopt,
    env: &Env,
) -> Result<ClusterRecord, NodeError> {
    let Some(begun) = founding(own).await? else {
        let record = new_record(env, adopt.number, adopt.copies);
        Adoption::find(coordinator, &record).await?;
        return Ok(record);
    };
    if adopt.number.is_some_and(|given| given != begun.number) {
        return Err(AdoptError::OtherNumber(begun.number).into());
    }
    let record = record_of(begun, adopt.copies);
    match Adoption::find(coordinator, &record).await? {
        Found::Begun | Found::Live => Ok(record),
        Found::Nothing if begun.is_finishing => Err(AdoptError::Elsewhere(begun.number).into()),
        // If it was begun elsewhere, nobody can finish it there.
        Found::Nothing => Ok(new_record(env, Some(begun.number), adopt.copies)),
    }
}

fn put((key, value): (Bytes, Bytes)) -> Op {
    Op::Put(key, value)
}

/// The counter of nodes, which has issued the id of this one.
fn first_node(node: NodeId) -> (Bytes, Bytes) {
    let next = (node.get() + 1).to_be_bytes();
    (Bytes::from_static(NODE_IDS), Bytes::copy_from_slice(&next))
}

/// The records of the groups of all extents of a store.
async fn groups_of(storage: &Storage, node: NodeId) -> Result<Vec<GroupRecord>, NodeError> {
    let used = read_disks(storage.coordinator.as_ref()).await?;
    if let Some(disk) = used.iter().find(|disk| disk.state == State::Draining) {
        return Err(AdoptError::Draining(disk.path.clone()).into());
    }
    let used = used.iter().filter(|disk| disk.state == State::InUse).count();
    if !storage.capacity.is_whole() || storage.capacity.disks().len() < used {
        return Err(AdoptError::DiskOut.into());
    }
    if storage.coordinator.get(UNRECORDED_KEY).await?.is_some() {
        return Err(AdoptError::Unrecorded.into());
    }
    let mut groups: BTreeMap<GroupId, Vec<(ExtentId, ExtentOffset)>> = BTreeMap::new();
    for info in storage.capacity.extents().await {
        if info.state != ExtentState::Sealed {
            return Err(AdoptError::NotSealed(info.extent).into());
        }
        let end = ExtentOffset::new(info.len);
        groups.entry(info.extent.group()).or_default().push((info.extent, end));
    }
    let records = groups.iter().map(|(group, ends)| GroupRecord::adopted(*group, node, ends));
    Ok(records.collect())
}

/// What the coordinator of a store holds of the index, for that of the cluster.
async fn index_of(
    own: &dyn Coordinator,
    map: &PartitionMap,
    node: NodeId,
) -> Result<Vec<Op>, NodeError> {
    let host = HostId::of(node, 0);
    let hosted = map.partitions().iter().map(|one| {
        let one = PartitionDescriptor { host, ..one.clone() };
        Op::Put(PartitionDescriptor::coordinator_key(one.id), one.encode())
    });
    let all = own.range(b"").await?.entries;
    let records = all.into_iter().filter(|(key, _)| ExtentRecord::is_key(key));
    let records = records.map(|(key, found)| Op::Put(key, found.value));
    Ok(hosted.chain(records).collect())
}

#[cfg(test)]
mod tests;
