//! Content under keys of customers or of encryption scopes: encrypts it before it is stored,
//! decrypts and verifies it after it is read. A customer's key is kept in memory as long as the
//! request.

pub(crate) mod claim;
pub(crate) mod scope;
pub(crate) mod unlock;

use std::collections::VecDeque;

use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;

use crate::capacity;
use crate::capacity::Capacity;
use crate::env::Env;
use crate::frontend::errors;
use crate::index::BlobRecord;
use crate::index::Piece;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::types::AccountName;
use crate::types::BlobProperties;
use crate::types::ChecksumValue;
use crate::types::ChunkWriter;
use crate::types::ContentChecksum;
use crate::types::ContentMd5;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::ExtentId;
use crate::types::KeyedNonce;
use crate::types::authenticated_range;
use crate::types::step_end;

/// Encrypts the content of one request under a nonce of its own.
#[derive(Debug)]
pub(crate) struct Encrypting {
    key: CustomerKey,
    nonce: KeyedNonce,
}

impl Encrypting {
    /// A fresh nonce; `None` without a key.
    pub(crate) fn new(env: &Env, key: Option<&CustomerKey>) -> Option<Self> {
        let key = key?.clone();
        let nonce = key.keyed_nonce(random(env));
        Some(Self { key, nonce })
    }

    /// The nonce that the row keeps.
    pub(crate) const fn nonce(&self) -> KeyedNonce {
        self.nonce
    }

    /// Begins content of `len` bytes.
    pub(crate) fn begin(&self, len: u64) -> ChunkWriter {
        self.writer(self.nonce, len)
    }

    /// Part `number` of a Put Page, encrypted. Each part is encrypted separately, so that the index
    /// can split and drop it without the key.
    pub(crate) fn part(&self, number: u64, bytes: &Bytes) -> Vec<Bytes> {
        let mut writer = self.writer(self.nonce.part(number), bytes.len() as u64);
        let mut encrypted = writer.push(bytes);
        encrypted.extend(writer.finish());
        encrypted
    }

    fn writer(&self, nonce: KeyedNonce, len: u64) -> ChunkWriter {
        ChunkWriter::new(self.key.chunks(&nonce, len).expect("the nonce was made with this key"))
    }
}

