//! The index of another process: bytes of messages, and calls over a simulated network.

mod calls;
mod partitions;
mod requests;
mod rig;
mod sessions;
