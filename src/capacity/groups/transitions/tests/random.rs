//! Random sequences of changes, with reports that may say anything: what a record promises holds
//! after each of them.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Change {
    Close,
    Settle(u8, u64),
    Free(u64),
    WithoutUnused,
    Join(u64),
    Leave(u64, usize),
}

#[derive(Clone, Debug)]
struct Step {
    change: Change,
    reports: Vec<MemberReport>,
}

fn bits() -> impl Strategy<Value = u64> {
    // Whole sets are frequent: else no member ever changes.
    prop_oneof![4 => Just(u64::MAX), 1 => Just(0), 2 => any::<u64>(), 2 => (0..64u64).prop_map(|n| 1 << n)]
}

fn report() -> impl Strategy<Value = MemberReport> {
    let sets = (bits(), bits(), bits());
    (1..12u64, 1..5u64, any::<bool>(), sets).prop_map(|(node, generation, noted, sets)| {
        let (absent, sealed, whole) = sets;
        MemberReport {
            node: NodeId::new(node),
            generation: Generation::new(generation),
            has_noted_closed: noted,
            absent: Extents::from_bits(absent),
            sealed: Extents::from_bits(sealed),
            whole: Extents::from_bits(whole),
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        Just(Change::Close),
        (0..70u8, 0..3u64).prop_map(|(place, end)| Change::Settle(place, end)),
        bits().prop_map(Change::Free),
        Just(Change::WithoutUnused),
        (1..12u64).prop_map(Change::Join),
        ((1..12u64), (0..4usize)).prop_map(|(node, copies)| Change::Leave(node, copies)),
    ];
    let reports = proptest::collection::vec(report(), 0..8);
    (change, reports).prop_map(|(change, reports)| Step { change, reports })
}

fn take(record: &GroupRecord, Step { change, reports }: &Step) -> Result<GroupRecord, Refusal> {
    match change {
        Change::Close => Ok(record.closed()),
        Change::Settle(place, bytes) => record.settled(at(u64::from(*place)), end(*bytes)),
        Change::Free(unused) => record.freed(Extents::from_bits(*unused), reports),
        Change::WithoutUnused => record.without_unused(reports),
        Change::Join(node) => record.joined(NodeId::new(*node), reports),
        Change::Leave(node, copies) => record.left(&[NodeId::new(*node)], *copies, reports),
    }
}

/// What holds between a record and the next one.
fn follows(before: &GroupRecord, after: &GroupRecord, step: &Step) {
    assert_eq!(GroupRecord::decode(&after.encode()).as_ref(), Ok(after), "it is valid");
    let fixed = |record: &GroupRecord| (record.id(), record.kind(), record.writer());
    assert_eq!(fixed(before), fixed(after));
    let is_open = |record: &GroupRecord| record.state() == GroupState::Open;
    assert!(is_open(before) || !is_open(after), "closed for ever");
    assert!(after.gone().has_all(before.gone()), "gone for ever");
    for extent in before.id().extents() {
        let kept = after.length(extent) == before.length(extent);
        let first = before.length(extent).is_none() || after.is_gone(extent);
        assert!(kept || first, "a length changes: {extent}");
    }
    if before.members() == after.members() {
        assert_eq!(before.generation(), after.generation());
        return;
    }
    assert_eq!(after.generation(), before.generation().next());
    assert!(!is_open(before), "members of an open group have changed");
    let changed = before.members().len().abs_diff(after.members().len());
    assert_eq!(changed, 1, "one at a time");
    assert_eq!((before.gone(), &before.lengths), (after.gone(), &after.lengths));
    let said = step.reports.iter().filter(|report| {
        report.generation == before.generation() && before.has_member(report.node)
    });
    let sealed = said.fold(Extents::NONE, |all, report| all.with(report.sealed));
    let ended = before.gone().with(before.with_length()).with(sealed);
    assert_eq!(ended, Extents::ALL, "members changed while extents may be open");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn records_keep_their_promises(steps in proptest::collection::vec(step(), 1..40)) {
        let mut record = open();
        for step in &steps {
            let Ok(next) = take(&record, step) else { continue };
            follows(&record, &next, step);
            let again = take(&next, step);
            prop_assert_eq!(again.as_ref(), Ok(&next), "a repetition changes nothing");
            record = next;
        }
    }
}
