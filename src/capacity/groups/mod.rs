//! Groups: which nodes have the extents of a cluster. A *group* is the 64 extents whose ids begin
//! at one multiple of 64. Each has a copy on all *members* of the group. The record of
//! a group is in the coordinator.
//!
//! Main path of a group:
//! 1. `placement.rs`: its writer chooses the members from the table of nodes;
//! 2. `make.rs`: one transaction takes the ids of the extents and makes the record;
//! 3. `deal.rs`: the writer deals its extents over its open groups, and holds some in reserve;
//! 4. `follow.rs`: all nodes follow all records; `known.rs`: a member keeps them in its own store,
//!    and heeds them;
//! 5. `transitions.rs`: what may become of a record: lengths of unclean seals, extents that are
//!    gone, closing, changes of members. `extents.rs`: a set of extents of a group;
//! 6. `store.rs`: reads records and changes them by compare and set.
//!
//! `record.rs` has the record and its bytes. Layout: `api-spec/group.md`. Why the rules are as they
//! are: ADR 0050, and the models in `tests/model/extents`.
//!
//! Invariants: members change only in a closed group none of whose extents is open · a group is
//! closed for ever, an extent is gone for ever · the first length of an extent stays until the
//! extent is gone · an extent that is gone has no length · nothing is gone for being unused once
//! members have changed.
//!
//! Not here: what members do with the record (create, seal, pull, remove), the table of nodes, what
//! the manager decides.

mod deal;
mod extents;
mod follow;
mod known;
mod make;
mod placement;
mod record;
mod store;
mod transitions;

pub use deal::{Dealer, Dealt};
pub use extents::Extents;
pub use follow::{Followed, GroupFollower};
pub use known::{KnownGroups, MayCreate};
pub use make::GroupMaker;
pub use placement::{LOAD_FULL, NodeRow, Placed, Want, place, place_apart};
pub use record::{GroupRecord, GroupState, MEMBERS_MAX, NoMembers, Unread};
pub use store::{AllGroups, Error, GroupAt, Stored, change, is_key, put, read, read_all};
pub use transitions::{MemberReport, Refusal};
