use super::*;
use crate::capacity::extent::ranges::offsets;
use crate::types::Crc32c;

fn header() -> Header {
    Header {
        extent: ExtentId::new(0x1122),
        kind: ExtentKind::Log,
        created: Epoch::new(3),
        store: 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100,
    }
}

fn slot(sequence: u64) -> Slot {
    Slot {
        sequence,
        epoch: Epoch::new(4),
        sealed: true,
        incomplete: true,
        len: ExtentOffset::new(0x5000),
        padding: 2,
        padding_crc: Crc32c::new(7),
        map: 3,
        map_crc: Crc32c::new(8),
        map_at: FileOffset::new(0x9000),
    }
}

#[test]
fn first_page_has_these_bytes() {
    let page = header().page();
    assert_eq!(page.len(), 4096);
    let fields = [
        &b"BYEX"[..],
        &[1, 0, 2, 0],
        &[0x22, 0x11, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        &[0; 20],
    ]
    .concat();
    assert_eq!(page[..60], fields);
    assert_eq!(page[60..64], Crc32c::of(&fields).get().to_le_bytes());
    assert!(page[64..2048].iter().all(|b| *b == 0), "sequence 1 is odd: second slot");
    assert_eq!(Header::parse(&page), Some(header()));
    assert_eq!(Slot::parse(&page).map(|s| (s.sequence, s.epoch)), Some((1, Epoch::new(3))));
}

#[test]
fn slot_has_these_bytes() {
    let fields = [
        &b"BYSL"[..],
        &[1, 1, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0],
        &[4, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0x50, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 7, 0, 0, 0],
        &[3, 0, 0, 0, 8, 0, 0, 0],
        &[0, 0x90, 0, 0, 0, 0, 0, 0],
        &[0; 4],
    ]
    .concat();
    let bytes = slot(6).encode();
    assert_eq!(bytes[..60], fields);
    assert_eq!(bytes[60..], Crc32c::of(&fields).get().to_le_bytes());
    assert_eq!((slot(6).offset().get(), slot(7).offset().get()), (1024, 2048));
}

fn page_with(slots: &[Slot]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    for slot in slots {
        let at = index(slot.offset().get());
        page[at..at + SLOT].copy_from_slice(&slot.encode());
    }
    page
}

#[test]
fn later_slot_counts_and_a_torn_one_does_not() {
    assert_eq!(Slot::parse(&page_with(&[slot(6), slot(7)])), Some(slot(7)));
    assert_eq!(Slot::parse(&page_with(&[slot(8), slot(7)])), Some(slot(8)));
    for byte in 2048..2048 + SLOT {
        for bit in 0..8 {
            let mut page = page_with(&[slot(6), slot(7)]);
            page[byte] ^= 1 << bit;
            assert_eq!(Slot::parse(&page), Some(slot(6)));
        }
    }
}

#[test]
fn every_truncation_and_flipped_bit_of_a_header_is_refused() {
    let bytes = header().encode();
    for len in 0..bytes.len() {
        assert_eq!(Header::parse(&bytes[..len]), None);
        assert_eq!(Slot::decode(&slot(1).encode()[..len]), None);
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Header::parse(&damaged), None);
    }
}

#[test]
fn padding_list_is_refused_unless_it_is_the_slots() {
    let ranges = [5..10, 4000..4096].map(|range| offsets(&range));
    let list = encode_padding(&ranges);
    assert_eq!(list[..16], [5, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]);
    let slot = Slot { padding_crc: Crc32c::of(&list), ..slot(1) };
    assert_eq!(parse_padding(&list, &slot), Some(ranges.to_vec()));
    for len in 0..list.len() {
        assert_eq!(parse_padding(&list[..len], &slot), None);
    }
    for bit in 0..list.len() * 8 {
        let mut damaged = list.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(parse_padding(&damaged, &slot), None);
    }
}
