//! The records behind accounts, containers and blobs: what rows hold and readers get. Bytes:
//! `api-spec/rows.md`.
//!
//! `account.rs` is version 4, `container.rs`, `blob.rs` and `copy_job.rs` are version 2: each kind
//! of row counts its own. `version_1.rs` to `version_3.rs` read what earlier releases wrote.

mod account;
mod blob;
mod container;
mod copy_job;
mod version_1;
mod version_2;
mod version_3;

pub use crate::types::Encryption;
pub use account::AccountRecord;
pub use blob::{BlobRecord, CopyRecord, CopyStatus};
pub use container::{ContainerRecord, StoredPolicy};
pub use copy_job::{CopyJob, CopyLink};
pub(in crate::index) use version_1::Upgrade;
