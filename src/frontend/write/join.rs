//! Joins the pieces of a body.

use bytes::Bytes;

/// Joins pieces into one buffer. A single piece is not copied.
pub(crate) fn join(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut whole = Vec::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in &pieces {
        whole.extend_from_slice(piece);
    }
    whole.into()
}
