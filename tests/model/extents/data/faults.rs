//! Planted faults are found: a property that cannot fail proves nothing.

use super::properties::*;
use super::tests::*;
use super::*;

fn find(world: Bounds, fault: Fault, property: &'static str) {
    super::super::walk::find(fault, Bounds { fault: Some(fault), ..world }, property);
}

#[test]
fn an_answer_before_all_have_synced() {
    find(one_extent(), Fault::AnswerBeforeAll, STAY);
}

#[test]
fn the_least_end_after_a_lost_tail() {
    find(lost_tails(), Fault::LeastEnd, WITHIN);
    find(lost_tails(), Fault::LeastEnd, STAY);
}

#[test]
fn an_end_that_one_of_those_reached_has() {
    find(lost_disks(), Fault::NotLevelled, WHOLE);
}

#[test]
fn a_witness_that_lost_its_tail() {
    find(lost_tails(), Fault::TornWitness, STAY);
}

#[test]
fn a_fence_that_does_not_sync() {
    find(one_extent(), Fault::FenceUnsynced, WHOLE);
}

#[test]
fn an_unclean_seal_without_a_record() {
    find(one_extent(), Fault::NoRecord, ONE_END);
    find(one_extent(), Fault::NoRecord, STAY);
}

#[test]
fn a_new_extent_in_a_closed_group() {
    find(group(), Fault::NewInClosed, NOBODY);
}

#[test]
fn a_new_member_in_an_open_group() {
    find(group(), Fault::MemberInOpen, CLOSED);
    find(group(), Fault::MemberInOpen, STAY);
}

#[test]
fn copies_removed_by_an_old_record() {
    find(changes(), Fault::OldRecord, STAY);
}

#[test]
fn copies_counted_by_an_old_report() {
    find(changes(), Fault::OldReport, STAY);
}

#[test]
fn a_member_leaves_by_an_old_record() {
    find(Bounds { nodes: 4, ..changes() }, Fault::LeaveUncompared, STAY);
}

#[test]
fn a_group_that_is_forgotten() {
    find(group(), Fault::GroupForgotten, NOBODY);
}

#[test]
fn a_member_that_leaves_before_the_new_one_has_all() {
    find(changes(), Fault::SwapAtOnce, STAY);
    let left = Left { deaths: 1, silences: 0, ..changes().left };
    find(Bounds { left, ..changes() }, Fault::SwapAndKeep, FOUND);
}

#[test]
fn a_length_of_what_is_gone() {
    let left = Left { large: 1, joins: 0, ..group().left };
    find(Bounds { left, ..group() }, Fault::LengthOfGone, NOBODY);
}

#[test]
fn what_nobody_has_after_a_change_of_members() {
    find(group(), Fault::BuryAfterChange, NOBODY);
}

#[test]
fn a_witness_that_is_being_pulled() {
    find(changes(), Fault::PullIsWitness, WITHIN);
}

#[test]
fn a_gone_extent_made_anew() {
    let left = Left { frees: 1, ..changes().left };
    find(Bounds { left, ..changes() }, Fault::GoneMadeAnew, REMOVED);
}
