//! The coordinator: a small, consistent store of descriptors, shaped like etcd. Holds which partitions exist and
//! where their logs begin, counters that issue ids, and node sessions; never per-object state, on no data path.

pub mod api;

pub use api::{
    Compare, Coordinator, Error, Event, Op, Revision, Session, Snapshot, TxnReply, Versioned, Watch,
};
