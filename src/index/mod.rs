//! The index: rows about accounts, containers and blobs, range-partitioned by routing key, stored in extents.

pub mod api;
pub mod check;
pub mod engine;
pub mod host;
pub mod inflight;
pub mod map;
pub mod metrics;
pub mod objects;
pub mod record;
pub mod rows;

pub use api::{
    BlobChange, BlobView, BlockListView, BlockView, CommitBlocks, ContainerEntry, ContainerPage,
    CreateContainer, DeleteBlob, DeleteContainer, Error, GarbageRow, Guard, IndexHost, ListBlobs,
    ListContainers, ListEntry, ListPage, NewContent, Piece, PutBlob, Read, ReadBlob, ReadReply,
    References, StageBlock, StagedBlocks, Target, UpdateBlob, UpdateContainer, Write, WriteReply,
    Written,
};
pub use engine::{Config, ExtentIds, Offline, Parts, open_offline};
pub use host::Host;
pub use inflight::InFlight;
pub use map::{PartitionDescriptor, PartitionMap};
pub use metrics::Metrics;
pub use objects::Objects;
pub use record::{AccountRecord, BlobRecord, ContainerRecord};
