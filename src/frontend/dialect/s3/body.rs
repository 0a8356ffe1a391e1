//! Bodies whose content is signed: as a whole, or chunk by chunk. Content is returned before it is
//! verified; none of it may become visible before [`SignedBody::finish`].

use bytes::Bytes;
use http::HeaderMap;

use crate::auth::ChunkVerifier;
use crate::auth::Payload;
use crate::auth::Sha256Stream;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3;
use crate::protocol::s3::chunked::ChunkForm;
use crate::protocol::s3::chunked::ChunkedDecoder;
use crate::protocol::s3::chunked::Piece;
use crate::protocol::s3::chunked::Trailers;

/// Extracts the content from a body and verifies it against the signature.
#[derive(Debug)]
pub struct SignedBody(Form);

#[derive(Debug)]
enum Form {
    /// The body is the content, and has this SHA-256.
    Whole { expected: [u8; 32], hash: Sha256Stream },
    /// The content lies in chunks.
    Chunks {
        decoder: ChunkedDecoder,
        /// `None` when chunks are not signed.
        verifier: Option<Box<ChunkVerifier>>,
        /// Of the current chunk.
        hash: Sha256Stream,
        trailers: Option<Trailers>,
    },
}

impl SignedBody {
    /// The verifier of a body; `None` if its signature does not cover it.
    ///
    /// # Errors
    /// `MissingContentLengthHeader` for chunks without the length of their content.
    pub(super) fn of(payload: Payload, head: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let form = match payload {
            Payload::Unsigned => return Ok(None),
            Payload::Sha256(expected) => Form::Whole { expected, hash: Sha256Stream::default() },
            Payload::Chunks { verifier, trailers } => {
                let len = s3::content_len(head)?.ok_or(Reason::MissingContentLengthHeader)?;
                let form = match (&verifier, trailers) {
                    (None, _) => ChunkForm::Unsigned,
                    (Some(_), false) => ChunkForm::Signed,
                    (Some(_), true) => ChunkForm::SignedWithTrailers,
                };
                let decoder = ChunkedDecoder::new(len, form);
                Form::Chunks { decoder, verifier, hash: Sha256Stream::default(), trailers: None }
            }
        };
        Ok(Some(Self(form)))
    }

    /// The next content among these bytes; call until `bytes` is empty.
    ///
    /// # Errors
    /// `IncompleteBody` when the chunks are malformed, `AuthenticationFailed` when the signature of
    /// one does not match.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        match &mut self.0 {
            Form::Whole { .. } if bytes.is_empty() => Ok(None),
            Form::Whole { hash, .. } => {
                hash.update(bytes);
                Ok(Some(std::mem::take(bytes)))
            }
            Form::Chunks { decoder, verifier, hash, trailers } => {
                while let Some(piece) = decoder.next(bytes)? {
                    match piece {
                        Piece::Content(content) => {
                            if verifier.is_some() {
                                hash.update(&content);
                            }
                            return Ok(Some(content));
                        }
                        Piece::ChunkEnd(signature) => {
                            let sha256 = std::mem::take(hash).finish();
                            if let Some(verifier) = verifier {
                                let signature = signature.unwrap_or_default();
                                check(verifier.chunk(&sha256, &signature))?;
                            }
                        }
                        Piece::Trailers(found) => {
                            if let (Some(verifier), Some(signature)) =
                                (verifier.as_mut(), &found.signature)
                            {
                                check(verifier.trailers(&found.signed_lines(), signature))?;
                            }
                            // Bytes that follow are refused by the next round.
                            *trailers = Some(found);
                        }
                    }
                }
                Ok(None)
            }
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// `IncompleteBody` when it ended early, `PayloadHashMismatch` when it differs from the signed
    /// content.
    pub fn finish(&mut self) -> Result<(), Refusal> {
        match &mut self.0 {
            Form::Whole { expected, hash } => {
                let is_signed = std::mem::take(hash).finish() == *expected;
                if is_signed { Ok(()) } else { Err(Reason::PayloadHashMismatch.into()) }
            }
            Form::Chunks { decoder, .. } => decoder.finish(),
        }
    }

    /// The trailers behind the content, once the body has ended: names in lower case, and values.
    #[must_use]
    pub fn trailers(&self) -> &[(String, String)] {
        match &self.0 {
            Form::Chunks { trailers: Some(trailers), .. } => &trailers.fields,
            Form::Chunks { trailers: None, .. } | Form::Whole { .. } => &[],
        }
    }
}

fn check(matches: bool) -> Result<(), Refusal> {
    if matches { Ok(()) } else { Err(Reason::AuthenticationFailed.into()) }
}
