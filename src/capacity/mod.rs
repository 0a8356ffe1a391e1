//! Capacity nodes: append-only extents on local disks.

pub mod api;

pub use api::{
    AppendRequest, Appended, Capacity, Durability, Error, ExtentInfo, ExtentKind, ExtentState,
    LogFrame, Payload, ScrubReport,
};
