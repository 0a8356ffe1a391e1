//! Content under customer-provided keys: encrypted on its way in, decrypted on its way out. The key lives as long as
//! the request.

use bytes::Bytes;

use crate::capacity;
use crate::capacity::Capacity;
use crate::env::Env;
use crate::frontend::read;
use crate::index::Piece;
use crate::types::ContentCipher;
use crate::types::CustomerKey;
use crate::types::Seal;

/// Encrypts one content, piece by piece.
#[derive(Debug)]
pub(crate) struct Sealing {
    seal: Seal,
    cipher: ContentCipher,
    at: u64,
}

impl Sealing {
    /// A seal with a fresh nonce; `None` without a key.
    pub(crate) fn new(env: &Env, key: Option<&CustomerKey>) -> Option<Self> {
        let key = key?;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&env.rand.next_u64().to_be_bytes());
        nonce[8..].copy_from_slice(&env.rand.next_u64().to_be_bytes());
        let seal = key.seal(nonce);
        Some(Self { seal, cipher: key.cipher(&seal)?, at: 0 })
    }

    /// What the row keeps.
    pub(crate) const fn seal(&self) -> Seal {
        self.seal
    }

    /// The next piece, encrypted.
    pub(crate) fn apply(&mut self, piece: &[u8]) -> Bytes {
        let sealed = self.cipher.apply(self.at, piece);
        self.at += sealed.len() as u64;
        sealed
    }
}

/// Why a piece is not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Capacity(#[from] capacity::Error),
    /// It is under a customer-provided key that is not at hand.
    #[error("the content is encrypted under another key")]
    Locked,
}

/// Reads a piece, decrypted.
pub(crate) async fn fetch(
    capacity: &dyn Capacity,
    key: Option<&CustomerKey>,
    piece: &Piece,
) -> Result<Vec<Bytes>, Fault> {
    let (mut sealed, mut piece) = (None, piece);
    while let Piece::Encrypted { seal, at, piece: inner } = piece {
        let cipher = key.and_then(|key| key.cipher(seal)).ok_or(Fault::Locked)?;
        (sealed, piece) = (Some((cipher, *at)), inner);
    }
    let pieces = match piece {
        Piece::Inline(bytes) => vec![bytes.clone()],
        Piece::Stored { location, range } => capacity.read(location, range.clone()).await?,
        Piece::Encrypted { .. } => return Err(Fault::Locked),
        Piece::Zeros(len) => read::zeros(*len).into(),
    };
    let Some((mut cipher, mut at)) = sealed else { return Ok(pieces) };
    let decrypt = pieces.iter().map(|sealed| {
        let plain = cipher.apply(at, sealed);
        at += plain.len() as u64;
        plain
    });
    Ok(decrypt.collect())
}

/// Cuts a piece at the next multiple of `step` payload bytes, so that no frame is read twice; what is left comes second.
pub(crate) fn cut(piece: Piece, step: u64) -> (Piece, Option<Piece>) {
    match piece {
        Piece::Stored { location, range } => {
            let end = (range.start - range.start % step + step).min(range.end);
            let rest = (end < range.end).then(|| Piece::Stored { location, range: end..range.end });
            (Piece::Stored { location, range: range.start..end }, rest)
        }
        Piece::Encrypted { seal, at, piece } => {
            let (first, rest) = cut(*piece, step);
            let past = at + length(&first);
            let wrap = |at, piece| Piece::Encrypted { seal, at, piece: Box::new(piece) };
            (wrap(at, first), rest.map(|rest| wrap(past, rest)))
        }
        Piece::Zeros(len) => {
            let first = len.min(step);
            (Piece::Zeros(first), (first < len).then(|| Piece::Zeros(len - first)))
        }
        inline @ Piece::Inline(_) => (inline, None),
    }
}

/// Payload bytes of a piece.
pub(crate) fn length(piece: &Piece) -> u64 {
    match piece {
        Piece::Inline(bytes) => bytes.len() as u64,
        Piece::Stored { range, .. } => range.end - range.start,
        Piece::Encrypted { piece, .. } => length(piece),
        Piece::Zeros(len) => *len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ExtentId;
    use crate::types::Location;

    fn encrypted(at: u64, piece: Piece) -> Piece {
        let seal = Seal { nonce: [1; 16], key_sha256: [2; 32] };
        Piece::Encrypted { seal, at, piece: Box::new(piece) }
    }

    #[test]
    fn a_cut_piece_knows_where_it_begins() {
        let location = Location { extent: ExtentId::new(1), offset: 0, len: 100, crc: 0 };
        let stored = |range| Piece::Stored { location, range };
        let (first, rest) = cut(encrypted(1005, stored(5..95)), 10);
        assert_eq!(first, encrypted(1005, stored(5..10)));
        assert_eq!(rest, Some(encrypted(1010, stored(10..95))));
        let (first, rest) = cut(stored(90..95), 10);
        assert_eq!((first, rest), (stored(90..95), None));
        let inline = encrypted(0, Piece::Inline("abc".into()));
        assert_eq!(cut(inline.clone(), 1), (inline, None));
    }
}
