//! The bytes of a row in the store file.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::coordinator::api::Error;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Session;
use crate::coordinator::transaction::Row;

use super::failure::corrupt;
use crate::types::Crc32c;

/// The stored bytes of a row: CRC-32C u32, mod revision u64, session u64 (0: none), all little
/// endian; then the value.
pub(super) fn encode_row(key: &[u8], row: &Row) -> Vec<u8> {
    let revision = row.mod_revision.0.to_le_bytes();
    let session = row.session.map_or(0, |session| session.0).to_le_bytes();
    let checked = [&revision[..], &session, &row.value].concat();
    [&row_crc(key, &checked).to_le_bytes(), &checked[..]].concat()
}

/// Reads the stored bytes of a row.
///
/// # Errors
/// [`Error::Corrupt`] if they are not the bytes that were stored under `key`.
pub(super) fn decode_row(key: &[u8], bytes: &[u8]) -> Result<Row, Error> {
    let damaged = || corrupt(format!("the row of {} fails its checksum", key.escape_ascii()));
    let (crc, checked) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    if *crc != row_crc(key, checked).to_le_bytes() {
        return Err(damaged());
    }
    let (revision, rest) = checked.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (session, value) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
    Ok(Row {
        mod_revision: Revision(u64::from_le_bytes(*revision)),
        session: Some(Session(u64::from_le_bytes(*session))).filter(|session| session.0 != 0),
        value: Bytes::copy_from_slice(value),
    })
}

/// The checksum of a row. It covers the key, so that a value under another key is detected as
/// damage.
fn row_crc(key: &[u8], rest: &[u8]) -> u32 {
    Crc32c::of(&[key, rest].concat()).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_golden_bytes_and_refuse_every_flip() {
        let row = Row {
            mod_revision: Revision(0x0102),
            session: Some(Session(3)),
            value: Bytes::from_static(b"v"),
        };
        let bytes = encode_row(b"k", &row);
        assert_eq!(bytes[4..], [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, b'v']);
        assert_eq!(decode_row(b"k", &bytes).unwrap(), row);
        assert!(decode_row(b"j", &bytes).is_err(), "another key");
        for len in 0..bytes.len() {
            assert!(decode_row(b"k", &bytes[..len]).is_err(), "cut to {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_row(b"k", &flipped).is_err(), "bit {bit}");
        }
    }
}
