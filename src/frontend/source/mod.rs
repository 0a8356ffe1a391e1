//! Where the bytes of "from URL" operations come from.
//!
//! 1. `local.rs` tells URLs of this same store from others.
//! 2. `inside.rs` reads the store's own blobs, without HTTP: a source is authorized by the same
//!    code as a request for it, then looked up, and shared or streamed.
//! 3. `outside.rs` asks other servers, those that `rules.rs` permits; `rate.rs` holds them to a
//!    minimum rate.
//! 4. `refusal.rs` says why a source cannot be taken, in the words of the service.
//!
//! Invariants: nothing of a source is read before it was authorized; what is shared was noted in
//! `index::InFlight` before it was looked up, and is held until the commit that names it was
//! answered; the address that was permitted is the one that is asked, and no answer leads to
//! another server.

mod facts;
mod inside;
mod listening;
mod local;
mod open;
mod outside;
mod rate;
mod reach;
pub(in crate::frontend) mod refusal;
mod requester;
mod rules;

pub use listening::Listening;
pub use reach::Outside;
pub use rules::{Pattern, PatternError, Rules};

pub(crate) use facts::Facts;
pub(crate) use inside::{Inside, SharedPart};
pub(crate) use open::{Source, open, open_outside};
pub(crate) use outside::{By, Fetched};
pub(crate) use rate::MinimumRate;
pub(crate) use requester::Requester;
