//! What every dialect speaks of: addresses, operations, their answers and refusals. Neutral: no
//! header, no document, no vendor's error code (`tests/it/layering.rs`). What a field is called in
//! a request is in the folder of the dialect.

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
