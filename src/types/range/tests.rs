use super::*;

#[test]
fn range_is_cut_to_the_blob() {
    let within = |first, last, len| ByteRange::new(first, last).unwrap().within(len);
    assert_eq!(within(0, None, 10), Some(0..10));
    assert_eq!(within(3, Some(3), 10), Some(3..4));
    assert_eq!(within(9, Some(100), 10), Some(9..10));
    assert_eq!(within(0, Some(u64::MAX), 10), Some(0..10));
    assert_eq!(within(10, None, 10), None);
    assert_eq!(within(0, None, 0), None);
    assert_eq!(within(u64::MAX, None, u64::MAX), None);
    assert_eq!(ByteRange::new(4, Some(3)), None);
}

#[test]
fn range_that_ends_before_it_begins_is_not_decoded() {
    let decode = |range: (u64, Option<u64>)| {
        postcard::from_bytes::<ByteRange>(&postcard::to_stdvec(&range).unwrap())
    };
    for range in [(4, Some(4)), (4, None)] {
        let decoded = decode(range).unwrap();
        assert_eq!(Some(decoded), ByteRange::new(range.0, range.1));
        let encoded = postcard::to_stdvec(&decoded).unwrap();
        assert_eq!(encoded, postcard::to_stdvec(&range).unwrap());
    }
    assert!(decode((4, Some(3))).is_err());
}
