use super::*;

#[test]
fn lengths_add_up() {
    let location = |len| Location { extent: ExtentId::new(1), offset: 0, len, crc: 0 };
    assert_eq!(locations_len(&[]), 0);
    assert_eq!(
        locations_len(&[location(1), location(u64::from(u32::MAX)), location(2)]),
        4_294_967_298
    );
}
