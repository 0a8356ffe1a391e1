//! What is checked, and that planted faults are found.

use super::*;
use stateright::Checker;
use stateright::HasDiscoveries;

/// Reads at the old owner, a takeover, a member's start, clocks that differ.
const TAKEOVER: Bounds = Bounds {
    writes: 1,
    takeovers: 1,
    rolls: 0,
    restarts: 1,
    releases: 0,
    replaced: 0,
    lag: 1,
    readers: 0b01,
    asks: true,
    appenders: 0,
    refusals: false,
    same_log: false,
    members: [0b11; LOGS as usize],
    fault: None,
};

/// The same without starts, and with clocks that agree.
const PLAIN: Bounds = Bounds { restarts: 0, lag: 0, ..TAKEOVER };

/// The old owner appends by messages. Only those give leases.
const APPENDS: Bounds =
    Bounds { writes: 2, asks: false, appenders: 0b01, refusals: true, ..TAKEOVER };

/// Questions too, with one member.
const APPENDS_AND_QUESTIONS: Bounds =
    Bounds { asks: true, members: [0b01; LOGS as usize], ..APPENDS };

/// The old owner rolls to a log that has one member more.
const ROLLS: Bounds = Bounds { rolls: 1, members: [0b01, 0b11, 0b01, 0b01], ..PLAIN };

/// The same with appends in place of questions. The logs have one member each.
const APPENDS_AND_ROLLS: Bounds =
    Bounds { rolls: 1, restarts: 0, lag: 0, members: [0b01, 0b10, 0b01, 0b01], ..APPENDS };

/// The partition goes to and fro, in the same log if all members took the new epoch.
const RELEASES: Bounds =
    Bounds { takeovers: 2, releases: 1, readers: 0b10, same_log: true, ..PLAIN };

/// The same, more often, with one member, and clients read from both hosts.
const RELEASES_OF_ONE: Bounds =
    Bounds { takeovers: 3, releases: 2, readers: 0b11, members: [0b01; LOGS as usize], ..RELEASES };

/// A member of the old log is replaced.
const REPLACED: Bounds = Bounds { replaced: 1, ..PLAIN };

/// All at once, with three members. Too much for every interleaving.
const ALL: Bounds = Bounds {
    writes: 6,
    takeovers: 3,
    rolls: 2,
    restarts: 2,
    releases: 2,
    replaced: 1,
    lag: 1,
    readers: 0b11,
    asks: true,
    appenders: 0b11,
    refusals: true,
    same_log: true,
    members: [0b011, 0b110, 0b101, 0b111],
    fault: None,
};

const ALWAYS: [&str; 4] = [READ, REFUSAL, ROWS, LOST];

