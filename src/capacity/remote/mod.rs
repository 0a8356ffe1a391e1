//! A member on another node: [`RemoteMember`] sends the calls of [`Member`](super::Member), and
//! [`MemberService`] carries them out there. `calls.rs` has the messages, `error.rs` the errors in
//! them. `api-spec/capacity-calls.md` describes both.
//!
//! Frames travel as the payload of a call, which is not copied. They have their own checksums: a
//! member verifies what it stores, a reader what it reads.

mod calls;
mod error;
mod member;
mod service;
#[cfg(test)]
mod tests;

pub use member::RemoteMember;
pub use service::{MemberService, SERVICE};

pub(in crate::capacity) use calls::decode_any;
