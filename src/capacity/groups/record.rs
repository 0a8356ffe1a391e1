//! The record of a group, and its bytes. Layout: `api-spec/group.md`.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;

use bytes::Bytes;
use thiserror::Error as ThisError;

use crate::capacity::api::ExtentKind;
use crate::capacity::extent::header::{kind_code, kind_of};
use crate::capacity::groups::extents::Extents;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::GROUP_EXTENTS;
use crate::types::Generation;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

/// The most members of a group. New members join before old ones leave, so a group has more than
/// its copies for a while.
pub const MEMBERS_MAX: usize = 8;

const VERSION: u8 = 1;
const OPEN: u8 = 0;
const CLOSED: u8 = 1;

/// The record of a group in the coordinator. `transitions.rs` has all changes of it, and each gives
/// a record that [`Self::decode`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    pub(super) id: GroupId,
    pub(super) kind: ExtentKind,
    pub(super) members: Vec<NodeId>,
    pub(super) writer: Incarnation,
    pub(super) generation: Generation,
    pub(super) state: GroupState,
    pub(super) gone: Extents,
    /// By places.
    pub(super) lengths: BTreeMap<u8, ExtentOffset>,
}

/// Whether a group takes new extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Its writer may create extents.
    Open,
    /// No extent is created any more, and members may change. It is never opened again.
    Closed,
}

/// Why the members of a group are no members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum NoMembers {
    /// There are none, or more than [`MEMBERS_MAX`].
    #[error("a group has 1 to {MEMBERS_MAX} members, not {0}")]
    Count(usize),
    /// One is named twice.
    #[error("node {0} is a member twice")]
    Twice(NodeId),
}

/// Why bytes are not read as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum Unread {
    /// A newer release wrote it.
    #[error("it is of version {0}, and this release reads {VERSION}")]
    Newer(u8),
    /// The bytes are damaged, or break this rule of records.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
}

/// The fields after the version, in their order: id, kind, members, writer, generation, state, gone
/// extents, lengths by place.
type Fields = (u64, u8, Vec<u64>, u64, u64, u8, u64, Vec<(u8, u64)>);

impl GroupRecord {
    /// The record of a new group: open, with all its extents still to be made.
    ///
    /// # Errors
    /// [`NoMembers`].
    pub fn new(
        id: GroupId,
        kind: ExtentKind,
        members: Vec<NodeId>,
        writer: Incarnation,
    ) -> Result<Self, NoMembers> {
        check_members(&members)?;
        Ok(Self {
            id,
            kind,
            members,
            writer,
            generation: Generation::FIRST,
            state: GroupState::Open,
            gone: Extents::NONE,
            lengths: BTreeMap::new(),
        })
    }

    /// The record of a group of a store that was made alone: closed, with these extents on one
    /// node, which end there. They are of all kinds, and the record says log, as of a group with
    /// logs and runs. Their ends are recorded, so that a file that is lost later is never taken for
    /// one of an extent that nobody had. Extents of other groups are left out.
    #[must_use]
    pub fn adopted(id: GroupId, node: NodeId, ends: &[(ExtentId, ExtentOffset)]) -> Self {
        let here = ends.iter().filter(|(extent, _)| extent.group() == id);
        let lengths: BTreeMap<u8, ExtentOffset> =
            here.map(|(extent, end)| (extent.place(), *end)).collect();
        let extents = lengths.keys().fold(Extents::NONE, |set, at| set.with(Extents::at(*at)));
        Self {
            id,
            kind: ExtentKind::Log,
            members: vec![node],
            // No process: nobody creates an extent in it.
            writer: Incarnation::new(0),
            generation: Generation::FIRST,
            state: GroupState::Closed,
            gone: Extents::ALL.without(extents),
            lengths,
        }
    }

    /// The group.
    #[must_use]
    pub const fn id(&self) -> GroupId {
        self.id
    }

    /// The kind with which a copy is created before anything else is known of an extent. Groups of
    /// logs have runs too, and adopted ones extents of all kinds.
    #[must_use]
    pub const fn kind(&self) -> ExtentKind {
        self.kind
    }

    /// The nodes that have a copy of each extent, in the order in which they became members.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// Whether a node is a member.
    #[must_use]
    pub fn has_member(&self, node: NodeId) -> bool {
        self.members.contains(&node)
    }

    /// The only writer of its extents, if they are data. Logs and runs change their owners; here it
    /// is the one that took the ids.
    #[must_use]
    pub const fn writer(&self) -> Incarnation {
        self.writer
    }

