//! The model that all dialects share: addresses, operations, replies and refusals. It is neutral:
//! no header, no document, no vendor's error code (`tests/it/layering.rs`). The names of fields in
//! requests are in the folder of the dialect.

mod address;
pub mod checksum;
pub mod copy;
pub mod facts;
pub mod list_reply;
pub mod named_copy;
pub mod operation;
mod reason;
mod refusal;
pub mod reply;
pub mod upload_reply;

pub use address::Address;
pub use operation::{OPERATION_NAMES, Operation, Precondition};
pub use reason::Reason;
pub use refusal::{Cause, Detail, Hint, Refusal, SourceRefusal};
pub use reply::Reply;
