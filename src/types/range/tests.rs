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
