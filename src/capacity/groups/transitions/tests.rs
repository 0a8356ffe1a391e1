use super::*;
use crate::capacity::api::ExtentKind;
use crate::types::GroupId;
use crate::types::Incarnation;

mod random;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);
const C: NodeId = NodeId::new(3);
const NEW: NodeId = NodeId::new(9);

fn id() -> GroupId {
    ExtentId::new(640).group()
}

fn at(place: u64) -> ExtentId {
    ExtentId::new(640 + place)
}

fn set(places: &[u64]) -> Extents {
    Extents::of(id(), places.iter().map(|place| at(*place))).unwrap()
}

fn end(bytes: u64) -> ExtentOffset {
    ExtentOffset::new(bytes)
}

fn open() -> GroupRecord {
    GroupRecord::new(id(), ExtentKind::Data, vec![A, B, C], Incarnation::new(7)).unwrap()
}

/// A member that has all bytes of these extents and never had the others, in a closed group.
fn report(node: NodeId, of: &GroupRecord, whole: Extents) -> MemberReport {
    MemberReport {
        node,
        generation: of.generation(),
        has_noted_closed: true,
        absent: Extents::ALL.without(whole),
        sealed: whole,
        whole,
    }
}

/// A closed group whose extents are all sealed and whole at all three members, and their reports.
fn whole() -> (GroupRecord, [MemberReport; 3]) {
    let record = open().closed();
    let reports = [A, B, C].map(|node| report(node, &record, Extents::ALL));
    (record, reports)
}

#[test]
fn group_is_closed_for_ever() {
    let closed = open().closed();
    assert_eq!(closed.state(), GroupState::Closed);
    assert_eq!(closed, GroupRecord { state: GroupState::Closed, ..open() });
    assert_eq!(closed.closed(), closed);
}

#[test]
fn first_length_wins_in_open_and_closed_groups() {
    for record in [open(), open().closed()] {
        let settled = record.settled(at(5), end(100)).unwrap();
        assert_eq!(settled.length(at(5)), Some(end(100)));
        assert_eq!(settled.settled(at(5), end(100)), Ok(settled.clone()), "a repetition");
        for other in [0, 99, 101] {
            let refusal = Refusal::Settled { extent: at(5), end: end(100) };
            assert_eq!(settled.settled(at(5), end(other)), Err(refusal));
        }
        let both = settled.settled(at(4), end(0)).unwrap();
        assert_eq!((both.length(at(4)), both.length(at(5))), (Some(end(0)), Some(end(100))));
    }
}

#[test]
fn gone_and_foreign_extents_get_no_length() {
    let record = open().settled(at(5), end(100)).unwrap().freed(set(&[5]), &[]).unwrap();
    assert_eq!(record.settled(at(5), end(100)), Err(Refusal::Gone(at(5))));
    assert_eq!(record.settled(at(64), end(1)), Err(Refusal::NotOfGroup(at(64))));
}

#[test]
fn freed_extents_are_gone_and_their_length_is_forgotten() {
    let record = open().settled(at(5), end(100)).unwrap();
    let says = [MemberReport { sealed: set(&[6]), ..report(B, &record, Extents::NONE) }];
    let freed = record.freed(set(&[5, 6]), &says).unwrap();
    assert_eq!((freed.gone(), freed.length(at(5))), (set(&[5, 6]), None));
    assert_eq!(freed.freed(set(&[6]), &[]), Ok(freed.clone()), "a repetition");
    assert_eq!(GroupRecord::decode(&freed.encode()), Ok(freed));
}

#[test]
fn extents_without_an_end_are_not_freed() {
    let record = open().settled(at(5), end(100)).unwrap();
    let refusal = |places| Err(Refusal::Unsettled(set(places)));
    assert_eq!(record.freed(set(&[5, 6, 7]), &[]), refusal(&[6, 7]));
    let seven = MemberReport { sealed: set(&[7]), ..report(B, &record, Extents::NONE) };
    assert_eq!(record.freed(set(&[5, 6, 7]), &[seven]), refusal(&[6]));
    // Nobody had the others, but the group is open: its writer may still make them.
    assert_eq!(record.closed().freed(set(&[8]), &[seven]), refusal(&[8]));
}

#[test]
fn unused_extents_are_gone_when_a_member_has_noted_the_closing() {
    let closed = open().closed().settled(at(2), end(50)).unwrap();
    let noted = report(A, &closed, set(&[0, 1]));
    let late = MemberReport { has_noted_closed: false, ..report(B, &closed, set(&[0])) };
    let buried = closed.without_unused(&[noted, late]).unwrap();
    assert_eq!(buried.gone(), Extents::ALL.without(set(&[0, 1, 2])));
    assert_eq!(buried.length(at(2)), Some(end(50)), "what has an end is not unused");
    assert_eq!(buried.without_unused(&[noted, late]), Ok(buried), "a repetition");
    assert_eq!(closed.without_unused(&[late]), Err(Refusal::NotNoted));
    assert_eq!(closed.without_unused(&[]), Err(Refusal::NotNoted));
}

