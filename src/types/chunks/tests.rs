use proptest::prelude::*;

use super::*;

fn key(byte: u8) -> CustomerKey {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode([byte; 32]);
    CustomerKey::from_base64(&text).unwrap()
}

fn cipher(nonce: u8, len: u64) -> ChunkCipher {
    let key = key(1);
    key.chunks(&key.keyed_nonce([nonce; 16]), len).unwrap()
}

fn plain(len: u64) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 256).to_le_bytes()[0]).collect()
}

/// Encrypts the content, in pieces of `step` bytes.
fn encrypted(nonce: u8, content: &[u8], step: usize) -> Vec<u8> {
    let mut writer = ChunkWriter::new(cipher(nonce, content.len() as u64));
    let mut out = Vec::new();
    for piece in content.chunks(step.max(1)) {
        out.extend(writer.push(piece));
    }
    out.extend(writer.finish());
    assert!(out.iter().rev().skip(1).all(|chunk| chunk.len() as u64 == AUTHENTICATED_CHUNK_BYTES));
    out.concat()
}

fn decrypt(nonce: u8, len: u64, range: Range<u64>, encrypted: &[u8]) -> Option<Bytes> {
    let within = authenticated_range(&range, encrypted.len() as u64);
    let part = Bytes::copy_from_slice(&encrypted[index(within.start)..index(within.end)]);
    cipher(nonce, len).decrypt(&range, &[part])
}

#[test]
fn lengths_are_mapped_in_both_directions() {
    let chunk = CHUNK_BYTES;
    for (len, encrypted) in [
        (0, 0),
        (1, 17),
        (chunk - 1, AUTHENTICATED_CHUNK_BYTES - 1),
        (chunk, AUTHENTICATED_CHUNK_BYTES),
        (chunk + 1, AUTHENTICATED_CHUNK_BYTES + 17),
        (65_536, 65_536 + 5 * 16),
        (64 * chunk, 1 << 20),
    ] {
        assert_eq!((authenticated_len(len), content_len(encrypted)), (encrypted, len));
    }
    // No encrypted content has such a length.
    for none in 1..=16 {
        assert_eq!(content_len(AUTHENTICATED_CHUNK_BYTES + none), chunk);
    }
    let encrypted = authenticated_len(2 * chunk + 10);
    assert_eq!(authenticated_range(&(0..1), encrypted), 0..AUTHENTICATED_CHUNK_BYTES);
    assert_eq!(
        authenticated_range(&(chunk - 1..chunk + 1), encrypted),
        0..2 * AUTHENTICATED_CHUNK_BYTES
    );
    assert_eq!(
        authenticated_range(&(chunk..chunk + 1), encrypted),
        AUTHENTICATED_CHUNK_BYTES..2 * AUTHENTICATED_CHUNK_BYTES
    );
    assert_eq!(
        authenticated_range(&(2 * chunk..2 * chunk + 10), encrypted),
        2 * AUTHENTICATED_CHUNK_BYTES..encrypted
    );
    assert_eq!((step_end(0, 1), step_end(chunk, 1)), (chunk, 2 * chunk));
    assert_eq!(
        (step_end(chunk, 1 << 20), step_end(64 * chunk, 1 << 20)),
        (64 * chunk, 128 * chunk)
    );
    assert_eq!(step_end(u64::MAX, 1 << 20), u64::MAX);
    // Lengths of a damaged row.
    assert_eq!(authenticated_len(u64::MAX), u64::MAX);
    assert_eq!(authenticated_len(content_len(u64::MAX)), u64::MAX);
    assert_eq!(cipher(1, u64::MAX).decrypt(&(u64::MAX - 1..u64::MAX), &[Bytes::new()]), None);
}

