use proptest::prelude::*;

use super::*;
use crate::types::Crc32c;

const EXTENT: ExtentId = ExtentId::new(0x0102_0304_0506_0708);
const EPOCH: Epoch = Epoch::new(9);

/// A logical offset.
const fn at(offset: u64) -> ExtentOffset {
    ExtentOffset::new(offset)
}

fn stored(end: u64, payloads: &[Vec<u8>]) -> (Placed, Vec<u8>) {
    let prepared =
        payloads.iter().map(|p| Prepared::new(vec![Bytes::copy_from_slice(p)])).collect();
    let placed = place(prepared, EXTENT, EPOCH, at(end));
    let bytes = placed.pieces.concat();
    assert_eq!(size(bytes.len()), placed.bytes);
    (placed, bytes)
}

fn bytes_of(len: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(len).collect()
}

#[test]
fn frame_of_three_bytes_has_these_bytes() {
    let (placed, bytes) = stored(0x20, &[b"abc".to_vec()]);
    let expected = [
        &b"BYFR"[..],
        &[1, 0, 1, 0],
        &[8, 7, 6, 5, 4, 3, 2, 1],
        &[0x20, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0],
        &[0xb7, 0x3f, 0x4b, 0x36], // CRC-32C of "abc" is 0x364b3fb7
        &[9, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0],
        &[0x7f, 0x43, 0x7a, 0x2c], // taken with another implementation
        &[0xb7, 0x3f, 0x4b, 0x36],
        b"abc",
    ]
    .concat();
    assert_eq!(bytes, expected);
    assert_eq!(placed.end, at(0x20 + 55));
}

#[test]
fn every_truncation_of_a_frame_is_refused() {
    let (_, bytes) = stored(0, &[bytes_of(20_000)]);
    let head = index(head_len(20_000));
    for len in 0..head {
        assert_eq!(Head::parse(&bytes[..len], EXTENT, at(0)), None);
    }
    let parsed = Head::parse(&bytes, EXTENT, at(0)).unwrap();
    for len in 0..20_000 {
        assert!(!parsed.verify(0, &bytes[head..head + len]) || len == index(CHUNK));
    }
    assert!(parsed.verify(0, &bytes[head..]));
    assert!(parsed.verify(1, &bytes[head + index(CHUNK)..]));
    assert_eq!(verify_frames(&bytes, EXTENT, at(0)), Some(frame_end(at(0), 20_000)));
    assert_eq!(verify_frames(&bytes[..bytes.len() - 1], EXTENT, at(0)), None);
}

#[test]
fn every_flipped_bit_of_a_frame_is_noticed() {
    let (_, bytes) = stored(64, &[bytes_of(600)]);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verify_frames(&damaged, EXTENT, at(64)), None, "bit {bit}");
    }
}

#[test]
fn frame_is_refused_at_another_place() {
    let (_, bytes) = stored(64, &[bytes_of(600)]);
    assert!(Head::parse(&bytes, EXTENT, at(64)).is_some());
    assert_eq!(Head::parse(&bytes, EXTENT, at(65)), None);
    assert_eq!(Head::parse(&bytes, ExtentId::new(1), at(64)), None);
}

#[test]
fn locations_merge_only_when_whole_frames_meet() {
    let full = index(FRAME_PAYLOAD_MAX);
    let whole = bytes_of(2 * full + 100);
    let (once, _) = stored(5, std::slice::from_ref(&whole));
    let pieces =
        [whole[..full].to_vec(), whole[full..2 * full].to_vec(), whole[2 * full..].to_vec()];
    let (apart, _) = stored(5, &pieces);
    let [a, b, c] = apart.locations[..] else { panic!("three locations") };
    let merged = merge(&merge(&a, &b).unwrap(), &c).unwrap();
    assert_eq!(merged, once.locations[0]);
    assert_eq!(merge(&a, &c), None);
    assert_eq!(merge(&merged, &a), None);
    assert_eq!(merge(&c, &a), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn placed_payloads_are_where_geometry_says(
        end in 0u64..10_000,
        lens in prop::collection::vec(prop_oneof![1usize..200, 16_000usize..34_000, 1_040_000usize..1_060_000], 1..5),
        cut in 1usize..100_000,
    ) {
        let payloads: Vec<Vec<u8>> = lens.iter().map(|&len| bytes_of(len)).collect();
        let prepared = payloads
            .iter()
            .map(|p| Prepared::new(p.chunks(cut).map(Bytes::copy_from_slice).collect()))
            .collect();
        let placed = place(prepared, EXTENT, EPOCH, at(end));
        let bytes = placed.pieces.concat();
        let lens: Vec<u64> = lens.iter().map(|&len| size(len)).collect();
        prop_assert_eq!(placed.end, end_after(at(end), &lens));
        prop_assert_eq!(verify_frames(&bytes, EXTENT, placed.start), Some(placed.end));
        let mut covered: u64 = placed.padding.iter().map(|p| p.end - p.start).sum();
        for (location, payload) in placed.locations.iter().zip(&payloads) {
            prop_assert_eq!(location.crc, Crc32c::of(payload));
            let frames = frames_of(location);
            covered += frames.end - frames.start;
            let mut read = Vec::new();
            for frame in frames_in(location, &(0..location.len.get())) {
                let from = index(frame.offset - placed.start);
                let head = Head::parse(&bytes[from..], EXTENT, frame.offset).unwrap();
                prop_assert_eq!(head.len, frame.len);
                read.extend_from_slice(&bytes[from + index(head.head_len())..][..index(frame.len)]);
            }
            prop_assert_eq!(&read, payload);
        }
        prop_assert_eq!(covered, placed.end - at(end));
    }
}

#[test]
fn part_of_whole_frames_begins_where_they_do() {
    let len = 3 * FRAME_PAYLOAD_MAX + 7;
    let location =
        Location { extent: EXTENT, offset: at(8192), len: ByteLen::new(len), crc: Crc32c::of(b"") };
    let bounds = [0, FRAME_PAYLOAD_MAX, 2 * FRAME_PAYLOAD_MAX, 3 * FRAME_PAYLOAD_MAX, len];
    for (number, start) in bounds.into_iter().enumerate() {
        for end in &bounds[number + 1..] {
            let frames: Vec<LocationFrame> = frames_in(&location, &(start..*end)).collect();
            let part = part_of_frames(&location, &(start..*end));
            assert_eq!(part, Some(frames[0].offset), "{start}..{end}");
            assert_eq!(frames.iter().map(|frame| frame.len).sum::<u64>(), end - start);
        }
    }
    for cut in [0..0, 1..len, 0..1, 0..len - 1, FRAME_PAYLOAD_MAX..len + 1, len..len] {
        assert_eq!(part_of_frames(&location, &cut), None, "{cut:?}");
    }
}
