use super::*;

/// A call with something in each field.
fn call() -> Head {
    Head {
        kind: Kind::Call,
        method: 0x0102,
        call: 0x1112_1314_1516_1718,
        time_left_ms: 0x2122_2324,
        answer_bytes_max: 0x3132_3334,
        request: [0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xAF],
    }
}

fn packet(head: Head, message: &[u8], payload: &[&'static [u8]]) -> Vec<u8> {
    let mut draft = Draft::new();
    draft.message().extend_from_slice(message);
    let payload = payload.iter().map(|piece| Bytes::from_static(piece)).collect();
    let packet = draft.finish(head, payload).unwrap();
    let whole = [packet.front.as_ref(), &packet.payload.concat()].concat();
    assert_eq!(packet.len(), whole.len());
    whole
}

#[rustfmt::skip]
const GOLDEN: [u8; 56] = [
    3, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0x02, 0x01, 0x24, 0x23, 0x22, 0x21,
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
    0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xAF,
    0x34, 0x33, 0x32, 0x31, 0x0A, 0xFC, 0x39, 0x04,
    1, b'a', b'b', b'v', b'w', b'x', b'y', b'z',
];

#[test]
fn packets_have_golden_bytes() {
    assert_eq!(packet(call(), b"\x01ab", &[b"vw", b"xyz"]), GOLDEN);
    let ping = packet(Head::bare(Kind::Ping, 0), b"", &[]);
    let fixed = [&[0; 8][..], &[9], &[0; 35]].concat();
    assert_eq!(ping[..44], fixed);
    assert_eq!(ping[44..], 0xC06E_2DF1_u32.to_le_bytes());
}

fn read(bytes: &[u8]) -> Result<Unchecked, Malformed> {
    Unchecked::read(bytes[..HEAD_BYTES].try_into().unwrap())
}

#[test]
fn heads_of_all_kinds_are_read_as_written() {
    for code in 0..=u8::MAX {
        let Some(kind) = Kind::of(code) else { continue };
        assert_eq!(kind.code(), code);
        let head = Head { kind, ..call() };
        let bytes = packet(head, b"message", &[b"payload!"]);
        let found = read(&bytes).unwrap();
        assert_eq!(found.lengths, Lengths { message: 7, payload: 8 });
        assert_eq!(found.checked(b"message"), Ok(head));
    }
    assert_eq!((0..=u8::MAX).filter(|code| Kind::of(*code).is_some()).count(), 10);
}

#[test]
fn each_changed_byte_of_head_and_message_is_noticed() {
    let whole = packet(call(), b"message", &[]);
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let checked = read(&bytes).and_then(|head| head.checked(&bytes[HEAD_BYTES..]));
            assert!(checked.is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn unknown_kinds_flags_and_long_parts_are_refused() {
    let whole = packet(call(), b"", &[]);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        read(&bytes).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(8, &[0]), Malformed("an unknown kind of packet"));
    assert_eq!(with(8, &[11]), Malformed("an unknown kind of packet"));
    assert_eq!(with(9, &[1]), Malformed("an unknown flag"));
    let long = (MESSAGE_BYTES_MAX + 1).to_le_bytes();
    assert_eq!(with(0, &long), Malformed("a part that is too long"));
    assert_eq!(with(4, &long), Malformed("a part that is too long"));
}

#[test]
fn parts_that_no_reader_takes_are_not_sent() {
    let piece = Bytes::from(vec![0; 1 << 20]);
    let pieces = |count| vec![piece.clone(); count];
    assert!(Draft::new().finish(call(), pieces(16)).is_ok());
    assert_eq!(Draft::new().finish(call(), pieces(17)).unwrap_err(), TooLarge);
    let mut draft = Draft::new();
    draft.message().put_bytes(0, (16 << 20) + 1);
    assert_eq!(draft.message_bytes(), (16 << 20) + 1);
    assert_eq!(draft.finish(call(), Vec::new()).unwrap_err(), TooLarge);
}
