//! Planted faults are found: a property that cannot fail proves nothing.

use super::properties::*;
use super::tests::*;
use super::*;

fn find(world: Bounds, fault: Fault, property: &'static str) {
    super::super::walk::find(fault, Bounds { fault: Some(fault), ..world }, property);
}

#[test]
fn an_answer_before_all_have_synced() {
    find(takeover(), Fault::AnswerBeforeAll, STAY);
}

#[test]
fn the_least_end_after_a_lost_tail() {
    let left = Left { rolls: 0, silences: 0, tears: 1, lies: 1, ..takeover().left };
    find(Bounds { left, ..takeover() }, Fault::LeastEnd, FOUND);
}

#[test]
fn an_end_that_one_of_those_reached_has() {
    let left = Left { deaths: 1, silences: 0, ..three().left };
    find(Bounds { left, ..three() }, Fault::NotLevelled, WHOLE);
    find(Bounds { left, ..three() }, Fault::NotLevelled, SERVES);
}

#[test]
fn a_takeover_without_a_fence() {
    find(takeover(), Fault::Unfenced, FOUND);
}

#[test]
fn a_fence_of_what_a_member_does_not_have() {
    find(takeover(), Fault::FenceForgotten, FOUND);
}

#[test]
fn a_member_that_is_not_held_to_the_end() {
    find(three(), Fault::NotHeld, STAY);
}

#[test]
fn a_roll_without_a_length() {
    find(takeover(), Fault::RollWithoutLength, IN_ORDER);
}

#[test]
fn answers_while_a_roll_is_unknown() {
    find(takeover(), Fault::AnswersWhileRolling, FOUND);
}

#[test]
fn a_roll_that_compares_nothing() {
    find(takeover(), Fault::RollUncompared, SHOWN);
}
