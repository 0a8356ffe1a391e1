use super::*;

#[test]
fn lengths_add_up() {
    let location = |len| Location {
        extent: ExtentId::new(1),
        offset: ExtentOffset::START,
        len,
        crc: Crc32c::EMPTY,
    };
    assert_eq!(locations_len(&[]), 0);
    assert_eq!(
        locations_len(&[
            location(ByteLen::new(1)),
            location(ByteLen::new(u64::from(u32::MAX))),
            location(ByteLen::new(2))
        ]),
        4_294_967_298
    );
}
