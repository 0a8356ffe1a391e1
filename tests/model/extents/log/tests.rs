//! The worlds that are walked without a fault.

use super::super::walk::walk;
use super::properties::*;
use super::*;

pub(super) const NOTHING: Left =
    Left { records: 0, rolls: 0, claims: 0, crashes: 0, silences: 0, tears: 0, lies: 0, deaths: 0 };

/// Two copies, a node to spare, a roll and a takeover.
pub(super) fn takeover() -> Bounds {
    let left = Left { records: 2, rolls: 1, claims: 1, silences: 1, ..NOTHING };
    let rolling = WhileRolling::Wait;
    Bounds { nodes: 3, copies: 2, left, rolling, tails: false, fault: None }
}

/// Three copies, one less while a node is away; no roll.
pub(super) fn three() -> Bounds {
    let left = Left { records: 2, claims: 1, silences: 2, ..NOTHING };
    Bounds { copies: 3, left, ..takeover() }
}

#[test]
fn a_new_owner_finds_all() {
    walk("takeover", takeover(), &ALWAYS, &[UNANSWERED, LATE, RESENT, EMPTY]);
}

#[test]
fn the_last_member_is_enough() {
    walk("three", three(), &ALWAYS, &[LAST, UNANSWERED]);
}

#[test]
fn one_copy_less() {
    let left = Left { records: 1, rolls: 1, silences: 1, ..three().left };
    walk("one copy less", Bounds { left, ..three() }, &ALWAYS, &[LESS, LATE]);
}

#[test]
fn takeovers_race() {
    let left = Left { rolls: 0, claims: 3, silences: 0, ..takeover().left };
    walk("race", Bounds { left, ..takeover() }, &ALWAYS, &[AGAIN]);
}

#[test]
fn members_crash_and_lose_their_tail() {
    let left = Left { rolls: 0, silences: 0, crashes: 1, tears: 1, lies: 1, ..takeover().left };
    walk("lost tails", Bounds { left, tails: true, ..takeover() }, &ALWAYS, &[WAITS]);
}

#[test]
fn disks_are_lost() {
    let left = Left { silences: 0, deaths: 1, ..takeover().left };
    walk("lost disks", Bounds { left, ..takeover() }, &ALWAYS, &[UNANSWERED]);
}

#[test]
fn writes_go_on_while_a_roll_is_unknown() {
    let bounds = Bounds { rolling: WhileRolling::Both, ..takeover() };
    walk("both", bounds, &ALWAYS, &[BOTH, LATE]);
}

#[test]
#[ignore = "takes minutes: tests/run models"]
fn a_roll_and_two_takeovers() {
    let left = Left { claims: 2, silences: 0, deaths: 1, ..takeover().left };
    let rolling = WhileRolling::Both;
    walk("two takeovers", Bounds { left, rolling, ..takeover() }, &ALWAYS, &[AGAIN, BOTH]);
}
