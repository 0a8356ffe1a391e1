//! The bytes of a node's record, and of its life.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::types::Incarnation;
use crate::types::NodeRoles;
use crate::types::Timestamp;

/// The version of records and lives.
const VERSION: u8 = 1;

/// What an operator wants of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeState {
    /// It takes new extents.
    Active,
    /// Its copies are moved to other nodes.
    Draining,
    /// It is no part of the cluster any more.
    Removed,
}

/// What is known of a node for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The name that operators use.
    pub name: String,
    /// The machine that it runs on: no two copies of an extent are on one.
    pub machine: String,
    /// The zone of the machine. Machines of one zone may fail together.
    pub zone: String,
    /// What an operator wants of it.
    pub state: NodeState,
}

/// What a node says of itself while it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLife {
    /// Its life.
    pub incarnation: Incarnation,
    /// What it does.
    pub roles: NodeRoles,
    /// The host under which other nodes call it: an address or a name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its clock, when it said this.
    pub time: Timestamp,
    /// Bytes that new extents may take.
    pub room: u64,
    /// How busy it is, from 0 to 1000.
    pub load: u32,
}

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum Unread {
    /// A newer release wrote it.
    #[error("version {0} is newer than this release")]
    Newer(u8),
    /// It is malformed.
    #[error("it is malformed")]
    Malformed,
}

pub(in crate::coordinator) fn encode<T: Serialize>(value: &T) -> Bytes {
    let bytes = postcard::to_extend(value, vec![VERSION]);
    bytes.expect("texts and numbers can be encoded").into()
}

pub(in crate::coordinator) fn decode<'a, T: Deserialize<'a>>(value: &'a [u8]) -> Result<T, Unread> {
    match value {
        [VERSION, rest @ ..] => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            Ok(_) | Err(_) => Err(Unread::Malformed),
        },
        [newer, ..] if *newer > VERSION => Err(Unread::Newer(*newer)),
        _ => Err(Unread::Malformed),
    }
}

impl NodeRecord {
    /// The value in the coordinator.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn decode(value: &[u8]) -> Result<Self, Unread> {
        decode(value)
    }
}

impl NodeLife {
    /// The value in the coordinator.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn decode(value: &[u8]) -> Result<Self, Unread> {
        decode(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_lives_have_golden_bytes() {
        let record = NodeRecord {
            name: "a1".to_owned(),
            machine: "m".to_owned(),
            zone: String::new(),
            state: NodeState::Draining,
        };
        let bytes = [1, 2, b'a', b'1', 1, b'm', 0, 1];
        assert_eq!(record.encode().as_ref(), bytes);
        assert_eq!(NodeRecord::decode(&bytes), Ok(record));
        let life = NodeLife {
            incarnation: Incarnation::new(130),
            roles: NodeRoles::FRONT.with(NodeRoles::CAPACITY),
            host: "h".to_owned(),
            port: 300,
            time: Timestamp::ZERO.plus(std::time::Duration::from_micros(20)),
            room: 5,
            load: 6,
        };
        let bytes = [1, 0x82, 0x01, 5, 1, b'h', 0xAC, 0x02, 0xC8, 0x01, 5, 6];
        assert_eq!(life.encode().as_ref(), bytes);
        assert_eq!(NodeLife::decode(&bytes), Ok(life));
    }

    #[test]
    fn other_values_are_refused() {
        assert_eq!(NodeRecord::decode(&[2, 0]), Err(Unread::Newer(2)));
        for bytes in [&[][..], &[0], &[1], &[1, 0, 0, 0, 3], &[1, 0, 0, 0, 0, 0]] {
            assert_eq!(NodeRecord::decode(bytes), Err(Unread::Malformed), "{bytes:?}");
        }
    }
}
