use super::*;

const CHECK: &[u8] = b"123456789";

#[test]
fn check_values_are_those_of_the_catalogue() {
    assert_eq!(Crc32c::of(CHECK), Crc32c::new(0xE306_9283));
    assert_eq!(Crc64::of(CHECK).0, 0xAE8B_1486_0A79_9888);
    assert_eq!(Crc64::of(b""), Crc64::EMPTY);
    assert_eq!(Md5::of(b"").to_base64(), "1B2M2Y8AsgTpgAmY7PhCfg==");
}

#[test]
fn pieces_and_halves_give_the_checksum_of_the_whole() {
    let bytes: Vec<u8> = (0..1000u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    for cut in [0, 1, 7, 8, 500, 999, 1000] {
        let (a, b) = bytes.split_at(cut);
        let mut crc = Crc32cHasher::default();
        let mut crc64 = Crc64Hasher::default();
        let mut md5 = Md5Hasher::default();
        for part in [a, b] {
            crc.update(part);
            crc64.update(part);
            md5.update(part);
        }
        assert_eq!(crc.finish(), Crc32c::of(&bytes));
        assert_eq!(crc64.finish(), Crc64::of(&bytes));
        assert_eq!(md5.finish(), Md5::of(&bytes));
        let len = u64::try_from(b.len()).unwrap();
        assert_eq!(Crc32c::of(a).combine(Crc32c::of(b), len), Crc32c::of(&bytes));
        assert_eq!(Crc64::of(a).combine(Crc64::of(b), len), Crc64::of(&bytes));
    }
}

#[test]
fn crc32c_combines_as_crc_fast_does_at_any_length() {
    let (a, b) = (Crc32c::of(b"first"), Crc32c::of(b"second"));
    for shift in 0..63 {
        for len in [0, 1u64 << shift, (1 << shift) + 1, (1 << shift) - 1, 1_000_003] {
            let (first, second) = (u64::from(a.get()), u64::from(b.get()));
            let expected = crc_fast::checksum_combine(CrcAlgorithm::Crc32Iscsi, first, second, len);
            assert_eq!(u64::from(a.combine(b, len).get()), expected, "length {len}");
        }
    }
}

#[test]
fn combiner_agrees_with_crc_fast_at_any_length() {
    let mut combiner = Crc64Combiner::default();
    let (a, b) = (Crc64::of(b"first"), Crc64::of(b"second"));
    for shift in 0..63 {
        for len in [1u64 << shift, (1 << shift) + 1, 1_000_003] {
            let expected = crc_fast::checksum_combine(CrcAlgorithm::Crc64Nvme, a.0, b.0, len);
            assert_eq!(combiner.combine(a, b, len), Crc64(expected), "length {len}");
        }
    }
}

#[test]
fn header_values_round_trip_and_refuse_other_lengths() {
    let crc = Crc64::of(CHECK);
    assert_eq!(crc.to_base64(), "iJh5CoYUi64=");
    assert_eq!(Crc64::from_base64(&crc.to_base64()), Some(crc));
    let md5 = Md5::of(CHECK);
    assert_eq!(Md5::from_base64(&md5.to_base64()), Some(md5));
    for bad in ["", "AAAA", "iJh5CoYUi64", "not base64", "iJh5CoYUi64AAAA="] {
        assert_eq!(Crc64::from_base64(bad), None, "{bad}");
        assert_eq!(Md5::from_base64(bad), None, "{bad}");
    }
}