#[test]
fn what_one_member_has_or_may_have_lost_is_not_unused() {
    let closed = open().closed();
    // B has an open copy of extent 3, and has lost a disk on which extent 4 may have been.
    let b = MemberReport {
        absent: Extents::ALL.without(set(&[3, 4])),
        ..report(B, &closed, Extents::NONE)
    };
    let buried = closed.without_unused(&[report(A, &closed, Extents::NONE), b]).unwrap();
    assert_eq!(buried.gone(), Extents::ALL.without(set(&[3, 4])));
}

#[test]
fn nothing_is_unused_in_open_groups_and_after_members_have_changed() {
    let record = open();
    assert_eq!(record.without_unused(&[report(A, &record, Extents::NONE)]), Err(Refusal::Open));
    let (closed, reports) = whole();
    let joined = closed.joined(NEW, &reports).unwrap();
    let empty = report(NEW, &joined, Extents::NONE);
    assert_eq!(joined.without_unused(&[empty]), Err(Refusal::MembersChanged));
}

#[test]
fn member_joins_a_closed_group_whose_extents_have_ended() {
    let (record, reports) = whole();
    let joined = record.joined(NEW, &reports[..1]).unwrap();
    assert_eq!(joined.members(), [A, B, C, NEW]);
    assert_eq!(joined.generation(), record.generation().next());
    assert_eq!(joined.joined(NEW, &[]), Ok(joined), "a repetition");
    let opened = GroupRecord { state: GroupState::Open, ..record };
    assert_eq!(opened.joined(NEW, &reports), Err(Refusal::Open));
    assert_eq!(opened.left(&[A], 2, &reports), Err(Refusal::Open));
}

#[test]
fn extents_that_may_be_open_keep_the_members_as_they_are() {
    let record = open().closed().settled(at(0), end(9)).unwrap();
    let first = MemberReport { sealed: set(&[1]), ..report(A, &record, Extents::NONE) };
    let record = record
        .without_unused(&[MemberReport { absent: Extents::ALL.without(set(&[0, 1, 2])), ..first }]);
    let record = record.unwrap();
    let unsettled = Err(Refusal::Unsettled(set(&[2])));
    assert_eq!(record.joined(NEW, &[first]), unsettled);
    assert_eq!(record.left(&[B], 2, &[first]), unsettled);
    let second = MemberReport { sealed: set(&[2]), ..report(B, &record, Extents::NONE) };
    assert!(record.joined(NEW, &[first, second]).is_ok());
}

#[test]
fn member_leaves_when_all_others_have_all_bytes() {
    let (record, reports) = whole();
    let joined = record.joined(NEW, &reports).unwrap();
    let says = |node, whole| report(node, &joined, whole);
    let [a, b, new] = [A, B, NEW].map(|node| says(node, Extents::ALL));
    let left = joined.left(&[C], 3, &[a, b, new]).unwrap();
    assert_eq!(left.members(), [A, B, NEW]);
    assert_eq!(left.generation(), joined.generation().next());
    assert_eq!(left.left(&[C], 3, &[]), Ok(left), "a repetition");
    let short = MemberReport { whole: Extents::ALL.without(set(&[8])), ..new };
    assert_eq!(joined.left(&[C], 3, &[a, b, short]), Err(Refusal::NotWhole(NEW)));
    assert_eq!(joined.left(&[C], 3, &[a, b]), Err(Refusal::NotWhole(NEW)), "it is silent");
    // Gone extents are missed nowhere.
    let freed = joined.freed(set(&[8]), &[a]).unwrap();
    assert!(freed.left(&[C], 3, &[a, b, short]).is_ok());
}

#[test]
fn group_keeps_as_many_members_as_it_has_copies() {
    let (record, reports) = whole();
    assert_eq!(record.left(&[C], 3, &reports), Err(Refusal::TooFew));
    let two = record.left(&[C], 2, &reports).unwrap();
    let again = [A, B].map(|node| report(node, &two, Extents::ALL));
    let one = two.left(&[B], 1, &again).unwrap();
    let last = report(A, &one, Extents::ALL);
    assert_eq!(one.left(&[A], 0, &[last]), Err(Refusal::TooFew), "never the last one");
}

#[test]
fn group_has_eight_members_at_most() {
    let (mut record, _) = whole();
    for node in 4..=8 {
        let says = report(A, &record, Extents::ALL);
        record = record.joined(NodeId::new(node), &[says]).unwrap();
    }
    let says = report(A, &record, Extents::ALL);
    assert_eq!(record.joined(NEW, &[says]), Err(Refusal::Full));
}

#[test]
fn reports_of_strangers_and_of_other_generations_say_nothing() {
    let (record, reports) = whole();
    let stranger = report(NEW, &record, Extents::ALL);
    assert_eq!(record.joined(NEW, &[stranger]), Err(Refusal::Unsettled(Extents::ALL)));
    assert_eq!(record.without_unused(&[stranger]), Err(Refusal::NotNoted));
    let joined = record.joined(NEW, &reports).unwrap();
    let new = report(NEW, &joined, Extents::ALL);
    // A and B said that they have all bytes, then left, joined again, and removed their copies.
    let [a, b, _] = reports;
    assert_eq!(joined.left(&[C], 3, &[a, b, new]), Err(Refusal::NotWhole(A)));
}