/// Walks all states; nothing is wrong in any, and what is interesting happens.
fn holds(name: &str, bounds: Bounds, sometimes: &[&'static str]) {
    let always = HasDiscoveries::AnyOf(ALWAYS.into());
    let checker = bounds.checker().threads(1).finish_when(always).spawn_bfs().join();
    println!("{name}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
    ALWAYS.into_iter().for_each(|property| checker.assert_no_discovery(property));
    sometimes.iter().for_each(|property| {
        checker.assert_any_discovery(property);
    });
    assert!(checker.unique_state_count() > 10_000);
}

/// With the fault there is a counterexample to the property.
fn fails(bounds: Bounds, fault: Fault, property: &'static str) {
    let bounds = Bounds { fault: Some(fault), ..bounds };
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = bounds.checker().threads(1).finish_when(found).spawn_bfs().join();
    println!("{fault:?}: {} states", checker.unique_state_count());
    println!("  {:?}", checker.assert_any_discovery(property).into_actions());
}

/// What shall be rarer than messages, else no host is ever asked anything.
fn rare(step: Step) -> bool {
    let time = matches!(step, Step::Tick(_) | Step::Restart(_) | Step::Replace(..));
    let owner = matches!(step, Step::Claim(_) | Step::Leave(_) | Step::Open(_) | Step::Continue(_));
    let roll = matches!(step, Step::Roll(_) | Step::Carry | Step::Refuse | Step::Settle(_));
    time || owner || roll
}

/// Takes steps at random, again and again from the start, until something is wrong.
fn walk(bounds: Bounds, seed: u64) -> Option<Wrong> {
    let (mut random, mut steps) = (seed, Vec::new());
    let mut below = |end: usize| {
        // Knuth's generator; its upper bits are the random ones.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(random >> 33).unwrap() % end
    };
    for _ in 0..100_000 {
        let mut world = bounds.init_states().remove(0);
        for _ in 0..400 {
            steps.clear();
            bounds.actions(&world, &mut steps);
            if steps.is_empty() {
                return world.wrong;
            }
            let step = steps[below(steps.len())];
            if !rare(step) || below(8) == 0 {
                world = bounds.next_state(&world, step).unwrap_or(world);
            }
        }
    }
    None
}

#[test]
fn all_at_once_at_random() {
    for seed in 0..3 {
        assert_eq!(walk(ALL, seed), None);
    }
    for (fault, wrong) in [
        (Fault::FenceAtOnce, Wrong::Read),
        (Fault::NamesNothing, Wrong::Read),
        (Fault::ReleasedTooEarly, Wrong::Read),
        (Fault::WrittenToNew, Wrong::Lost),
    ] {
        assert_eq!(walk(Bounds { fault: Some(fault), ..ALL }, 0), Some(wrong));
    }
}

#[test]
#[ignore = "takes minutes: tests/run models"]
fn all_at_once_at_random_for_long() {
    for seed in 0..100 {
        assert_eq!(walk(ALL, seed), None);
    }
}

#[test]
fn reads_of_a_deposed_host_are_never_stale() {
    holds("takeover", TAKEOVER, &[BY_LEASES, BY_ASKING, STANDS_STILL, SILENT]);
}

#[test]
fn accepted_appends_are_leases() {
    holds("appends", APPENDS, &[BY_LEASES, STANDS_STILL, SILENT]);
    let all = [BY_LEASES, BY_ASKING, STANDS_STILL];
    holds("appends and questions", APPENDS_AND_QUESTIONS, &all);
}

#[test]
fn while_a_roll_is_unknown_both_logs_count() {
    holds("rolls", ROLLS, &[BY_LEASES, BY_ASKING, STANDS_STILL]);
    holds("appends and rolls", APPENDS_AND_ROLLS, &[BY_LEASES, STANDS_STILL]);
}

#[test]
fn leases_that_are_given_back_need_no_wait() {
    holds("releases of one", RELEASES_OF_ONE, &[BY_LEASES, BY_ASKING, STANDS_STILL]);
}

#[test]
fn a_log_that_all_members_hand_over_goes_on() {
    holds("releases", RELEASES, &[BY_LEASES, BY_ASKING, STANDS_STILL, SILENT]);
}

#[test]
fn copies_that_were_pulled_give_no_leases() {
    holds("replaced", REPLACED, &[BY_LEASES, BY_ASKING, STANDS_STILL, SILENT]);
}

#[test]
fn faults_of_members_are_found() {
    fails(PLAIN, Fault::FenceAtOnce, READ);
    fails(Bounds { lag: 1, ..PLAIN }, Fault::NoMargin, READ);
    fails(Bounds { restarts: 1, ..PLAIN }, Fault::NoWaitAfterStart, READ);
    fails(Bounds { restarts: 1, ..PLAIN }, Fault::FenceForgotten, READ);
    fails(PLAIN, Fault::NamesNothing, READ);
    fails(APPENDS_AND_QUESTIONS, Fault::AppendUnnoted, READ);
    fails(APPENDS_AND_QUESTIONS, Fault::RepeatedAfterFence, READ);
    fails(REPLACED, Fault::PulledAnswers, READ);
}

#[test]
fn faults_of_hosts_are_found() {
    fails(PLAIN, Fault::FromReceipt, READ);
    fails(PLAIN, Fault::ClockStops, READ);
    fails(PLAIN, Fault::OneMember, READ);
    fails(PLAIN, Fault::EarlierQuestion, READ);
    fails(Bounds { refusals: true, ..PLAIN }, Fault::RefusalUnchecked, REFUSAL);
    fails(APPENDS, Fault::RefusalOfPending, LOST);
}

/// What is answered is still right: the check was made after the read was sent, and what the host
/// shows only grows. But a decision that looks at rows and at the clock would be wrong.
#[test]
fn leases_looked_at_before_the_evaluation_are_found() {
    fails(PLAIN, Fault::CheckedBefore, ROWS);
    let bounds = Bounds { fault: Some(Fault::CheckedBefore), ..PLAIN };
    bounds.checker().threads(1).spawn_bfs().join().assert_no_discovery(READ);
}

#[test]
fn faults_of_rolls_are_found() {
    fails(ROLLS, Fault::OnlyOldLog, READ);
    fails(ROLLS, Fault::OnlyNewLog, READ);
    fails(ROLLS, Fault::LookSettles, READ);
    fails(ROLLS, Fault::LookSettles, LOST);
    fails(ROLLS, Fault::ClaimUnread, READ);
    fails(APPENDS_AND_ROLLS, Fault::WrittenToOld, LOST);
    fails(APPENDS_AND_ROLLS, Fault::WrittenToNew, LOST);
}

#[test]
fn faults_of_releases_are_found() {
    fails(RELEASES_OF_ONE, Fault::ReleasedTooEarly, READ);
    fails(RELEASES_OF_ONE, Fault::ReleaseNamesNoEpoch, READ);
    fails(RELEASES_OF_ONE, Fault::EarlierEpoch, READ);
    fails(Bounds { restarts: 1, ..RELEASES_OF_ONE }, Fault::ReleaseEndsStart, READ);
}