/// 16 random bytes.
pub(crate) fn random(env: &Env) -> [u8; 16] {
    let (high, low) = (env.rand.next_u64(), env.rand.next_u64());
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// Encrypts the Content-MD5 of properties that a request with a key sets.
pub(crate) fn encrypt_md5(env: &Env, key: Option<&CustomerKey>, properties: &mut BlobProperties) {
    if let (Some(key), Some(md5)) = (key, properties.content_md5.plain()) {
        properties.content_md5 = ContentMd5::Encrypted(Box::new(key.encrypt_md5(md5, random(env))));
    }
}

/// The checksums that the row of a new blob keeps. The CRC-64 is in each row already, but not that
/// of content under a customer's key.
pub(crate) fn kept_checksums(
    env: &Env,
    key: Option<&CustomerKey>,
    named: Option<ChecksumValue>,
    crc64: Crc64,
) -> Vec<ContentChecksum> {
    match (key, named) {
        (None, None) => Vec::new(),
        (None, Some(named)) if named == crc64.into() => Vec::new(),
        (None, Some(named)) => vec![named.of_whole()],
        (Some(key), named) => {
            let plain = named.unwrap_or_else(|| crc64.into());
            let digest = key.encrypt_checksum(plain.digest(), random(env));
            vec![ContentChecksum { digest, ..plain.of_whole() }]
        }
    }
}

/// Decrypts the checksums of a blob that is read with its key.
///
/// # Errors
/// `InternalError` when one was changed on disk.
pub(crate) fn decrypt_checksums(
    decrypting: Option<&Decrypting>,
    record: &mut BlobRecord,
) -> Result<(), Refusal> {
    let is_under_key = record.is_under_key();
    match (decrypting, &mut record.fields) {
        (Some(decrypting), Some(fields)) if is_under_key => {
            decrypt_digests(decrypting, &mut fields.checksums)
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Decrypts checksums of content under the key.
///
/// # Errors
/// As [`decrypt_checksums`].
pub(crate) fn decrypt_digests(
    decrypting: &Decrypting,
    checksums: &mut [ContentChecksum],
) -> Result<(), Refusal> {
    for checksum in checksums {
        let digest = decrypting.key.decrypt_checksum(&checksum.digest);
        checksum.digest = digest.ok_or_else(|| {
            decrypting.refuse(PieceError::ChecksumNotAuthentic);
            Refusal::from(Reason::InternalError)
        })?;
    }
    Ok(())
}

/// Decrypts the Content-MD5 of a blob that is read with its key.
///
/// # Errors
/// `InternalError` when it was changed on disk.
pub(crate) fn decrypt_md5(
    decrypting: Option<&Decrypting>,
    properties: &mut BlobProperties,
) -> Result<(), Refusal> {
    let (Some(decrypting), ContentMd5::Encrypted(encrypted)) =
        (decrypting, &properties.content_md5)
    else {
        return Ok(());
    };
    let md5 = decrypting.key.decrypt_md5(encrypted);
    let md5 = md5.ok_or_else(|| {
        decrypting.refuse(PieceError::Md5NotAuthentic);
        Refusal::from(Reason::InternalError)
    })?;
    properties.content_md5 = ContentMd5::Plain(md5);
    Ok(())
}

/// Decrypts the content of one blob for a request with a key. Logs content that is not authentic.
#[derive(Clone, Debug)]
pub(crate) struct Decrypting {
    key: CustomerKey,
    account: AccountName,
    container: String,
    blob: String,
    /// Counts content that is not authentic.
    not_authentic: Counter,
}

impl Decrypting {
    /// For the blob of this path.
    pub(crate) fn new(
        key: &CustomerKey,
        account: &AccountName,
        path: &BlobPath,
        not_authentic: Counter,
    ) -> Self {
        let container = path.container.as_str().to_owned();
        let blob = path.blob.as_str().to_owned();
        Self { key: key.clone(), account: account.clone(), container, blob, not_authentic }
    }

    /// The log line carries the id of the request.
    fn refuse(&self, error: PieceError) -> PieceError {
        self.not_authentic.inc();
        let (account, container, blob) = (&self.account, &self.container, &self.blob);
        let what = "content under a key is not served";
        tracing::error!(%account, container, ?blob, fault = %error, "{what}");
        error
    }
}

/// Why a piece cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PieceError {
    #[error(transparent)]
    Capacity(#[from] capacity::Error),
    /// It is encrypted under a customer-provided key that the request does not have.
    #[error("the content is encrypted under another key")]
    Locked,
    /// It is not the stored content, although its checksums may match.
    #[error(
        "encrypted content in {} is damaged or was changed",
        .0.map_or("a row".to_owned(), |extent| format!("extent {extent}"))
    )]
    NotAuthentic(Option<ExtentId>),
    /// Its MD5 is not what was stored.
    #[error("the Content-MD5 in a row is damaged or was changed")]
    Md5NotAuthentic,
    /// A checksum is not what was stored.
    #[error("a checksum in a row is damaged or was changed")]
    ChecksumNotAuthentic,
}

impl PieceError {
    /// The answer to the client.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::Capacity(error) => errors::from_capacity(error),
            Self::Locked => Reason::BlobUsesCustomerSpecifiedEncryption.into(),
            // Already logged, with the blob's name.
            Self::NotAuthentic(_) | Self::Md5NotAuthentic | Self::ChecksumNotAuthentic => {
                errors::internal("Storage failed; see the server's log.")
            }
        }
    }
}

/// Reads a piece and decrypts it. It is also verified, except content of early releases, which has
/// no tags.
pub(crate) async fn fetch(
    capacity: &dyn Capacity,
    decrypting: Option<&Decrypting>,
    piece: &Piece,
) -> Result<Vec<Bytes>, PieceError> {
    match piece {
        Piece::Encrypted { nonce, at, piece } => {
            let cipher = decrypting.and_then(|decrypting| decrypting.key.cipher(nonce));
            let mut cipher = cipher.ok_or(PieceError::Locked)?;
            let mut at = *at;
            let decrypt = |encrypted: &Bytes| {
                let plain = cipher.apply(at, encrypted);
                at += plain.len() as u64;
                plain
            };
            Ok(stored(capacity, piece).await?.iter().map(decrypt).collect())
        }
        Piece::Authenticated { nonce, len, range, piece } => {
            let decrypting = decrypting.ok_or(PieceError::Locked)?;
            let cipher = decrypting.key.chunks(nonce, *len).ok_or(PieceError::Locked)?;
            let encrypted = stored(capacity, piece).await?;
            let plain = cipher.decrypt(range, &encrypted);
            Ok(vec![
                plain.ok_or_else(|| decrypting.refuse(PieceError::NotAuthentic(piece.extent())))?,
            ])
        }
        Piece::Inline(_) | Piece::Stored { .. } | Piece::Zeros(_) => stored(capacity, piece).await,
    }
}

