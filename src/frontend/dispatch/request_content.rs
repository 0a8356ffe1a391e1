//! The unread part of a request's body, and the memory of its document.

use crate::frontend::body::RequestBody;
use crate::frontend::ingest::DocumentMemory;

/// The part of a request behind its head.
pub(crate) struct RequestContent<'a> {
    /// The body; its document, if any, is read already.
    pub(crate) body: &'a mut RequestBody,
    /// The memory of the document that completed the operation.
    pub(crate) document: Option<DocumentMemory>,
}
