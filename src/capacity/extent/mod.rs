//! One extent: the bytes of its file, and its state in memory.
//!
//! 1. `header.rs`: the first page, with the extent's id and whether it is sealed, and the list of
//!    padding after the frames; `map.rs`: where frames lie in the file after a compaction.
//! 2. `frame.rs`: encodes an append as frames with checksums, and decodes it;
//!    `frame/received.rs`: verifies frames that another process encoded; `part.rs`: the parts of
//!    frames that a read needs, and their verification by the reader.
//! 3. `walk.rs`: reads a file frame by frame.
//! 4. `memory.rs`: where the extent ends, and which of its bytes are in the file and durable;
//!    `tail.rs`: bytes that are in the journal and not in the file; `ranges.rs`: dead ranges.
//!
//! Layout: `api-spec/extent.md`. Invariants: a logical offset never changes, even if frames are
//! freed or the file is compacted · the header of a frame names its extent and offset.
//!
//! Not here: the operations on extents (`disk/`).

#![deny(clippy::indexing_slicing)]

pub(super) mod frame;
pub(super) mod header;
pub(super) mod map;
pub(super) mod memory;
pub(super) mod part;
pub(super) mod ranges;
pub(super) mod tail;
pub(super) mod walk;
