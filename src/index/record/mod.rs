//! The records behind accounts, containers and blobs: what rows hold and readers get. Bytes: `api-spec/rows.md`.
//!
//! `account.rs`, `container.rs`, `blob.rs` are version 2; `version_1.rs` reads what earlier releases wrote.

mod account;
mod blob;
mod container;
mod version_1;

pub use crate::types::Encryption;
pub use account::AccountRecord;
pub use blob::{BlobRecord, CopyRecord, CopyStatus};
pub use container::{ContainerRecord, StoredPolicy};
pub(in crate::index) use version_1::Upgrade;
