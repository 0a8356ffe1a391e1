//! Blobs, blocks and pages from URLs.
//!
//! 1. `frontend::source` finds and authorizes the source · 2. `take.rs` shares its bytes or stores
//!    them once more ·
//! 3. `pages.rs` does so for page blobs, part by part, what is not written left out · 4. `parts.rs`
//!    commits them as a block, an append or pages of a blob, `blobs.rs` as a blob.
//!
//! `pending.rs` carries out copies that outlive their request, through the same files.
//!
//! Invariants: what is shared is held until the commit that names it was answered; bytes are
//! durable before the commit.

pub(crate) mod blobs;
mod pages;
pub(crate) mod parts;
pub(crate) mod pending;
mod take;

pub(crate) use blobs::{copy, put_blob};
pub(crate) use pending::abort;

use crate::frontend::accounts::Account;
use crate::frontend::source::Requester;

/// Who asks, for which account.
pub(crate) type Asking<'a> = (Requester<'a>, &'a Account);
