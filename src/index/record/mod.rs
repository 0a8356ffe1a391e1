//! The records behind accounts, containers and blobs: what rows hold and readers get. Bytes:
//! `api-spec/rows.md`.
//!
//! `account.rs` is version 5, `container.rs` and `blob.rs` are version 3, `copy_job.rs` is version
//! 2: each kind of row counts its own. `versions.rs` reads what earlier releases wrote:
//! `version_1.rs` to `version_4.rs`.
//!
//! What lists show stands first in a record. What few rows have follows as tagged fields
//! (`tagged.rs`): `account_fields.rs`, `container_fields.rs`, `blob_fields.rs`.

mod account;
mod account_fields;
mod blob;
mod blob_fields;
mod container;
mod container_fields;
mod copy_job;
pub(in crate::index) mod tagged;
mod upgrade;
mod version_1;
mod version_2;
mod version_3;
mod version_4;
mod versions;

pub use crate::types::Encryption;
pub use account::AccountRecord;
pub use account_fields::AccountFields;
pub use blob::{BlobRecord, CopyRecord, CopyStatus};
pub use blob_fields::{BlobFields, IncrementalCopy};
pub use container::{ContainerRecord, StoredPolicy};
pub use container_fields::ContainerFields;
pub use copy_job::{CopyJob, CopyLink};
pub use tagged::UnknownFields;
pub(in crate::index) use upgrade::{Upgrade, upgraded};