/// Reads a piece as it is stored.
async fn stored(capacity: &dyn Capacity, piece: &Piece) -> Result<Vec<Bytes>, PieceError> {
    match piece {
        Piece::Inline(bytes) => Ok(vec![bytes.clone()]),
        Piece::Stored { location, range } => Ok(capacity.read(location, range.clone()).await?),
        Piece::Zeros(len) => Ok(zeros(*len).into()),
        // Pieces are never encrypted twice.
        Piece::Encrypted { .. } | Piece::Authenticated { .. } => Err(PieceError::Locked),
    }
}

/// `len` zeros, at most a few MiB, without an allocation for them.
pub(crate) fn zeros(len: u64) -> VecDeque<Bytes> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut left = usize::try_from(len).unwrap_or(usize::MAX);
    let mut pieces = VecDeque::new();
    while left > 0 {
        let part = ZEROS.get(..left).unwrap_or(&ZEROS);
        pieces.push_back(Bytes::from_static(part));
        left -= part.len();
    }
    pieces
}

/// A piece that was split.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) first: Piece,
    /// The rest of it, if any.
    pub(crate) rest: Option<Piece>,
}

/// Splits a piece at the next multiple of `step` stored bytes, so that no frame is read twice.
pub(crate) fn split_at_step(piece: Piece, step: u64) -> Split {
    match piece {
        Piece::Stored { location, range } => {
            let end = (range.start - range.start % step + step).min(range.end);
            let rest = (end < range.end).then(|| Piece::Stored { location, range: end..range.end });
            Split { first: Piece::Stored { location, range: range.start..end }, rest }
        }
        Piece::Encrypted { nonce, at, piece } => {
            let Split { first, rest } = split_at_step(*piece, step);
            let past = at + length(&first);
            let wrap = |at, piece| Piece::Encrypted { nonce, at, piece: Box::new(piece) };
            Split { first: wrap(at, first), rest: rest.map(|rest| wrap(past, rest)) }
        }
        Piece::Authenticated { nonce, len, range, piece } => {
            let end = step_end(range.start, step).min(range.end);
            let wrap =
                |range, piece| Piece::Authenticated { nonce, len, range, piece: Box::new(piece) };
            if end == range.end {
                return Split { first: wrap(range, *piece), rest: None };
            }
            let plain = range.start..end;
            let encrypted = authenticated_range(&plain, u64::MAX);
            let Split { first, rest } = split_at(*piece, encrypted.end - encrypted.start);
            Split { first: wrap(plain, first), rest: rest.map(|rest| wrap(end..range.end, rest)) }
        }
        Piece::Zeros(len) => {
            let first = len.min(step);
            let rest = (first < len).then(|| Piece::Zeros(len - first));
            Split { first: Piece::Zeros(first), rest }
        }
        inline @ Piece::Inline(_) => Split { first: inline, rest: None },
    }
}

/// Splits a piece that is stored or in a row after `len` bytes.
fn split_at(piece: Piece, len: u64) -> Split {
    match piece {
        Piece::Stored { location, range } if range.end - range.start > len => {
            let middle = range.start + len;
            let rest = Piece::Stored { location, range: middle..range.end };
            let first = Piece::Stored { location, range: range.start..middle };
            Split { first, rest: Some(rest) }
        }
        Piece::Inline(bytes) if bytes.len() as u64 > len => {
            let middle = usize::try_from(len).unwrap_or(usize::MAX);
            let rest = Some(Piece::Inline(bytes.slice(middle..)));
            Split { first: Piece::Inline(bytes.slice(..middle)), rest }
        }
        whole @ (Piece::Stored { .. }
        | Piece::Inline(_)
        | Piece::Encrypted { .. }
        | Piece::Authenticated { .. }
        | Piece::Zeros(_)) => Split { first: whole, rest: None },
    }
}

/// Payload bytes of a piece.
pub(crate) fn length(piece: &Piece) -> u64 {
    match piece {
        Piece::Inline(bytes) => bytes.len() as u64,
        Piece::Stored { range, .. } | Piece::Authenticated { range, .. } => range.end - range.start,
        Piece::Encrypted { piece, .. } => length(piece),
        Piece::Zeros(len) => *len,
    }
}

#[cfg(test)]
mod tests;
