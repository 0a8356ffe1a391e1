use super::*;
use crate::types::Crc32c;

const RING: RingId = RingId::new(0xabcd);

const SUPERBLOCK: Superblock = Superblock {
    generation: 5,
    ring: RING,
    size: 0x4_0000,
    lsn: Lsn::new(77),
    position: FileOffset::new(0x3000),
};

fn records() -> Vec<Record> {
    let record = |extent, offset, bytes: &'static [u8]| Record {
        extent: ExtentId::new(extent),
        offset: ExtentOffset::new(offset),
        pieces: bytes.chunks(2).map(Bytes::from_static).collect(),
        len: size(bytes.len()),
    };
    vec![record(1, 0x10, b"hello"), record(2, 0, b"x")]
}

fn batch() -> Bytes {
    encode_batch(RING, Lsn::new(77), Lsn::new(70), &records()).concat().into()
}

#[test]
fn superblock_has_these_bytes() {
    let page = SUPERBLOCK.encode();
    let fields = [
        &b"BYJS"[..],
        &[1, 0, 0, 0],
        &[5, 0, 0, 0, 0, 0, 0, 0],
        &[0xcd, 0xab, 0, 0, 0, 0, 0, 0],
        &[0, 0, 4, 0, 0, 0, 0, 0],
        &[77, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0x30, 0, 0, 0, 0, 0, 0],
        &[0; 12],
    ]
    .concat();
    assert_eq!(page[..60], fields);
    assert_eq!(page[60..64], Crc32c::of(&fields).get().to_le_bytes());
    assert!(page[64..].iter().all(|b| *b == 0));
    assert_eq!(page.len(), 4096);
}

#[test]
fn later_superblock_counts_and_a_damaged_one_does_not() {
    let older = Superblock { generation: 4, ..SUPERBLOCK };
    let pages = [older.encode(), SUPERBLOCK.encode()].concat();
    assert_eq!(Superblock::latest(&pages), Some(SUPERBLOCK));
    for bit in 0..SUPER * 8 {
        let mut damaged = pages.clone();
        damaged[4096 + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Superblock::latest(&damaged), Some(older));
    }
    for len in 0..SUPER {
        assert_eq!(Superblock::decode(&pages[..len]), None);
    }
}

#[test]
fn batch_has_these_bytes() {
    let body = [
        &[1, 0, 0, 0, 0, 0, 0, 0][..],
        &[0x10, 0, 0, 0, 0, 0, 0, 0],
        &[5, 0, 0, 0, 0, 0, 0, 0],
        b"hello",
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        b"x",
    ]
    .concat();
    let header = [
        &b"BYJB"[..],
        &[1, 0, 0, 0],
        &[0xcd, 0xab, 0, 0, 0, 0, 0, 0],
        &[77, 0, 0, 0, 0, 0, 0, 0],
        &[54, 0, 0, 0, 2, 0, 0, 0],
        &Crc32c::of(&body).get().to_le_bytes(),
        &[0, 0, 0, 0],
        &[70, 0, 0, 0, 0, 0, 0, 0],
        &[0; 12],
    ]
    .concat();
    let batch = batch();
    assert_eq!(batch.len(), 4096);
    assert_eq!(batch[..60], header);
    assert_eq!(batch[60..64], Crc32c::of(&header).get().to_le_bytes());
    assert_eq!(batch[64..64 + 54], body);
    assert!(batch[64 + 54..].iter().all(|b| *b == 0));
}

fn decode(batch: &Bytes) -> Option<Vec<(u64, u64, Vec<u8>)>> {
    let header = BatchHeader::decode(batch, RING)?;
    let end = (64 + index(header.body)).min(batch.len());
    let records = decode_body(&header, &batch.slice(64..end))?;
    Some(records.iter().map(|r| (r.extent.get(), r.offset.get(), r.pieces.concat())).collect())
}

#[test]
fn batch_round_trips_and_every_truncation_or_flipped_bit_is_refused() {
    let batch = batch();
    let expected = vec![(1, 0x10, b"hello".to_vec()), (2, 0, b"x".to_vec())];
    assert_eq!(decode(&batch), Some(expected));
    for len in 0..64 + 54 {
        assert_eq!(decode(&batch.slice(..len)), None);
    }
    for bit in 0..(64 + 54) * 8 {
        let mut damaged = batch.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode(&damaged.into()), None);
    }
    assert!(BatchHeader::decode(&batch, RingId::new(0xabce)).is_none(), "a batch of another ring");
}
