//! One extent: its file, byte by byte, and what is known of it in memory.
//!
//! 1. `header.rs`: the first page, which says who the extent is and whether it is sealed, and the
//!    list of padding behind the frames; `map.rs`: where frames lie after a compaction.
//! 2. `frame.rs`: an append as bytes with checksums, and back.
//! 3. `walk.rs`: from frame to frame through a file.
//! 4. `memory.rs`: how far the extent goes and what of it is where; `tail.rs`: its bytes that are
//!    in the journal alone; `ranges.rs`: what of it is dead.
//!
//! Layout: `api-spec/extent.md`. Invariants: a logical offset never changes, whatever is freed or
//! compacted · a frame says itself which extent and offset it belongs to.
//!
//! Not here: what is done to extents (`disk/`).

#![deny(clippy::indexing_slicing)]

pub(super) mod frame;
pub(super) mod header;
pub(super) mod map;
pub(super) mod memory;
pub(super) mod ranges;
pub(super) mod tail;
pub(super) mod walk;