/// Example of `api-spec/encryption.md`; computed there with another implementation of both.
#[test]
fn a_chunk_has_the_documented_bytes() {
    let key = CustomerKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let mut writer =
        ChunkWriter::new(key.chunks(&key.keyed_nonce(*b"nonce of 16 byte"), 5).unwrap());
    assert_eq!(writer.push(b"hello"), Vec::<Bytes>::new());
    let hex: String = writer.finish().unwrap().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "55afdda03244c6237d70908f2dca9e560056cf2f57");
    let content = vec![b'x'; index(CHUNK_BYTES) + 1];
    let len = content.len() as u64;
    let mut writer =
        ChunkWriter::new(key.chunks(&key.keyed_nonce(*b"nonce of 16 byte"), len).unwrap());
    assert_eq!(writer.push(&content).len(), 1);
    let hex: String = writer.finish().unwrap().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "c8e46c57c5433ae79abda00e773f56d57f");
    let spec = include_str!("../../../api-spec/encryption.md");
    assert!(spec.contains("55afdda03244c6237d70908f2dca9e560056cf2f57") && spec.contains(&hex));
}

#[test]
fn another_key_nonce_or_length_decrypts_nothing() {
    let content = plain(40_000);
    let good = encrypted(7, &content, 9_000);
    assert_eq!(decrypt(7, 40_000, 5..35_000, &good).unwrap(), content[5..35_000]);
    assert_eq!(decrypt(8, 40_000, 5..35_000, &good), None, "another nonce");
    assert!(key(2).chunks(&key(1).keyed_nonce([7; 16]), 40_000).is_none(), "another key");
    // Content that is shortened at a chunk, as in a changed row; and content that is longer.
    let cut = authenticated_len(2 * CHUNK_BYTES);
    assert_eq!(decrypt(7, 2 * CHUNK_BYTES, 0..10, &good[..index(cut)]), None, "cut");
    assert_eq!(decrypt(7, 40_001, 0..10, &good), None, "longer");
    let range = 0..40_000;
    assert_eq!(cipher(7, 40_000).decrypt(&range, &[Bytes::copy_from_slice(&good[..100])]), None);
    assert_eq!(cipher(7, 40_000).decrypt(&(0..40_001), &[good.clone().into()]), None);
    assert_eq!(cipher(7, 40_000).decrypt(&(3..3), &[]), None);
    // Pieces as they come from several frames.
    let pieces = good.chunks(1_000).map(Bytes::copy_from_slice).collect::<Vec<_>>();
    assert_eq!(cipher(7, 40_000).decrypt(&range, &pieces).unwrap(), content);
}

#[test]
fn a_chunk_decrypts_in_its_own_place_only() {
    let chunk = index(AUTHENTICATED_CHUNK_BYTES);
    let content = plain(4 * CHUNK_BYTES);
    let good = encrypted(7, &content, usize::MAX);
    let other = encrypted(8, &content, usize::MAX);
    let whole = 0..content.len() as u64;
    let mut swapped = good.clone();
    swapped[..2 * chunk].rotate_left(chunk);
    assert_eq!(decrypt(7, whole.end, whole.clone(), &swapped), None, "two chunks exchanged");
    let mut moved = good;
    moved[chunk..2 * chunk].copy_from_slice(&other[chunk..2 * chunk]);
    assert_eq!(decrypt(7, whole.end, whole, &moved), None, "a chunk of other content");
    // The other chunks can be read.
    let rest = 2 * CHUNK_BYTES..4 * CHUNK_BYTES;
    let len = content.len() as u64;
    let right = &content[index(rest.start)..];
    assert_eq!(decrypt(7, len, rest.clone(), &swapped).unwrap(), right);
    assert_eq!(decrypt(7, len, rest, &moved).unwrap(), right);
}

proptest! {
    #[test]
    fn every_range_decrypts_and_no_changed_bit_does(
        len in 1u64..70_000, step in 1usize..40_000, from in any::<u64>(), more in any::<u64>(),
        at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let content = plain(len);
        let mut stored = encrypted(3, &content, step);
        prop_assert_eq!(stored.len() as u64, authenticated_len(len));
        prop_assert_eq!(content_len(stored.len() as u64), len);
        let start = from % len;
        let range = start..start + 1 + more % (len - start);
        let wanted = content[index(range.start)..index(range.end)].to_vec();
        prop_assert_eq!(decrypt(3, len, range.clone(), &stored).unwrap(), &wanted);
        let at = at.index(stored.len());
        stored[at] ^= 1 << bit;
        let covering = authenticated_range(&range, stored.len() as u64);
        let expected = (!covering.contains(&(at as u64))).then_some(wanted);
        prop_assert_eq!(decrypt(3, len, range, &stored).map(|found| found.to_vec()), expected);
    }
}
