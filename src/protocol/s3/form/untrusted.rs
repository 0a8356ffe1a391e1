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
/// When a refusal is not the client's fault, or a policy is accepted: a fault of this program.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of forms, right ones among them more often than others.
    const PIECES: [&str; 12] = [
        "--B\r\n",
        "Content-Disposition: form-data; name=\"key\"\r\n\r\n",
        "k${filename}\r\n",
        "--B\r\n",
        "Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n",
        "content",
        "\r\n--B--\r\n",
        "\r\n--B\r\n",
        "\r\n",
        "\r\n--",
        "\r",
        "B",
    ];

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            ids in proptest::collection::vec(0..12_usize, 0..14),
            whole in any::<bool>(),
            size in 1..40_usize,
        ) {
            let start: &[usize] = if whole { &[0, 1, 2, 3, 4] } else { &[] };
            let form: String = start.iter().chain(&ids).map(|id| PIECES[*id]).collect();
            let form = form.as_bytes();
            let reason = |refusal: Refusal| refusal.reason;
            let at_once = decode_form(form, form.len()).map_err(reason);
            prop_assert_eq!(decode_form(form, size).map_err(reason), at_once);
        }
    }
}
