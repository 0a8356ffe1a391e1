//! The nodes of a cluster: a durable record of each, and its present life, which is removed with
//! its session. `nodes/record.rs` has their bytes, `nodes/table.rs` the table that all nodes
//! follow. Layout: `api-spec/nodes.md`.
//!
//! Invariants: a node has one life at a time · a later life has a higher incarnation ·
//! a name belongs to one node for ever.

mod record;
mod table;

pub use record::{NodeLife, NodeRecord, NodeState, Unread};
pub(super) use record::{decode, encode};
pub use table::{NodeAt, NodeTable};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error as ThisError;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Revision;
use super::api::Session;
use super::api::TxnReply;
use super::counter;
use crate::env::Clock;
use crate::types::ClusterNumber;
use crate::types::Incarnation;
use crate::types::NodeId;

/// A node without a sign of life for so long is away.
pub const SESSION: Duration = Duration::from_secs(10);
/// How often a node renews its session.
const RENEWED_EVERY: Duration = Duration::from_secs(3);
/// How long it waits after the coordinator did not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// How often its room and load are shown at most.
const SHOWN_EVERY: Duration = Duration::from_secs(10);
/// How often a change is tried. Each try that fails means that somebody else's succeeded, or that
/// the coordinator gave no answer.
const TRIES_MAX: usize = 16;

/// Why a node cannot take part.
#[derive(Clone, Debug, ThisError)]
pub enum JoinError {
    /// Another node has this name.
    #[error("node {0} has this name: start it with its own data directory, or choose another name")]
    NameTaken(NodeId),
    /// The node was removed from the cluster, or never added.
    #[error("node {0} is no node of this cluster: start it with an empty data directory")]
    NoSuchNode(NodeId),
    /// The session of this life has ended, and requests of it were running.
    #[error(
        "the coordinator has not heard of this node for too long, so others may have freed what \
         its requests need: the process ends, and can be started again at once"
    )]
    SessionEnded,
    /// Another process lives as this node.
    #[error("node {node} runs already, as incarnation {incarnation}")]
    Alive {
        /// The node.
        node: NodeId,
        /// Its life.
        incarnation: Incarnation,
    },
    /// The coordinator does not answer, refuses or is damaged.
    #[error(transparent)]
    Coordinator(#[from] Error),
}

fn name_key(name: &str) -> Bytes {
    format!("node-name/{name}").into()
}

/// An id for a new node. The node stores it before it is added, so that a start that is interrupted
/// in between does not take the name away from it.
///
/// # Errors
/// Those of the coordinator.
pub async fn new_id(
    coordinator: &dyn Coordinator,
    cluster: ClusterNumber,
) -> Result<NodeId, Error> {
    let ids = counter::allocate(coordinator, cluster, counter::NODE_IDS, 1).await?;
    Ok(NodeId::new(ids.start))
}

