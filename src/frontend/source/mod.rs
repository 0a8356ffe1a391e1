//! The sources of "from URL" operations.
//!
//! 1. `local.rs` decides whether a URL names a blob of this store.
//! 2. `inside.rs` reads blobs of this store, without HTTP: a source is authorized by the same code
//!    as a request for it, then looked up, and shared or streamed.
//! 3. `outside.rs` fetches from other servers that `rules.rs` permits; `rate.rs` enforces a minimum
//!    rate.
//! 4. `refusal.rs` maps refusals of a source to those of the service.
//!
//! Invariants: nothing of a source is read before it is authorized. Shared content is noted in
//! `index::InFlight` before it is looked up, and held until the commit that names it was answered.
//! The address that was permitted is the one that is connected to, and redirects are not followed.

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
pub(crate) use inside::{Inside, Shared, SharedContent, SharedPart};
pub(crate) use open::{Source, open, open_inside, open_named, open_outside};
pub(crate) use outside::{FetchAccount, Fetched};
pub(crate) use rate::MinimumRate;
pub(crate) use requester::Requester;
