//! The worlds that are walked without a fault.

use super::super::walk::walk;
use super::properties::*;
use super::*;

pub(super) const NOTHING: Left = Left {
    appends: 0,
    crashes: 0,
    silences: 0,
    tears: 0,
    lies: 0,
    deaths: 0,
    joins: 0,
    frees: 0,
    large: 0,
    ends: 0,
};

/// Three copies of one extent: append, roll, seal, settle.
pub(super) fn one_extent() -> Bounds {
    let left = Left { appends: 2, crashes: 1, silences: 1, large: 1, ends: 1, ..NOTHING };
    Bounds {
        nodes: 3,
        members: 3,
        copies: 3,
        extents: 1,
        places: 2,
        tails: true,
        left,
        fault: None,
    }
}

/// Two copies, which lose synced bytes.
pub(super) fn lost_tails() -> Bounds {
    let left = Left { tears: 1, lies: 1, crashes: 1, ..one_extent().left };
    Bounds { nodes: 2, members: 2, copies: 2, left, ..one_extent() }
}

/// Three copies, two of whose disks may be lost.
pub(super) fn lost_disks() -> Bounds {
    let left = Left { deaths: 2, crashes: 0, large: 0, ..one_extent().left };
    Bounds { left, ..one_extent() }
}

/// Two copies, a node to spare, two extents: a group is closed, a member replaced.
pub(super) fn group() -> Bounds {
    let left = Left { appends: 2, silences: 1, ends: 1, joins: 1, ..NOTHING };
    let (nodes, members, copies) = (3, 2, 2);
    Bounds { nodes, members, copies, extents: 2, places: 1, tails: false, left, fault: None }
}

/// The same with one extent: members come, go and come again.
pub(super) fn changes() -> Bounds {
    let left = Left { appends: 1, silences: 1, ends: 1, joins: 2, ..NOTHING };
    Bounds { extents: 1, left, ..group() }
}

#[test]
fn an_extent_ends_where_all_agree() {
    let samples = [CUT, SHORT, BY_MANAGER, TOO_LATE, LARGE];
    walk("one extent", one_extent(), &ALWAYS, &samples);
}

#[test]
fn copies_that_lost_their_tail_decide_nothing() {
    walk("lost tails", lost_tails(), &ALWAYS, &[WAITS, SHORT]);
}

#[test]
fn the_last_copy_is_enough() {
    walk("lost disks", lost_disks(), &ALWAYS, &[LAST]);
}

#[test]
fn a_closed_group_takes_no_new_extents() {
    walk("group", group(), &ALWAYS, &[REFUSED, REPLACED, BURIED]);
}

#[test]
fn members_leave_and_return() {
    let left = Left { deaths: 1, joins: 3, ..changes().left };
    walk("changes", Bounds { left, ..changes() }, &ALWAYS, &[REPLACED, RETURNED]);
}

#[test]
fn a_lost_member_of_three_is_replaced() {
    let left = Left { deaths: 1, joins: 1, ..changes().left };
    let bounds = Bounds { nodes: 4, members: 3, copies: 3, left, ..changes() };
    walk("lost member", bounds, &ALWAYS, &[MADE_GOOD]);
}

#[test]
fn one_copy_less_becomes_whole() {
    let left = Left { appends: 2, crashes: 1, joins: 1, ..changes().left };
    let bounds = Bounds { copies: 3, places: 2, tails: true, left, ..changes() };
    walk("one copy less", bounds, &ALWAYS, &[LESS, AGAIN]);
}

#[test]
fn gone_is_for_ever() {
    let left = Left { appends: 2, frees: 1, joins: 1, ..changes().left };
    walk("gone", Bounds { places: 2, left, ..changes() }, &ALWAYS, &[GONE]);
}

/// A member is replaced while all kinds of faults happen, one of each.
fn much() -> Bounds {
    let left = Left { crashes: 1, tears: 1, deaths: 1, large: 1, joins: 1, ..changes().left };
    Bounds { tails: true, left, ..changes() }
}

#[test]
fn much_fails_at_once() {
    let left = Left { silences: 0, ..much().left };
    walk("much", Bounds { left, ..much() }, &ALWAYS, &[REPLACED]);
}

#[test]
#[ignore = "takes minutes: tests/run models"]
fn all_fails_at_once() {
    let left = Left { frees: 1, ..much().left };
    walk("all", Bounds { left, ..much() }, &ALWAYS, &[REPLACED, GONE]);
}
