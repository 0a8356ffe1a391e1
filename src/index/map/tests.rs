use super::*;
use crate::types::RoutingKey;

fn descriptor() -> PartitionDescriptor {
    let key = |byte: u8| RoutingKey::from_bytes(Bytes::copy_from_slice(&[byte, byte]));
    PartitionDescriptor {
        id: PartitionId::new(5),
        range: KeyRange::new(key(1), Some(key(9))),
        epoch: Epoch::new(300),
        log: vec![ExtentId::new(7), ExtentId::new(128)],
        host: HostId::new(3),
    }
}

#[test]
fn descriptor_has_golden_bytes() {
    let golden = [2, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01, 3];
    assert_eq!(descriptor().encode().as_ref(), golden);
    assert_eq!(PartitionDescriptor::decode(&golden), Some(descriptor()));
}

#[test]
fn descriptor_of_the_first_version_belongs_to_the_first_host() {
    let golden = [1, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01];
    let first = PartitionDescriptor { host: HostId::new(0), ..descriptor() };
    assert_eq!(PartitionDescriptor::decode(&golden), Some(first));
}

#[test]
fn descriptor_cut_short_or_flipped_is_another_or_none() {
    let bytes = descriptor().encode();
    for len in 0..bytes.len() {
        assert_eq!(PartitionDescriptor::decode(&bytes[..len]), None);
    }
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(PartitionDescriptor::decode(&flipped), Some(descriptor()));
    }
}

#[test]
fn map_refuses_gaps_and_overlaps() {
    let key = |text: &str| RoutingKey::from_bytes(Bytes::copy_from_slice(text.as_bytes()));
    let part = |id, low: &str, high: Option<&str>| PartitionDescriptor {
        id: PartitionId::new(id),
        range: KeyRange::new(key(low), high.map(key)),
        epoch: Epoch::new(1),
        log: Vec::new(),
        host: HostId::new(0),
    };
    let map = PartitionMap::new(vec![part(2, "m", None), part(1, "", Some("m"))]).unwrap();
    assert_eq!(map.owner(b"a").unwrap().id, PartitionId::new(1));
    assert_eq!(map.owner(b"m").unwrap().id, PartitionId::new(2));
    assert!(PartitionMap::new(vec![part(1, "", Some("l")), part(2, "m", None)]).is_none());
    assert!(PartitionMap::new(vec![part(1, "", Some("n")), part(2, "m", None)]).is_none());
    assert!(PartitionMap::new(vec![part(1, "a", None)]).is_none());
    assert!(PartitionMap::new(vec![part(1, "", Some("a"))]).is_none());
    assert!(PartitionMap::new(Vec::new()).is_none());
}
