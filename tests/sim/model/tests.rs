//! The judge itself: which answers it lets pass, and which it refuses.

use super::*;
use crate::answer::Done;
use crate::answer::More;
use crate::content::Segment;
use crate::state::Marks;

fn at(ticks: u64) -> Timestamp {
    Timestamp::from_ticks(ticks)
}

fn put(tag: u64) -> Change {
    let body = Body::Blocks(vec![Segment { id: None, tag, len: 8 }]);
    Change::Make { body, marks: Marks::default() }
}

fn done(etag: &str) -> Answer {
    Answer::Done(Done { etag: Etag::parse(etag), at: None, more: More::Nothing })
}

/// A read that shows this content.
fn shows(tag: Option<u64>) -> impl Fn(&mut State) -> bool + 'static {
    move |state| {
        let body = state.committed.as_ref().map(|committed| &committed.body);
        body.and_then(|body| body.segments().first()).map(|one| one.tag) == tag
    }
}

#[test]
fn changes_that_overlap_may_come_in_either_order_and_a_read_then_decides_it() {
    for last in [1, 2] {
        let mut blob = Blob::default();
        let first = blob.ask(put(1), Demand::default(), at(1));
        let second = blob.ask(put(2), Demand::default(), at(1));
        blob.answer(second, done("0x2"), at(9)).unwrap();
        blob.answer(first, done("0x1"), at(9)).unwrap();
        assert!(blob.known().is_none(), "nobody knows which came last");
        blob.see("it", shows(Some(last))).unwrap();
        blob.see("it again", shows(Some(3 - last))).unwrap_err();
    }
}

#[test]
fn a_read_that_overlaps_a_change_shows_either_side_of_it_and_one_after_it_does_not() {
    for seen in [None, Some(1)] {
        let mut blob = Blob::default();
        let change = blob.ask(put(1), Demand::default(), at(1));
        let read = blob.look();
        blob.seen_by(read, "it", shows(seen)).unwrap();
        blob.answer(change, done("0x1"), at(9)).unwrap();
    }
    let mut blob = Blob::default();
    let change = blob.ask(put(1), Demand::default(), at(1));
    let other = blob.look();
    blob.answer(change, done("0x1"), at(9)).unwrap();
    let late = blob.look();
    blob.seen_by(late, "nothing", shows(None)).unwrap();
    // Now no request is in progress: the late read was right at no moment.
    blob.looked_away(other).unwrap_err();
}

#[test]
fn two_reads_do_not_see_a_change_come_and_go() {
    let mut blob = Blob::default();
    let change = blob.ask(put(1), Demand::default(), at(1));
    for seen in [Some(1), None] {
        let read = blob.look();
        blob.seen_by(read, "it", shows(seen)).unwrap();
    }
    blob.answer(change, done("0x1"), at(9)).unwrap_err();
}

#[test]
fn what_nobody_answered_may_happen_until_the_process_is_gone() {
    let mut blob = Blob::default();
    let lost = blob.ask(put(1), Demand::default(), at(1));
    blob.answer(lost, Answer::Unknown, at(2)).unwrap();
    blob.see("nothing", shows(None)).unwrap();
    blob.see("it", shows(Some(1))).unwrap();
    let mut blob = Blob::default();
    let _cut = blob.ask(put(1), Demand::default(), at(1));
    blob.cut_off(at(2)).unwrap();
    blob.see("nothing", shows(None)).unwrap();
    blob.see("it", shows(Some(1))).unwrap_err();
}

/// A log that is replayed twice must be detected (I14).
#[test]
fn what_nobody_answered_happens_once_at_most() {
    let append = |tag| {
        let segment = Segment { id: None, tag, len: 8 };
        Change::Append { segment, position: None, len_max: None }
    };
    let count = |wanted: usize| {
        move |state: &mut State| {
            let body = state.committed.as_ref().map(|committed| &committed.body);
            body.is_some_and(|body| body.segments().len() == wanted)
        }
    };
    let mut blob = Blob::default();
    let made = blob.ask(
        Change::Make {
            body: Body::Appended { segments: Vec::new(), sealed: false },
            marks: Marks::default(),
        },
        Demand::default(),
        at(1),
    );
    blob.answer(made, done("0x1"), at(2)).unwrap();
    let lost = blob.ask(append(7), Demand::default(), at(3));
    blob.answer(lost, Answer::Unknown, at(4)).unwrap();
    let look = blob.look();
    blob.seen_by(look, "one", count(1)).unwrap();
    let look = blob.look();
    blob.seen_by(look, "two", count(2)).unwrap_err();
}

/// Several lingering changes may happen between two answers, in any order.
#[test]
fn what_lingers_happens_in_any_order() {
    for last in [1, 2] {
        let mut blob = Blob::default();
        for tag in [1, 2] {
            let lost = blob.ask(put(tag), Demand::default(), at(1));
            blob.answer(lost, Answer::Unknown, at(2)).unwrap();
        }
        let look = blob.look();
        blob.seen_by(look, "either", |_| true).unwrap();
        blob.see("the other", shows(Some(3 - last))).unwrap();
        blob.see("the last", shows(Some(last))).unwrap();
        blob.see("the other again", shows(Some(3 - last))).unwrap_err();
    }
}

/// The number of states grows with what answers can distinguish, not with the orders of
/// answers.
#[test]
fn answers_that_overlap_while_changes_linger_leave_few_states() {
    let mut blob = Blob::default();
    for tag in 1..=3 {
        let lost = blob.ask(put(tag), Demand::default(), at(1));
        blob.answer(lost, Answer::Unknown, at(2)).unwrap();
    }
    let looks: Vec<Ticket> = (0..9).map(|_| blob.look()).collect();
    let last = blob.ask(put(4), Demand::default(), at(3));
    for look in looks {
        blob.seen_by(look, "anything", |_| true).unwrap();
    }
    blob.answer(last, done("0x4"), at(9)).unwrap();
    assert!(blob.states.len() <= 16, "{} states", blob.states.len());
}
