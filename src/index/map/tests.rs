use super::*;
use crate::types::KeyRange;

fn descriptor() -> PartitionDescriptor {
    let key = |byte: u8| RoutingKey::from_bytes(Bytes::copy_from_slice(&[byte, byte]));
    PartitionDescriptor {
        id: PartitionId::new(5),
        keys: KeyRange::new(key(1), Some(key(9))).into(),
        epoch: Epoch::new(300),
        log: vec![ExtentId::new(7), ExtentId::new(128)],
        host: HostId::new(3),
    }
}

#[test]
fn descriptor_has_golden_bytes() {
    let golden = [3, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01, 3, 0];
    assert_eq!(descriptor().encode().as_ref(), golden);
    assert_eq!(PartitionDescriptor::decode(&golden), Some(descriptor()));
    let golden = [3, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01, 3, 1, 6, 15];
    let stripe = Stripe::new(6, 15).unwrap();
    let keys = PartitionKeys::striped(descriptor().keys.range().clone(), stripe);
    let striped = PartitionDescriptor { keys, ..descriptor() };
    assert_eq!(striped.encode().as_ref(), golden);
    assert_eq!(PartitionDescriptor::decode(&golden), Some(striped));
    for (number, of) in [(15, 15), (0, 1), (0, 17)] {
        let mut malformed = golden.to_vec();
        malformed[17..].copy_from_slice(&[number, of]);
        assert_eq!(PartitionDescriptor::decode(&malformed), None);
    }
}

#[test]
fn descriptor_of_a_cluster_names_the_node() {
    let golden = [4, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01, 3, 0, 0xAD, 0x02];
    let there = PartitionDescriptor { host: HostId::of(NodeId::new(301), 3), ..descriptor() };
    assert_eq!(there.encode().as_ref(), golden);
    assert_eq!(PartitionDescriptor::decode(&golden), Some(there));
    assert_eq!(PartitionDescriptor::decode(&golden[..17]), None);
}

#[test]
fn descriptor_of_the_second_version_has_all_of_its_range() {
    let golden = [2, 5, 2, 1, 1, 1, 2, 9, 9, 0xAC, 0x02, 2, 7, 0x80, 0x01, 3];
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
        keys: KeyRange::new(key(low), high.map(key)).into(),
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

#[test]
fn keys_of_a_striped_range_belong_to_the_stripe_of_their_hash() {
    let key = |text: &str| RoutingKey::from_bytes(Bytes::copy_from_slice(text.as_bytes()));
    let part = |id, range: (&str, Option<&str>), stripe: Option<(u8, u8)>| {
        let range = KeyRange::new(key(range.0), range.1.map(key));
        let keys = stripe.map_or_else(
            || PartitionKeys::from(range.clone()),
            |(number, of)| PartitionKeys::striped(range.clone(), Stripe::new(number, of).unwrap()),
        );
        let (id, epoch) = (PartitionId::new(id), Epoch::new(1));
        PartitionDescriptor { id, keys, epoch, log: Vec::new(), host: HostId::new(0) }
    };
    let (low, mid, high) = (("", Some("b")), ("b", Some("y")), ("y", None));
    let stripes = |numbers: &[u8]| -> Vec<PartitionDescriptor> {
        numbers.iter().map(|n| part(u64::from(*n) + 10, mid, Some((*n, 3)))).collect()
    };
    let with = |stripes: Vec<PartitionDescriptor>| {
        PartitionMap::new([vec![part(2, high, None)], stripes, vec![part(1, low, None)]].concat())
    };
    let map = with(stripes(&[2, 0, 1])).unwrap();
    let ids: Vec<u64> = map.partitions().iter().map(|p| p.id.get()).collect();
    assert_eq!(ids, [1, 10, 11, 12, 2]);
    let ids_at = |position: &[u8]| map.at(position).iter().map(|p| p.id.get()).collect::<Vec<_>>();
    assert_eq!(ids_at(b""), [1]);
    assert_eq!(ids_at(b"b"), [10, 11, 12]);
    assert_eq!(ids_at(b"xx"), [10, 11, 12]);
    assert_eq!(ids_at(b"y"), [2]);
    let mut owners = [0; 3];
    for n in 0..300 {
        let row = [b"m000000000000000", format!("{n}").as_bytes(), &[0, 1]].concat();
        let owner = map.owner(&row).unwrap();
        assert!(owner.keys.contains(&row));
        owners[usize::try_from(owner.id.get()).unwrap() - 10] += 1;
    }
    assert!(owners.iter().all(|count| *count > 50), "{owners:?}");
    assert!(with(stripes(&[0, 1])).is_none());
    assert!(with(stripes(&[0, 1, 2, 2])).is_none());
    assert!(with([stripes(&[0, 1, 2]), vec![part(9, mid, None)]].concat()).is_none());
}
