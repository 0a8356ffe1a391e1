//! Runs the decoders of forms on arbitrary bytes. The fuzz target calls it.

use bytes::Bytes;

use crate::protocol::model::Refusal;
use crate::protocol::s3::errors::error_row;
use crate::protocol::s3::form::boundary::Boundary;
use crate::protocol::s3::form::fields::PostForm;
use crate::protocol::s3::form::file::FileDecoder;
use crate::protocol::s3::form::file::LengthRange;
use crate::protocol::s3::form::policy;
use crate::protocol::s3::form::reader::FormReader;
use crate::types::Timestamp;

/// Reads `bytes` as a form with the boundary `B`, in pieces of `size` bytes. Returns the file.
///
/// # Errors
/// Those of the decoders.
///
/// # Panics
/// When a refusal is not the client's fault, or a policy is: a fault of this program.
pub fn decode_form(bytes: &[u8], size: usize) -> Result<Vec<u8>, Refusal> {
    let read = decode(bytes, size.max(1));
    if let Err(refusal) = &read {
        let status = error_row(refusal.reason).status;
        assert!((400..500).contains(&status), "{refusal:?}");
    }
    read
}

fn decode(bytes: &[u8], size: usize) -> Result<Vec<u8>, Refusal> {
    let Some(boundary) = Boundary::new("B") else { return Ok(Vec::new()) };
    let mut reader = FormReader::new(boundary);
    let (mut decoder, mut file): (Option<FileDecoder>, Vec<u8>) = (None, Vec::new());
    for piece in bytes.chunks(size) {
        let mut piece = Bytes::copy_from_slice(piece);
        if decoder.is_none()
            && let Some(form) = reader.push(&mut piece)?
        {
            decoder = Some(FileDecoder::new(form.boundary(), allowed(&form)?));
        }
        while let Some(decoder) = &mut decoder
            && let Some(content) = decoder.next(&mut piece)?
        {
            file.extend_from_slice(&content);
        }
    }
    match decoder {
        Some(decoder) => decoder.finish().map(|()| file),
        None => Err(reader.ended()),
    }
}

fn allowed(form: &PostForm) -> Result<LengthRange, Refusal> {
    match form.get("policy") {
        Some(text) => policy::check(text, form, "b", Timestamp::ZERO),
        None => Ok(LengthRange::ANY),
    }
}
