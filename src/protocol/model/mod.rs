//! What every dialect speaks of: operations, their answers and refusals. Neutral: no header, no
//! document, no vendor's error code.

pub mod checksum;
pub mod copy;
pub mod operation;
mod reason;
mod refusal;
pub mod reply;

pub use operation::{OPERATION_NAMES, Operation, Precondition};
pub use reason::Reason;
pub use refusal::{Cause, Detail, Refusal, SourceRefusal};
pub use reply::Reply;
