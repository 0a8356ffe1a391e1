//! Bodies that hold more than their content: which decoder reads a framing, and the encoder of
//! answers. A dialect that frames bodies in another way adds a variant here and to
//! [`Framing`].

use bytes::Bytes;

use crate::frontend::dialect::s3::body::SignedBody;
use crate::protocol::azure::structured;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Framing;
use crate::protocol::s3;
use crate::protocol::s3::form::FileDecoder;
use crate::types::ChecksumValue;

pub use crate::protocol::azure::query_records::QueryRecords;
pub use crate::protocol::azure::structured::Encoder;

/// Extracts the content from a body as it arrives.
#[derive(Debug)]
pub enum Decoder {
    /// Numbered segments with checksums: Azure's structured message.
    Segmented(Box<structured::Decoder>),
    /// Content that is signed, perhaps in chunks: S3's.
    Signed(Box<SignedBody>),
    /// The file of a form: S3's.
    File(Box<FileDecoder>),
}

impl Decoder {
    /// The decoder of a framing; `None` when the body is the content.
    #[must_use]
    pub fn of(framing: Framing) -> Option<Self> {
        match framing {
            Framing::Known { .. } | Framing::Open { .. } => None,
            Framing::Segmented { len, message_len } => {
                let decoder = structured::Decoder::new(message_len, len);
                Some(Self::Segmented(Box::new(decoder)))
            }
        }
    }

    /// Takes the next bytes of the body and returns the content among them; call it until `bytes`
    /// is empty. The content is not yet verified: none of it may become visible before
    /// [`Self::finish`].
    ///
    /// # Errors
    /// `InvalidInput` when the framing is broken, `Crc64Mismatch` when content is not what it was.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        match self {
            Self::Segmented(decoder) => decoder.next(bytes),
            Self::Signed(body) => body.next(bytes),
            Self::File(file) => file.next(bytes),
        }
    }

    /// A checksum of the content in a trailer of the body, once it has ended. It is not yet
    /// compared with the content.
    ///
    /// # Errors
    /// `ChecksumMismatch` when it is malformed.
    pub fn trailer_checksum(&self) -> Result<Option<ChecksumValue>, Refusal> {
        match self {
            Self::Segmented(_) | Self::File(_) => Ok(None),
            Self::Signed(body) => s3::of_trailers(body.trailers()),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// `InvalidInput` when it ended early.
    pub fn finish(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Segmented(decoder) => decoder.finish(),
            Self::Signed(body) => body.finish(),
            Self::File(file) => file.finish(),
        }
    }
}
