use super::*;

#[test]
fn block_id_has_1_to_64_bytes() {
    let id = BlockId::from_bytes(&[1, 2, 3, 4]).unwrap();
    assert_eq!(id.as_bytes(), [1, 2, 3, 4]);
    assert_eq!(BlockId::from_bytes(&[7; 64]).unwrap().as_bytes().len(), 64);
    assert_eq!(BlockId::from_bytes(&[]), None);
    assert_eq!(BlockId::from_bytes(&[0; 65]), None);
}

#[test]
fn block_ids_are_serialized_as_a_sequence_of_their_bytes() {
    let id = BlockId::from_bytes(&[7; 64]).unwrap();
    let bytes = postcard::to_stdvec(&id).unwrap();
    assert_eq!(bytes, postcard::to_stdvec(&vec![7_u8; 64]).unwrap());
    assert_eq!(postcard::from_bytes(&bytes), Ok(id));
    for len in [0, 65] {
        let other = postcard::to_stdvec(&vec![7_u8; len]).unwrap();
        assert!(postcard::from_bytes::<BlockId>(&other).is_err(), "{len} bytes");
    }
}

#[test]
fn block_ids_are_ordered_as_their_bytes() {
    let id = |bytes: &[u8]| BlockId::from_bytes(bytes).unwrap();
    assert!(id(b"a") < id(b"a\0"), "a prefix stands first");
    assert!(id(b"a\0") < id(b"b"));
    assert_ne!(id(b"a"), id(b"a\0"));
}