/// Adds a node under a name that no other node has or had. It may be called again for a node that
/// was added.
///
/// # Errors
/// [`JoinError::NameTaken`], [`JoinError::Coordinator`].
pub async fn add(
    coordinator: &dyn Coordinator,
    node: NodeId,
    record: &NodeRecord,
) -> Result<(), JoinError> {
    let name = name_key(&record.name);
    let put = [
        Op::Put(name.clone(), node.get().to_be_bytes().to_vec().into()),
        Op::Put(table::record_key(node), record.encode()),
    ];
    for _ in 0..TRIES_MAX {
        match coordinator.txn(&[Compare::Absent(name.clone())], &put).await {
            Ok(TxnReply::Committed(_)) => return Ok(()),
            Ok(TxnReply::Rejected(_)) => {
                let found = coordinator.get(&name).await?;
                let owner = found.and_then(|found| found.value.as_ref().try_into().ok());
                match owner.map(|id| NodeId::new(u64::from_be_bytes(id))) {
                    Some(owner) if owner == node => return Ok(()),
                    Some(owner) => return Err(JoinError::NameTaken(owner)),
                    None => {}
                }
            }
            Err(Error::Ambiguous) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Unavailable { reason: "the name of a node is contended".into() }.into())
}

/// The record of a node; `None` if it was never added.
///
/// # Errors
/// [`JoinError::Coordinator`].
pub async fn read(
    coordinator: &dyn Coordinator,
    node: NodeId,
) -> Result<Option<NodeRecord>, JoinError> {
    let Some(found) = coordinator.get(&table::record_key(node)).await? else { return Ok(None) };
    NodeRecord::decode(&found.value).map(Some).map_err(|why| corrupt(node, why))
}

/// Sets what an operator wants of a node.
///
/// # Errors
/// [`JoinError::NoSuchNode`], [`JoinError::Coordinator`].
pub async fn set_state(
    coordinator: &dyn Coordinator,
    node: NodeId,
    state: NodeState,
) -> Result<(), JoinError> {
    change(coordinator, node, |record| NodeRecord { state, ..record }).await
}

/// Sets where a node is: it may have moved to another machine.
///
/// # Errors
/// [`JoinError::NoSuchNode`], [`JoinError::Coordinator`].
pub async fn set_place(
    coordinator: &dyn Coordinator,
    node: NodeId,
    machine: &str,
    zone: &str,
) -> Result<(), JoinError> {
    let (machine, zone) = (machine.to_owned(), zone.to_owned());
    let moved = |record| NodeRecord { machine: machine.clone(), zone: zone.clone(), ..record };
    change(coordinator, node, moved).await
}

async fn change(
    coordinator: &dyn Coordinator,
    node: NodeId,
    changed: impl Fn(NodeRecord) -> NodeRecord,
) -> Result<(), JoinError> {
    let key = table::record_key(node);
    for _ in 0..TRIES_MAX {
        let found = coordinator.get(&key).await?.ok_or(JoinError::NoSuchNode(node))?;
        let record = NodeRecord::decode(&found.value).map_err(|why| corrupt(node, why))?;
        let next = changed(record.clone());
        if record == next {
            return Ok(());
        }
        let when = [Compare::ModRevision(key.clone(), found.mod_revision)];
        let put = Op::Put(key.clone(), next.encode());
        match coordinator.txn(&when, &[put]).await {
            Ok(TxnReply::Committed(_)) => return Ok(()),
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Unavailable { reason: "the record of a node is contended".into() }.into())
}

fn corrupt(node: NodeId, why: Unread) -> JoinError {
    Error::Corrupt { reason: format!("the record of node {node} cannot be read: {why}") }.into()
}

/// # Errors
/// If a node was never added, or was removed.
async fn check_member(coordinator: &dyn Coordinator, node: NodeId) -> Result<(), JoinError> {
    match read(coordinator, node).await? {
        Some(record) if record.state != NodeState::Removed => Ok(()),
        Some(_) | None => Err(JoinError::NoSuchNode(node)),
    }
}

/// When a life has begun last: each begin changes this key.
const LAST_LIFE: &[u8] = b"cluster/last-life";

/// The change by which a life of some node has begun last. If it is the same as before, none has
/// begun meanwhile, not even one that has ended since.
///
/// # Errors
/// Those of the coordinator.
pub async fn last_life(coordinator: &dyn Coordinator) -> Result<Revision, Error> {
    let found = coordinator.get(LAST_LIFE).await?;
    Ok(found.map_or(Revision::default(), |found| found.mod_revision))
}

/// A life of a node. It ends with its session.
#[derive(Debug)]
pub struct Alive {
    coordinator: Arc<dyn Coordinator>,
    node: NodeId,
    session: Session,
    life: NodeLife,
    /// The last change of the key that may be ours.
    revision: Revision,
}

impl Alive {
    /// Begins a life, with an incarnation of its own. The caller has the lock of the node's data
    /// directory.
    ///
    /// # Errors
    /// [`JoinError::NoSuchNode`] also if the node was removed; [`JoinError::Alive`],
    /// [`JoinError::Coordinator`].
    pub async fn begin(
        coordinator: Arc<dyn Coordinator>,
        cluster: ClusterNumber,
        node: NodeId,
        life: NodeLife,
    ) -> Result<Self, JoinError> {
        check_member(&*coordinator, node).await?;
        let ids = counter::allocate(&*coordinator, cluster, counter::INCARNATIONS, 1).await?;
        let life = NodeLife { incarnation: Incarnation::new(ids.start), ..life };
        let session = coordinator.open_session(SESSION).await?;
        let revision = Revision::default();
        let mut alive = Self { coordinator, node, session, life, revision };
        alive.put_anew().await?;
        Ok(alive)
    }

    /// Writes the life where there is none, or in place of an earlier one.
    async fn put_anew(&mut self) -> Result<(), JoinError> {
        let absent = Compare::Absent(table::life_key(self.node));
        match self.put_first(absent).await {
            Ok(true) => Ok(()),
            Ok(false) => self.replace_earlier().await,
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the place of an earlier life at the same address, which has ended: only one process
    /// listens there. A life elsewhere may be that of a copy of the data directory.
    async fn replace_earlier(&mut self) -> Result<(), JoinError> {
        let (key, node) = (table::life_key(self.node), self.node);
        let found = self.coordinator.get(&key).await?.ok_or(Error::Ambiguous)?;
        let other = NodeLife::decode(&found.value).map_err(|why| corrupt(node, why))?;
        let incarnation = other.incarnation;
        // The answer to an earlier try was lost, or the session has ended.
        let is_ours = incarnation == self.life.incarnation;
        let is_later = incarnation > self.life.incarnation;
        if is_later {
            return Err(JoinError::Alive { node, incarnation });
        }
        if !is_ours && (&other.host, other.port) != (&self.life.host, self.life.port) {
            return Err(JoinError::Alive { node, incarnation });
        }
        match self.put_first(Compare::ModRevision(key, found.mod_revision)).await? {
            true => Ok(()),
            false => Err(Error::Ambiguous.into()),
        }
    }

    /// What the others see.
    #[must_use]
    pub const fn life(&self) -> &NodeLife {
        &self.life
    }

    /// Begins the same life again after its session has ended.
    ///
    /// # Errors
    /// [`JoinError::NoSuchNode`] also if the node was removed; [`JoinError::Alive`] if another
    /// process lives as this node now; [`JoinError::Coordinator`].
    pub async fn resume(&mut self) -> Result<(), JoinError> {
        check_member(&*self.coordinator, self.node).await?;
        self.session = self.coordinator.open_session(SESSION).await?;
        self.put_anew().await
    }

    /// Keeps the life up until its session has ended or another process lives as this node: others
    /// believe then that this one is away.
    /// `measured` says room and load, which are shown every 10 s at most.
    pub async fn keep(
        &mut self,
        clock: &dyn Clock,
        measured: impl Fn() -> (u64, u32) + Send + Sync,
    ) {
        let (mut pause, mut shown) = (RENEWED_EVERY, None);
        loop {
            clock.sleep(pause).await;
            match self.coordinator.keep_alive(self.session).await {
                Ok(()) => pause = RENEWED_EVERY,
                Err(Error::SessionEnded) => return,
                Err(error) => {
                    tracing::warn!(%error, "the session of this node is not renewed");
                    pause = PAUSE;
                    continue;
                }
            }
            let (room, load) = measured();
            let now = clock.monotonic();
            let is_too_soon = shown.is_some_and(|shown: Duration| now < shown + SHOWN_EVERY);
            if is_too_soon {
                continue;
            }
            shown = Some(now);
            // Written also if nothing changed: it shows whether the key is still ours.
            (self.life.room, self.life.load, self.life.time) = (room, load, clock.now());
            let unchanged = Compare::ModRevision(table::life_key(self.node), self.revision);
            match self.put(unchanged).await {
                Ok(true) | Err(Error::Unavailable { .. }) => {}
                Ok(false) | Err(Error::Ambiguous) => {
                    if !self.is_still_ours().await {
                        return;
                    }
                }
                Err(error @ (Error::Compacted | Error::Corrupt { .. })) => {
                    tracing::warn!(%error, "the load of this node is not shown");
                }
                Err(Error::SessionEnded) => return,
            }
        }
    }

    /// Why others believe that this life is over, after [`Self::keep`] has returned.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub async fn why_over(&self) -> Result<JoinError, JoinError> {
        if let Err(error @ JoinError::NoSuchNode(_)) =
            check_member(&*self.coordinator, self.node).await
        {
            return Ok(error);
        }
        let found = self.coordinator.get(&table::life_key(self.node)).await?;
        let other = found.and_then(|found| NodeLife::decode(&found.value).ok());
        let later = other.filter(|other| other.incarnation > self.life.incarnation);
        Ok(later.map_or(JoinError::SessionEnded, |later| JoinError::Alive {
            node: self.node,
            incarnation: later.incarnation,
        }))
    }

    /// Whether this life goes on, after a change of its key whose outcome is not known. If the
    /// coordinator does not answer, the next change shows it.
    async fn is_still_ours(&mut self) -> bool {
        let Ok(found) = self.coordinator.get(&table::life_key(self.node)).await else {
            return true;
        };
        let ours = found.filter(|found| {
            let life = NodeLife::decode(&found.value);
            life.is_ok_and(|life| life.incarnation == self.life.incarnation)
        });
        if let Some(found) = &ours {
            self.revision = found.mod_revision;
        }
        ours.is_some()
    }

    /// Ends the life: others see it at once.
    ///
    /// # Errors
    /// Those of [`Coordinator::close_session`]; the session ends by itself.
    pub async fn end(self) -> Result<(), Error> {
        self.coordinator.close_session(self.session).await
    }

    /// Begins the life if the condition holds, and notes that one has begun. Returns whether it
    /// did.
    async fn put_first(&mut self, when: Compare) -> Result<bool, Error> {
        let number = self.life.incarnation.get().to_be_bytes().to_vec();
        let noted = Op::Put(Bytes::from_static(LAST_LIFE), number.into());
        self.put_and(when, Some(noted)).await
    }

    /// Writes the life if the condition holds. Returns whether it did.
    async fn put(&mut self, when: Compare) -> Result<bool, Error> {
        self.put_and(when, None).await
    }

    async fn put_and(&mut self, when: Compare, also: Option<Op>) -> Result<bool, Error> {
        let key = table::life_key(self.node);
        let put = Op::PutWithSession(key, self.life.encode(), self.session);
        let all: Vec<Op> = [Some(put), also].into_iter().flatten().collect();
        match self.coordinator.txn(&[when], &all).await? {
            TxnReply::Committed(revision) => {
                self.revision = revision;
                Ok(true)
            }
            TxnReply::Rejected(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
