//! The records behind accounts, containers and blobs: what rows hold and readers get. Bytes: `api-spec/rows.md`.
//!
//! `account.rs` is version 3, `container.rs` and `blob.rs` are version 2: each kind of row counts
//! its own. `version_1.rs` and `version_2.rs` read what earlier releases wrote.

mod account;
mod blob;
mod container;
mod version_1;
mod version_2;

pub use crate::types::Encryption;
pub use account::AccountRecord;
pub use blob::{BlobRecord, CopyRecord, CopyStatus};
pub use container::{ContainerRecord, StoredPolicy};
pub(in crate::index) use version_1::Upgrade;
