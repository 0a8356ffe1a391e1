//! Pieces of a body as one buffer.

use bytes::Bytes;

/// One buffer from pieces; a single piece is not copied.
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
