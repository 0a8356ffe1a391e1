//! Integration tests: the real program over real connections.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_input;
mod server;
mod wire;