    /// Grows with every change of members.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether it takes new extents.
    #[must_use]
    pub const fn state(&self) -> GroupState {
        self.state
    }

    /// The extents that are gone: they were removed or are to be removed, or never were and never
    /// will be.
    #[must_use]
    pub const fn gone(&self) -> Extents {
        self.gone
    }

    /// Whether an extent of the group is gone.
    #[must_use]
    pub fn is_gone(&self, extent: ExtentId) -> bool {
        self.has(extent) && self.gone.has(extent)
    }

    /// The end of an extent of the group whose seal was unclean; `None` if it is not recorded.
    #[must_use]
    pub fn length(&self, extent: ExtentId) -> Option<ExtentOffset> {
        if self.has(extent) { self.lengths.get(&extent.place()).copied() } else { None }
    }

    /// Whether an extent is of this group.
    #[must_use]
    pub fn has(&self, extent: ExtentId) -> bool {
        extent.group() == self.id
    }

    /// The extents whose end is recorded.
    pub(super) fn with_length(&self) -> Extents {
        self.lengths.keys().fold(Extents::NONE, |set, place| set.with(Extents::at(*place)))
    }

    /// The value that the coordinator holds.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let state = match self.state {
            GroupState::Open => OPEN,
            GroupState::Closed => CLOSED,
        };
        let fields: Fields = (
            self.id.get(),
            kind_code(self.kind),
            self.members.iter().map(|node| node.get()).collect(),
            self.writer.get(),
            self.generation.get(),
            state,
            self.gone.bits(),
            self.lengths.iter().map(|(place, end)| (*place, end.get())).collect(),
        );
        let mut value = vec![VERSION];
        value.extend(postcard::to_stdvec(&fields).expect("numbers always encode"));
        value.into()
    }

    /// Decodes a value.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn decode(value: &[u8]) -> Result<Self, Unread> {
        let fields = match value.split_first() {
            Some((&VERSION, fields)) => fields,
            Some((&version, _)) if version > VERSION => return Err(Unread::Newer(version)),
            Some(_) | None => return Err(Unread::Malformed("version")),
        };
        let fields = match postcard::take_from_bytes::<Fields>(fields) {
            Ok((fields, [])) => fields,
            Ok(_) => return Err(Unread::Malformed("bytes after the end")),
            Err(_) => return Err(Unread::Malformed("fields")),
        };
        let record = Self::from_fields(fields).map_err(Unread::Malformed)?;
        // A number may have a longer form; each record has one form.
        if record.encode() == value { Ok(record) } else { Err(Unread::Malformed("form")) }
    }

    fn from_fields(fields: Fields) -> Result<Self, &'static str> {
        let (id, kind, members, writer, generation, state, gone, lengths) = fields;
        let members: Vec<NodeId> = members.into_iter().map(NodeId::new).collect();
        if check_members(&members).is_err() {
            return Err("members");
        }
        let state = match state {
            OPEN => GroupState::Open,
            CLOSED => GroupState::Closed,
            _ => return Err("state"),
        };
        let generation = Generation::new(generation);
        // The last number has no next one.
        if generation < Generation::FIRST || generation.get() == u64::MAX {
            return Err("generation");
        }
        if state == GroupState::Open && generation != Generation::FIRST {
            return Err("members of an open group have changed");
        }
        let places = lengths.iter().map(|(place, _)| *place);
        if !places.is_sorted_by(|one, next| one < next) {
            return Err("order of lengths");
        }
        let gone = Extents::from_bits(gone);
        for (place, _) in &lengths {
            if u64::from(*place) >= GROUP_EXTENTS {
                return Err("place of a length");
            }
            if gone.has_all(Extents::at(*place)) {
                return Err("length of an extent that is gone");
            }
        }
        let lengths = lengths.into_iter().map(|(place, end)| (place, ExtentOffset::new(end)));
        Ok(Self {
            id: GroupId::new(id).ok_or("id")?,
            kind: kind_of(kind).ok_or("kind")?,
            members,
            writer: Incarnation::new(writer),
            generation,
            state,
            gone,
            lengths: lengths.collect(),
        })
    }
}

fn check_members(members: &[NodeId]) -> Result<(), NoMembers> {
    if members.is_empty() || members.len() > MEMBERS_MAX {
        return Err(NoMembers::Count(members.len()));
    }
    let rest =
        (1..).zip(members).find(|(next, node)| members.iter().skip(*next).any(|m| m == *node));
    rest.map_or(Ok(()), |(_, node)| Err(NoMembers::Twice(*node)))
}

#[cfg(test)]
mod tests;
