use super::*;

fn nodes(ids: &[u64]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

fn id() -> GroupId {
    ExtentId::new(0x00AB_0000_0000_1040).group()
}

fn open() -> GroupRecord {
    GroupRecord::new(id(), ExtentKind::Log, nodes(&[3, 300, 1]), Incarnation::new(129)).unwrap()
}

/// A record with something in each field.
fn full() -> GroupRecord {
    GroupRecord {
        generation: Generation::new(2),
        state: GroupState::Closed,
        gone: Extents::from_bits(0b1001),
        lengths: [(1, ExtentOffset::new(300)), (63, ExtentOffset::START)].into(),
        ..open()
    }
}

const OPEN_BYTES: [u8; 19] =
    [1, 0xC1, 0x80, 0x80, 0x80, 0x80, 0x80, 0xAB, 0x01, 2, 3, 3, 0xAC, 0x02, 1, 0x81, 0x01, 1, 0];

fn open_bytes() -> Vec<u8> {
    [&OPEN_BYTES[..], &[0, 0]].concat()
}

fn full_bytes() -> Vec<u8> {
    let fields = [2, CLOSED, 0b1001, 2, 1, 0xAC, 0x02, 63, 0];
    [&OPEN_BYTES[..17], &fields].concat()
}

#[test]
fn records_have_golden_bytes() {
    for (record, golden) in [(open(), open_bytes()), (full(), full_bytes())] {
        assert_eq!(record.encode().as_ref(), golden);
        assert_eq!(GroupRecord::decode(&golden), Ok(record));
    }
}

#[test]
fn new_group_is_open_and_has_its_members_in_order() {
    let record = open();
    assert_eq!((record.id(), record.kind()), (id(), ExtentKind::Log));
    assert_eq!(record.members(), nodes(&[3, 300, 1]));
    assert!(record.has_member(NodeId::new(300)) && !record.has_member(NodeId::new(2)));
    assert_eq!((record.writer(), record.generation()), (Incarnation::new(129), Generation::FIRST));
    assert_eq!((record.state(), record.gone()), (GroupState::Open, Extents::NONE));
}

#[test]
fn members_are_one_to_eight_different_nodes() {
    let of = |ids: &[u64]| {
        let made = GroupRecord::new(id(), ExtentKind::Data, nodes(ids), Incarnation::new(1));
        made.map(|record| record.members().len())
    };
    assert_eq!(of(&[]), Err(NoMembers::Count(0)));
    assert_eq!(of(&[1, 2, 1]), Err(NoMembers::Twice(NodeId::new(1))));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok(8));
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Err(NoMembers::Count(9)));
}

#[test]
fn extents_of_other_groups_have_neither_length_nor_are_gone() {
    let record = full();
    let at = |place: u64| ExtentId::new(0x00AB_0000_0000_1040 + place);
    assert!(record.is_gone(at(0)) && !record.is_gone(at(1)) && record.is_gone(at(3)));
    assert_eq!(record.length(at(1)), Some(ExtentOffset::new(300)));
    assert_eq!(record.length(at(63)), Some(ExtentOffset::START));
    assert_eq!(record.length(at(2)), None);
    assert!(!record.is_gone(at(64)) && record.length(at(65)).is_none());
    assert!(record.has(at(63)) && !record.has(at(64)));
}

#[test]
fn bytes_cut_short_longer_or_of_another_version_are_not_read() {
    let bytes = full_bytes();
    for len in 0..bytes.len() {
        let read = GroupRecord::decode(&bytes[..len]);
        assert!(matches!(read, Err(Unread::Malformed(_))), "{len}: {read:?}");
    }
    let of = |parts: [&[u8]; 2]| GroupRecord::decode(&parts.concat());
    assert_eq!(of([&bytes, &[0]]), Err(Unread::Malformed("bytes after the end")));
    assert_eq!(of([&[0], &bytes[1..]]), Err(Unread::Malformed("version")));
    assert_eq!(of([&[2], &bytes[1..]]), Err(Unread::Newer(2)));
}

/// Encodes a record that breaks a rule, and says how it is refused.
fn refused(change: impl FnOnce(&mut GroupRecord)) -> &'static str {
    let mut record = full();
    change(&mut record);
    match GroupRecord::decode(&record.encode()) {
        Err(Unread::Malformed(why)) => why,
        read => panic!("{read:?} of {record:?}"),
    }
}

#[test]
fn records_that_break_a_rule_are_not_read() {
    assert_eq!(refused(|record| record.members.clear()), "members");
    assert_eq!(refused(|record| record.members.push(NodeId::new(300))), "members");
    assert_eq!(refused(|record| record.members = nodes(&[1, 2, 3, 4, 5, 6, 7, 8, 9])), "members");
    assert_eq!(refused(|record| record.generation = Generation::new(0)), "generation");
    let changed = "members of an open group have changed";
    assert_eq!(refused(|record| record.state = GroupState::Open), changed);
    let gone = "length of an extent that is gone";
    assert_eq!(refused(|record| record.gone = Extents::ALL), gone);
    let beyond = [(64, ExtentOffset::START)].into();
    assert_eq!(refused(|record| record.lengths = beyond), "place of a length");
}

#[test]
fn fields_out_of_their_range_are_not_read() {
    let good = full_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        GroupRecord::decode(&bytes)
    };
    for kind in [0, 4, 255] {
        assert_eq!(with(9, kind), Err(Unread::Malformed("kind")));
    }
    assert_eq!(with(18, 2), Err(Unread::Malformed("state")));
    // The first length at the place of the second.
    assert_eq!(with(21, 63), Err(Unread::Malformed("order of lengths")));
    let too_large = [&[1][..], &[0xFF; 9], &[1], &good[9..]].concat();
    assert_eq!(GroupRecord::decode(&too_large), Err(Unread::Malformed("id")));
    // The last number, 0, in two bytes.
    let longer = [&good[..good.len() - 1], &[0x80, 0]].concat();
    assert_eq!(GroupRecord::decode(&longer), Err(Unread::Malformed("form")));
}

#[test]
fn flipped_bits_are_refused_or_read_as_another_valid_record() {
    for bytes in [open_bytes(), full_bytes()] {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(record) = GroupRecord::decode(&flipped) {
                assert_eq!(record.encode().as_ref(), flipped);
            }
        }
    }
}
