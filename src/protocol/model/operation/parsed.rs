//! The operation of a request, as far as its head determines it.

use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::Operation;
use crate::protocol::model::operation::Upload;

/// The result of parsing the head of a request. The operation is boxed: it takes half a KiB and is
/// passed through many functions.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// All of the operation.
    Ready(Box<Operation>),
    /// The rest is in a document, which is the request's body.
    NeedsBody {
        /// The operation, without the fields from the document.
        operation: Box<Operation>,
        /// The document.
        body: DocumentBody,
    },
}

impl Parsed {
    /// All of an operation.
    #[must_use]
    pub fn ready(operation: Operation) -> Self {
        Self::Ready(Box::new(operation))
    }

    /// The operation, and the document that is to complete it.
    #[must_use]
    pub fn into_parts(self) -> (Box<Operation>, Option<DocumentBody>) {
        match self {
            Self::Ready(operation) => (operation, None),
            Self::NeedsBody { operation, body } => (operation, Some(body)),
        }
    }

    /// The operation, complete or not, to be restricted.
    pub fn operation_mut(&mut self) -> &mut Operation {
        match self {
            Self::Ready(operation) | Self::NeedsBody { operation, .. } => operation,
        }
    }

    /// The operation, complete or not.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        match self {
            Self::Ready(operation) | Self::NeedsBody { operation, .. } => operation,
        }
    }
}

/// A document that is to be read.
#[derive(Clone, Copy, Debug)]
pub struct DocumentBody {
    /// Its length, at most what the dialect allows, and its checksums.
    pub upload: Upload,
    /// Reads it.
    pub decode: Decode,
}

/// Completes an operation with the fields from the document.
///
/// # Errors
/// The documented code of the first thing wrong with the document.
pub type Decode = fn(&mut Operation, &Document<'_>) -> Result<(), Refusal>;

/// A document that has come, with the checksums that were claimed of it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// The checksum of the kind that the client used, else the CRC-64.
    pub checksum: BodyChecksum,
}
