//! The records of accounts, containers and blobs, as rows hold them and readers get them. Layout:
//! `api-spec/rows.md`.
//!
//! Each kind of row counts its own versions: `account.rs` is version 5, `container.rs` and
//! `blob.rs` are version 3, `copy_job.rs` is version 2. `versions.rs` reads rows of earlier
//! releases, whose layouts are in `version_1.rs` to `version_4.rs`.
//!
//! The fields that few rows have come last in a record, as tagged fields (`tagged.rs`):
//! `account_fields.rs`, `container_fields.rs`, `blob_fields.rs`. `listed.rs` reads a blob's record
//! for a list, without a copy of the fields that the list does not show. `upload.rs`: uploads.
//! `user.rs`: users, which are a field of their account.

mod account;
mod account_fields;
mod blob;
mod blob_fields;
mod container;
mod container_fields;
mod copy_job;
mod listed;
mod scope;
pub(in crate::index) mod tagged;
mod upgrade;
mod upload;
mod user;
mod version_1;
mod version_2;
mod version_3;
mod version_4;
mod versions;

pub use crate::types::Encryption;
pub use account::AccountRecord;
pub use account_fields::AccountFields;
pub use blob::{BlobRecord, CopyRecord, CopyStatus};
pub use blob_fields::{BlobFields, IncrementalCopy, IncrementalSource};
pub use container::{ContainerRecord, StoredPolicy};
pub use container_fields::ContainerFields;
pub use copy_job::{CopyJob, CopyLease, CopyLink};
pub use listed::ListedFields;
pub(in crate::index) use listed::ListedRecord;
pub use scope::ScopeRecord;
pub use tagged::UnknownFields;
pub(in crate::index) use upgrade::{Upgrade, upgraded};
pub use upload::{CompletedRecord, UploadFields, UploadRecord};
pub use user::{UserKey, UserRecord};
