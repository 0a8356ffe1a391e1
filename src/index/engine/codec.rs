//! Reads small encoded values from arbitrary bytes. Every step is bounds-checked, and nothing
//! panics.

#![deny(clippy::indexing_slicing)]

/// Appends `value` as a little-endian base-128 varint: 1 to 10 bytes.
pub(super) fn put_varint(out: &mut impl Extend<u8>, mut value: u64) {
    while value >= 0x80 {
        out.extend([low_byte(value & 0x7F) | 0x80]);
        value >>= 7;
    }
    out.extend([low_byte(value)]);
}

/// Takes a varint off the front; `None` if it is truncated or longer than 64 bits.
pub(super) fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let part = u64::from(byte & 0x7F);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a varint off the front that is a length of the same input, so that it fits in a `usize`.
pub(super) fn take_len(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_varint(input)?).ok()
}

/// Takes `len` bytes off the front.
pub(super) fn take<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(taken)
}

/// Takes one byte off the front.
pub(super) fn take_u8(input: &mut &[u8]) -> Option<u8> {
    take(input, 1)?.first().copied()
}

/// Takes a little-endian 32-bit number off the front.
pub(super) fn take_u32(input: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(input, 4)?.try_into().ok()?))
}

/// Takes a little-endian 64-bit number off the front.
pub(super) fn take_u64(input: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(input, 8)?.try_into().ok()?))
}

/// A length as `u64`.
pub(super) fn wide(len: usize) -> u64 {
    u64::try_from(len).expect("memory is below 2^64 bytes")
}

fn low_byte(value: u64) -> u8 {
    u8::try_from(value).expect("masked to seven bits")
}
