//! What is checked, and that planted faults are found.

use super::*;
use stateright::Checker;
use stateright::HasDiscoveries;

/// Two writes, so that one is settled when the other is sent.
const WRITES: Bounds =
    Bounds { numbers: 2, attempts: 2, changes: 1, takeovers: 1, ends: false, fault: None };

/// One write, sent up to three times.
const ATTEMPTED: Bounds = Bounds { numbers: 1, attempts: 3, changes: 2, takeovers: 2, ..WRITES };

/// The front end's incarnation ends.
const ENDED: Bounds = Bounds { numbers: 1, takeovers: 2, ends: true, ..WRITES };

fn walk(name: &str, bounds: Bounds) -> impl Checker<Bounds> + use<> {
    let always = HasDiscoveries::AnyOf([ONCE, TRUE].into());
    let checker = bounds.checker().threads(1).finish_when(always).spawn_bfs().join();
    println!("{name}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
    checker
}

/// Walks all states; nothing is wrong in any, and what is interesting happens.
fn holds(name: &str, bounds: Bounds, sometimes: &[&'static str]) {
    let checker = walk(name, bounds);
    [ONCE, TRUE].into_iter().for_each(|property| checker.assert_no_discovery(property));
    sometimes.iter().for_each(|property| {
        checker.assert_any_discovery(property);
    });
    assert!(checker.unique_state_count() > 1_000);
}

/// With the fault there is a counterexample to the property.
fn fails(bounds: Bounds, fault: Fault, property: &'static str) {
    let checker = walk(&format!("{fault:?}"), Bounds { fault: Some(fault), ..bounds });
    let path = checker.assert_any_discovery(property);
    println!("  {:?}", path.into_actions());
}

#[test]
fn a_write_is_carried_out_once() {
    holds("writes", WRITES, &[REPEATED, LATE, REFUSED]);
    holds("attempts", ATTEMPTED, &[REPEATED, REFUSED]);
    let wide = Bounds { takeovers: 2, ends: true, ..WRITES };
    holds("wide", wide, &[REPEATED, LATE, REFUSED]);
}

#[test]
fn what_an_ended_incarnation_sent_is_not_carried_out_again() {
    holds("ended", ENDED, &[REPEATED, LATE]);
}

#[test]
fn writes_done_twice_are_found() {
    fails(WRITES, Fault::Unlooked, ONCE);
    fails(WRITES, Fault::TrimForgetsAnswers, ONCE);
    fails(WRITES, Fault::TrimForgetsSettled, ONCE);
    fails(ENDED, Fault::EndedUnread, ONCE);
    fails(ENDED, Fault::EndedReadEarly, ONCE);
}

#[test]
fn bytes_freed_too_early_are_found() {
    fails(ATTEMPTED, Fault::RefusalUnkept, TRUE);
    fails(ATTEMPTED, Fault::RefusalOfFirst, TRUE);
    fails(ATTEMPTED, Fault::LastAnswer, TRUE);
    fails(ATTEMPTED, Fault::DeposedSaysNotDone, TRUE);
}
