//! How two nodes introduce themselves at the beginning of a connection.

use std::fmt;
use std::io;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::message::decode_first;
use super::message::write;
use super::packet::Draft;
use super::packet::HELLO_BYTES_MAX;
use super::packet::Head;
use super::packet::Kind;
use super::packet::Lengths;
use super::packet::Malformed;
use super::packet::Outgoing;
use super::packet::Unchecked;
use crate::types::ClusterNumber;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;

/// The newest version of packets and messages that this release speaks.
pub(super) const VERSION: u16 = 1;
/// The oldest one. A release speaks the version of the release before, so that nodes can be
/// upgraded one by one.
pub(super) const VERSION_MIN: u16 = 1;

/// Which cluster a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterIdentity {
    /// The number of the cluster.
    pub number: ClusterNumber,
    /// Drawn when the cluster was made. It tells clusters of one number apart.
    pub id: u128,
    /// A cluster whose coordinator was rebuilt has the next generation. It shuts out nodes that do
    /// not know of that.
    pub generation: u64,
}

/// A node in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// The node.
    pub node: NodeId,
    /// Its life. A later one is a higher number.
    pub incarnation: Incarnation,
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}, incarnation {}", self.node, self.incarnation)
    }
}

/// Which calls a connection is for. Large calls do not delay small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lane {
    /// Calls of some KiB.
    Small,
    /// Calls with more bytes, there or back.
    Bulk,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 2] = [Self::Small, Self::Bulk];
}

/// What the caller says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest version that the caller speaks. This field and the next stay the first ones, and
    /// later versions add fields at the end only.
    pub version_min: u16,
    /// The newest one.
    pub version_max: u16,
    /// Its cluster.
    pub cluster: ClusterIdentity,
    /// The caller.
    pub from: NodeIdentity,
    /// What it does.
    pub roles: NodeRoles,
    /// The node that it wants to reach: its address may have become another one's.
    pub to: NodeId,
    /// What the connection is for.
    pub lane: Lane,
    /// How many connections of this lane the caller has tried before in this life. A hello that was
    /// overtaken by a later one ends nothing.
    pub attempt: u64,
}

/// What the server answers to a hello that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both sides speak from now on. It stays the first field.
    pub version: u16,
    /// The server.
    pub from: NodeIdentity,
    /// What it does.
    pub roles: NodeRoles,
    /// What the caller may have under way on this connection.
    pub credit: Credit,
}

/// What a caller may have under way on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// Calls that have not ended.
    pub calls: u32,
    /// Bytes of these calls: of heads, messages, payloads, and the most of their answers.
    pub bytes: u32,
}

/// Why a server does not accept a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ThisError)]
pub enum Unwelcome {
    /// No version is spoken by both.
    #[error("it speaks versions {min} to {max} of the protocol between nodes")]
    Version {
        /// The oldest version that the server speaks.
        min: u16,
        /// The newest one.
        max: u16,
    },
    /// The server belongs to another cluster.
    #[error("it belongs to another cluster")]
    Cluster,
    /// The cluster was rebuilt: whoever has the lower generation must not take part.
    #[error("it knows generation {generation} of the cluster")]
    Generation {
        /// The server's.
        generation: u64,
    },
    /// Another node has this address.
    #[error("it is node {node}")]
    Node {
        /// The server.
        node: NodeId,
    },
    /// The server has met a later life of the caller, or a later connection of this life.
    #[error("it has met incarnation {incarnation} of this node, or a later connection")]
    Superseded {
        /// The latest that it has met.
        incarnation: Incarnation,
    },
    /// The server is stopping.
    #[error("it is stopping")]
    Stopping,
    /// The caller was removed from the cluster.
    #[error("this node was removed from the cluster")]
    Removed,
}

/// Why a first packet is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHello {
    /// Tell the caller.
    Unwelcome(Unwelcome),
    /// It is none.
    Malformed,
}

impl Hello {
    /// Reads a hello. What a later version adds at its end is not looked at.
    pub(super) fn read(message: &[u8]) -> Result<Self, NoHello> {
        let (min, max): (u16, u16) = decode_first(message).ok_or(NoHello::Malformed)?;
        common_version(min, max).map_err(NoHello::Unwelcome)?;
        decode_first(message).ok_or(NoHello::Malformed)
    }

    /// The version to speak, if the server `to` of `cluster` accepts this hello.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn accepted_by(&self, to: NodeId, cluster: &ClusterIdentity) -> Result<u16, Unwelcome> {
        let version = common_version(self.version_min, self.version_max)?;
        if (self.cluster.number, self.cluster.id) != (cluster.number, cluster.id) {
            return Err(Unwelcome::Cluster);
        }
        if self.cluster.generation != cluster.generation {
            return Err(Unwelcome::Generation { generation: cluster.generation });
        }
        if self.to != to {
            return Err(Unwelcome::Node { node: to });
        }
        Ok(version)
    }
}

impl Welcome {
    /// Reads the answer to a hello. What a later version adds at its end is not looked at.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        decode_first(message)
    }
}

/// The newest version that a caller with these versions and this release speak.
fn common_version(min: u16, max: u16) -> Result<u16, Unwelcome> {
    let version = max.min(VERSION);
    if version < min || version < VERSION_MIN {
        return Err(Unwelcome::Version { min: VERSION_MIN, max: VERSION });
    }
    Ok(version)
}

/// Whether a packet may come before both sides have said hello.
///
/// # Errors
/// [`Malformed`].
pub(super) fn is_introduction(unchecked: &Unchecked, kinds: &[Kind]) -> Result<(), Malformed> {
    let Lengths { message, payload } = unchecked.lengths;
    if message > HELLO_BYTES_MAX || payload > 0 {
        return Err(Malformed("a part that is too long"));
    }
    if kinds.contains(&unchecked.head.kind) {
        Ok(())
    } else {
        Err(Malformed("a packet before the hello"))
    }
}

/// A packet of an introduction.
///
/// # Errors
/// None: every such message can be sent.
pub(super) fn introduction<T: Serialize>(kind: Kind, message: &T) -> io::Result<Outgoing> {
    let mut draft = Draft::new();
    let failed = || io::Error::other("a message that cannot be sent");
    write(message, draft.message()).map_err(|_| failed())?;
    draft.finish(Head::bare(kind, 0), Vec::new()).map_err(|_| failed())
}

#[cfg(test)]
mod tests;
