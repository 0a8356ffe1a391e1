//! The bytes of a row in the store file.

use bytes::Bytes;

use crate::coordinator::api::Error;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Session;
use crate::coordinator::transaction::Row;

use super::failure::corrupt;
use crate::types::Crc32c;

/// crc32c u32, mod revision u64, session u64 (0: none), all little endian; then the value.
const ROW_HEADER_BYTES: usize = 20;

/// The stored bytes of a row.
pub(super) fn encode_row(key: &[u8], row: &Row) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&row.mod_revision.0.to_le_bytes());
    bytes.extend_from_slice(&row.session.map_or(0, |session| session.0).to_le_bytes());
    bytes.extend_from_slice(&row.value);
    let crc = row_crc(key, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads the stored bytes of a row.
///
/// # Errors
/// [`Error::Corrupt`] when they are not those that were stored under `key`.
pub(super) fn decode_row(key: &[u8], bytes: &[u8]) -> Result<Row, Error> {
    let damaged = || corrupt(format!("the row of {} fails its checksum", key.escape_ascii()));
    let (header, value) = bytes.split_at_checked(ROW_HEADER_BYTES).ok_or_else(damaged)?;
    let number = |at: usize| header[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    if header[..4] != row_crc(key, &bytes[4..]).to_le_bytes() {
        return Err(damaged());
    }
    Ok(Row {
        mod_revision: Revision(number(4)),
        session: Some(Session(number(12))).filter(|session| session.0 != 0),
        value: Bytes::copy_from_slice(value),
    })
}

/// Covers the key too: a value that turns up under another key is damage.
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
