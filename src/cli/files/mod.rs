//! `blockyard ls`, `cp`, `rm`, `cat` and `stat`: commands that are clients of any blob service.
//!
//! The main path of a copy: `cp.rs` reads the arguments, and `place.rs` distinguishes URLs from
//! local paths. `connect.rs` finds account and endpoint, `url.rs` parses URLs. `plan.rs` decides
//! what each source means, `work.rs` finds the files (`walk.rs`) and blobs (`listing.rs`) one by
//! one, and `upload.rs`, `download.rs` and `transfer.rs` copy each. `copying.rs` has what they
//! share, `meter.rs` counts.
//!
//! Below them: `blobs.rs` has the operations of the service, `service.rs` signs requests and
//! retries them, `http.rs` keeps the connections, `endpoint.rs` writes URLs. `names.rs` compares
//! names of blobs with names of files. `blocks.rs` recognises blocks that are already uploaded,
//! `note.rs` the pieces of an unfinished download, `same.rs` files that need no copy. `local.rs`
//! lists, reads and describes local files for the other commands, `local_rm.rs` removes them.
//!
//! Invariants: a name that the server sends never leads out of the target folder. A file or blob at
//! the target is replaced in one step, by all bytes of one state of its source. Bytes of an earlier
//! run are reused only if their digest is known to be the same. A refused request is retried only
//! if it can succeed later. No key and no signature is printed.

mod blobs;
mod blocks;
pub(super) mod cat;
pub(super) mod connect;
mod content_type;
mod copying;
pub(super) mod cp;
mod download;
pub(super) mod endpoint;
pub(super) mod error;
mod http;
mod listing;
mod local;
mod local_rm;
pub(super) mod ls;
mod meter;
mod names;
mod note;
pub(super) mod place;
mod plan;
pub(super) mod rm;
mod same;
mod service;
pub(super) mod show;
pub(super) mod stat;
mod transfer;
mod upload;
pub(super) mod url;
mod walk;
mod work;
