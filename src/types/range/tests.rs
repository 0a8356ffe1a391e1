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
fn suffix_is_cut_to_the_blob() {
    let within = |suffix, len| ByteRange::suffix(suffix).within(len);
    assert_eq!(within(3, 10), Some(7..10));
    assert_eq!(within(10, 10), Some(0..10));
    assert_eq!(within(u64::MAX, 10), Some(0..10));
    assert_eq!(within(0, 10), None);
    assert_eq!(within(1, 0), None);
}

#[test]
fn range_that_ends_before_it_begins_is_not_decoded() {
    let decode = |ends: Ends| {
        let bytes = postcard::to_stdvec(&ends).unwrap();
        let range = postcard::from_bytes::<ByteRange>(&bytes)?;
        assert_eq!(postcard::to_stdvec(&range).unwrap(), bytes);
        Ok::<_, postcard::Error>(range)
    };
    assert_eq!(decode(Ends::From(4, Some(4))).ok(), ByteRange::new(4, Some(4)));
    assert_eq!(decode(Ends::From(4, None)).ok(), ByteRange::new(4, None));
    assert_eq!(decode(Ends::Suffix(4)).ok(), Some(ByteRange::suffix(4)));
    assert!(decode(Ends::From(4, Some(3))).is_err());
}
