//! Blobs, blocks and pages from URLs.
//!
//! 1. `frontend::source` finds and authorizes the source · 2. `take.rs` shares its bytes or stores them once more ·
//! 3. `pages.rs` does so for page blobs, part by part, what is not written left out · 4. `parts.rs` commits them as a block, an append or pages of a blob, `blobs.rs` as a blob.
//!
//! Invariants: what is shared is held until the commit that names it was answered; bytes are durable before the commit.

pub(crate) mod blobs;
mod pages;
pub(crate) mod parts;
mod take;

pub(crate) use blobs::{abort, copy, put_blob};

use crate::frontend::accounts::Account;
use crate::frontend::source::Requester;

/// Who asks, for which account.
pub(crate) type Asking<'a> = (Requester<'a>, &'a Account);
