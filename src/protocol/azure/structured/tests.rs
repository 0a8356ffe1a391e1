use std::collections::VecDeque;

use bytes::Bytes;

use super::*;
use crate::types::Crc64;

fn encode(content: &[u8], step: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(content.len() as u64);
    let mut out = VecDeque::new();
    encoder.start(&mut out);
    for piece in content.chunks(step) {
        encoder.push(Bytes::copy_from_slice(piece), &mut out);
    }
    let message: Vec<u8> = out.into_iter().flatten().collect();
    assert_eq!(message.len() as u64, encoder.message_len());
    message
}

fn decode(message: &[u8], content_len: u64, step: usize) -> Result<Vec<u8>, Reason> {
    let mut decoder = Decoder::new(message.len() as u64, content_len);
    let mut content = Vec::new();
    for piece in message.chunks(step) {
        let mut piece = Bytes::copy_from_slice(piece);
        while let Some(part) = decoder.next(&mut piece).map_err(|e| e.reason)? {
            content.extend_from_slice(&part);
        }
    }
    decoder.finish().map_err(|e| e.reason)?;
    Ok(content)
}

/// Two segments of "ab" and "c".
fn two() -> Vec<u8> {
    let crc = |bytes: &[u8]| Crc64::of(bytes).to_le_bytes();
    let mut message = vec![1];
    message.extend(60u64.to_le_bytes());
    message.extend([1, 0, 2, 0, 1, 0]);
    message.extend(2u64.to_le_bytes());
    message.extend(b"ab");
    message.extend(crc(b"ab"));
    message.extend([2, 0]);
    message.extend(1u64.to_le_bytes());
    message.extend(b"c");
    message.extend(crc(b"c"));
    message.extend(crc(b"abc"));
    assert_eq!(message.len(), 60);
    message
}

#[test]
fn messages_decode_however_they_are_cut() {
    for step in 1..61 {
        assert_eq!(decode(&two(), 3, step).unwrap(), b"abc", "{step}");
    }
}

#[test]
fn any_changed_byte_is_noticed() {
    for at in 0..two().len() {
        let mut message = two();
        message[at] ^= 0x40;
        let code = decode(&message, 3, 7).unwrap_err();
        let in_header = !matches!(at, 23..=32 | 43..=59);
        let expected = if in_header { Reason::InvalidInput } else { Reason::Crc64Mismatch };
        assert_eq!(code, expected, "byte {at}");
    }
}

#[test]
fn messages_of_another_length_are_refused() {
    let (message, invalid) = (two(), Reason::InvalidInput);
    assert_eq!(decode(&message, 2, 60).unwrap_err(), invalid);
    assert_eq!(decode(&message, 4, 60).unwrap_err(), invalid);
    for len in 0..message.len() {
        let mut decoder = Decoder::new(60, 3);
        let mut cut = Bytes::copy_from_slice(&message[..len]);
        while decoder.next(&mut cut).unwrap().is_some() {}
        assert_eq!(decoder.finish().unwrap_err().reason, invalid, "{len} bytes");
    }
    let mut decoder = Decoder::new(60, 3);
    let mut longer = Bytes::from([message, vec![0]].concat());
    let mut found = Ok(None);
    while !longer.is_empty() && found.is_ok() {
        found = decoder.next(&mut longer);
    }
    assert_eq!(found.unwrap_err().reason, invalid);
}

#[test]
fn what_is_encoded_decodes() {
    let content: Vec<u8> = (0..9_000_000u32).map(|n| n.to_le_bytes()[1]).collect();
    for len in [0, 1, 4 << 20, (4 << 20) + 1, 9_000_000] {
        let message = encode(&content[..len], 1_000_000);
        assert!(decode(&message, len as u64, 999_983).unwrap() == content[..len], "{len}");
    }
}

#[test]
fn long_content_has_longer_segments() {
    let encoder = Encoder::new(1 << 40);
    assert_eq!(encoder.segments, u16::MAX);
    assert!(encoder.segment_bytes * u64::from(encoder.segments) >= 1 << 40);
}

#[test]
fn heads_name_the_format_and_the_length() {
    const BODY: &str = "x-ms-structured-body";
    const LENGTH: &str = "x-ms-structured-content-length";
    let head = |pairs: &[(&'static str, &str)]| -> HeaderMap {
        let name = http::HeaderName::from_static;
        pairs.iter().map(|(n, value)| (name(n), value.parse().unwrap())).collect()
    };
    let len = |pairs| content_len(&head(pairs)).map_err(|e| e.reason);
    assert_eq!(len(&[]), Ok(None));
    assert_eq!(len(&[(BODY, STRUCTURED_BODY), (LENGTH, "7")]), Ok(Some(7)));
    let missing = Err(Reason::MissingRequiredHeader);
    assert_eq!(len(&[(BODY, STRUCTURED_BODY)]), missing);
    let invalid = Err(Reason::InvalidHeaderValue);
    assert_eq!(len(&[(BODY, "XSM/2.0"), (LENGTH, "7")]), invalid);
    assert_eq!(len(&[(LENGTH, "7")]), invalid);
    assert_eq!(len(&[(BODY, STRUCTURED_BODY), (LENGTH, "-1")]), invalid);
    assert_eq!(len(&[(BODY, STRUCTURED_BODY), (LENGTH, "x")]), invalid);
    let large = "99999999999999999999";
    assert_eq!(len(&[(BODY, STRUCTURED_BODY), (LENGTH, large)]), invalid);
}
