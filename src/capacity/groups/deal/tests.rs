use super::*;
use crate::capacity::api::ExtentKind;
use crate::capacity::groups::GroupRecord;
use crate::coordinator::Revision;
use crate::types::Incarnation;

const START: Duration = Duration::ZERO;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn group(number: u64, members: &[u64]) -> GroupAt {
    let id = ExtentId::new(number * 64).group();
    let members = members.iter().copied().map(NodeId::new).collect();
    let record = GroupRecord::new(id, ExtentKind::Data, members, Incarnation::new(7)).unwrap();
    GroupAt { record, revision: Revision(number) }
}

/// A dealer with two groups without a common member.
fn two() -> Dealer {
    let mut dealer = Dealer::default();
    dealer.add(group(1, &[1, 2, 3]));
    dealer.add(group(2, &[4, 5, 6]));
    dealer
}

fn number(dealt: &Dealt) -> u64 {
    dealt.extent.group().get()
}

fn groups(ids: &[GroupId]) -> Vec<u64> {
    ids.iter().map(|id| id.get()).collect()
}

#[test]
fn extents_are_dealt_once_and_evenly() {
    let mut dealer = two();
    let mut all = BTreeSet::new();
    for round in 0..128 {
        let dealt = dealer.deal(START, &[]).unwrap();
        assert_eq!(number(&dealt), 1 + round % 2);
        let members = if number(&dealt) == 1 { [1, 2, 3] } else { [4, 5, 6] };
        assert_eq!(dealt.members, members.map(NodeId::new));
        assert!(all.insert(dealt.extent), "{dealt:?} twice");
    }
    assert_eq!(
        all.into_iter().map(ExtentId::get).collect::<Vec<_>>(),
        (64..192).collect::<Vec<_>>()
    );
    assert_eq!(dealer.deal(START, &[]), None);
}

#[test]
fn groups_in_reserve_are_not_touched() {
    let mut dealer = two();
    dealer.add(group(3, &[7, 8, 9]));
    let first: Vec<u64> = (0..127).map(|_| number(&dealer.deal(START, &[]).unwrap())).collect();
    assert!(!first.contains(&3), "{first:?}");
    // Group 1 is used up: group 3 comes into use, and has more left than group 2.
    let then: Vec<u64> = (0..3).map(|_| number(&dealer.deal(START, &[]).unwrap())).collect();
    assert_eq!(then, [3, 3, 3]);
}

#[test]
fn members_that_gave_trouble_are_avoided() {
    let mut dealer = two();
    for trouble in [1, 2, 3] {
        assert_eq!(number(&dealer.deal(START, &[NodeId::new(trouble)]).unwrap()), 2);
    }
    // Trouble everywhere: the least of it, and rather that than nothing.
    let most = [1, 2, 4].map(NodeId::new);
    assert_eq!(number(&dealer.deal(START, &most).unwrap()), 2);
    dealer.without_member(NodeId::new(4));
    assert_eq!(number(&dealer.deal(START, &most).unwrap()), 1);
}

#[test]
fn group_is_closed_when_all_its_extents_were_created() {
    let mut dealer = two();
    let avoid = [4].map(NodeId::new);
    let dealt: Vec<Dealt> = (0..64).map(|_| dealer.deal(START, &avoid).unwrap()).collect();
    assert!(dealt.iter().all(|dealt| number(dealt) == 1));
    for one in &dealt {
        assert_eq!(dealer.used_up(), [], "{one:?} is not created yet");
        dealer.created(one.extent);
    }
    assert_eq!(groups(&dealer.used_up()), [1]);
    assert_eq!(dealer.used_up(), [], "once");
    assert_eq!(number(&dealer.deal(START, &avoid).unwrap()), 2);
}

#[test]
fn groups_of_a_node_that_is_away_are_closed_at_once() {
    let mut dealer = two();
    dealer.add(group(3, &[1, 5, 7]));
    for _ in 0..64 {
        dealer.deal(START, &[4, 5, 7].map(NodeId::new)).unwrap();
    }
    // Group 1 is used up, though not all is created.
    let mut closing = dealer.without_member(NodeId::new(1));
    closing.sort_unstable();
    assert_eq!(groups(&closing), [1, 3]);
    assert_eq!(dealer.without_member(NodeId::new(1)), [], "once");
    assert_eq!(number(&dealer.deal(START, &[]).unwrap()), 2);
    assert_eq!(dealer.members(), [4, 5, 6].map(NodeId::new));
}

#[test]
fn idle_writer_wants_two_groups_and_a_spare_one() {
    let mut dealer = Dealer::default();
    assert_eq!(dealer.wants(START), 3);
    dealer.add(group(1, &[1]));
    assert_eq!(dealer.wants(START), 2);
    dealer.add(group(2, &[2]));
    dealer.add(group(3, &[3]));
    assert_eq!(dealer.wants(START), 0);
    dealer.without_member(NodeId::new(3));
    assert_eq!(dealer.wants(START), 1);
}

/// A writer that uses ten extents a second, without a coordinator for two minutes.
#[test]
fn busy_writer_needs_no_coordinator_for_two_minutes() {
    let mut dealer = Dealer::default();
    let mut next = 1..;
    let mut refill = |dealer: &mut Dealer, now| {
        for number in next.by_ref().take(dealer.wants(now)) {
            dealer.add(group(number, &[number]));
        }
    };
    for second in 0..300 {
        refill(&mut dealer, seconds(second));
        for _ in 0..10 {
            dealer.deal(seconds(second), &[]).unwrap();
        }
    }
    refill(&mut dealer, seconds(300));
    for second in 300..420 {
        for _ in 0..10 {
            assert!(dealer.deal(seconds(second), &[]).is_some(), "at {second} s");
        }
    }
    // An hour later it is idle, and holds what it has.
    assert_eq!(dealer.wants(seconds(4_000)), 3_usize.saturating_sub(dealer.open.len()));
}

#[test]
fn what_a_writer_holds_is_bounded() {
    let mut dealer = Dealer::default();
    let mut made = 0;
    for _ in 0..20_000 {
        for _ in 0..dealer.wants(START) {
            made += 1;
            dealer.add(group(made, &[1]));
        }
        dealer.deal(START, &[]).unwrap();
        assert!(dealer.open.len() <= GROUPS_MAX && dealer.dealt.len() <= GROUPS_MAX * 64);
    }
    assert_eq!(dealer.open.len(), GROUPS_MAX);
}
