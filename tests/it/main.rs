//! Integration tests: the real program over real connections, and the shape of the source tree.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_input;
mod circles;
mod command_line;
mod compatibility;
mod contract;
// A release takes no dialect of a test (ADR 0031).
#[cfg(debug_assertions)]
mod dialect;
mod dist;
mod documents;
mod folder;
mod layering;
mod lost_disk;
mod metrics;
mod out_of_service;
mod program;
mod rebinding;
mod refused;
mod secrets;
mod server;
mod shutdown;
mod tidy;
mod tree;
mod unread_bodies;
mod wire;
