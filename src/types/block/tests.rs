use super::*;

#[test]
fn block_id_has_1_to_64_bytes_of_base64() {
    let id = BlockId::from_base64("AQIDBA==").unwrap();
    assert_eq!(id.as_bytes(), [1, 2, 3, 4]);
    assert_eq!(id.to_base64(), "AQIDBA==");
    let longest = STANDARD.encode([7; 64]);
    assert_eq!(BlockId::from_base64(&longest).unwrap().as_bytes().len(), 64);
    for (text, error) in [
        ("", BlockIdError::Length),
        (STANDARD.encode([7; 65]).as_str(), BlockIdError::Length),
        ("AQIDBA", BlockIdError::NotBase64),
        ("AQIDBA=", BlockIdError::NotBase64),
        ("AQID BA==", BlockIdError::NotBase64),
        ("AQID_A==", BlockIdError::NotBase64),
        ("ä", BlockIdError::NotBase64),
    ] {
        assert_eq!(BlockId::from_base64(text), Err(error), "{text}");
    }
    assert_eq!(BlockId::from_bytes(&[]), None);
    assert_eq!(BlockId::from_bytes(&[0; 65]), None);
}
