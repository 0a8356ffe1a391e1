//! Every cell of the table of lease actions by state.

use uuid::Uuid;

use super::*;
use crate::index::api::LeaseRefusal as R;

const A: Uuid = Uuid::from_u128(0xA);
const B: Uuid = Uuid::from_u128(0xB);
const C: Uuid = Uuid::from_u128(0xC);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(seconds))
}

const fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

/// A lease of A, 15 s, that is in `state` at 100 s.
fn lease(state: LeaseState) -> Option<Lease> {
    let held = Lease { id: A, duration: secs(15), since: at(90), breaks_at: None };
    match state {
        LeaseState::Available => None,
        LeaseState::Leased => Some(held),
        LeaseState::Expired => Some(Lease { since: at(80), ..held }),
        LeaseState::Breaking => Some(Lease { breaks_at: Some(at(103)), ..held }),
        LeaseState::Broken => Some(Lease { breaks_at: Some(at(99)), ..held }),
    }
}

/// The state and holder after an action, or the refusal.
type Cell = Result<(LeaseState, Uuid), R>;

fn row(action: LeaseAction, cells: [Cell; 5]) {
    use LeaseState as S;
    let states = [S::Available, S::Leased, S::Breaking, S::Broken, S::Expired];
    for (state, cell) in states.into_iter().zip(cells) {
        let after = act(lease(state), action, at(100)).map(|result| {
            result
                .lease()
                .map_or((S::Available, Uuid::nil()), |lease| (lease.state(at(100)), lease.id))
        });
        assert_eq!(after, cell, "{action:?} in {state:?}");
    }
}

#[test]
fn acquire_by_state() {
    let leased = |id| Ok((LeaseState::Leased, id));
    let acquire = |proposed| LeaseAction::Acquire { proposed: Some(proposed), duration: secs(15) };
    let other = Err(R::AlreadyPresent);
    row(acquire(A), [leased(A), leased(A), Err(R::BreakingNotAcquired), leased(A), leased(A)]);
    row(acquire(B), [leased(B), other, other, leased(B), leased(B)]);
}

#[test]
fn renew_by_state() {
    let (leased, none) = (Ok((LeaseState::Leased, A)), Err(R::NothingToActOn));
    let (broken, other) = (Err(R::BrokenNotRenewed), Err(R::ActsOnOther));
    row(LeaseAction::Renew { id: A }, [none, leased, broken, broken, leased]);
    row(LeaseAction::Renew { id: B }, [none, other, other, other, other]);
}

#[test]
fn change_by_state() {
    let (leased, none) = (|id| Ok((LeaseState::Leased, id)), Err(R::NothingToActOn));
    let (breaking, other) = (Err(R::BreakingNotChanged), Err(R::ActsOnOther));
    row(LeaseAction::Change { id: A, to: B }, [none, leased(B), breaking, none, none]);
    row(LeaseAction::Change { id: B, to: A }, [none, leased(A), breaking, none, none]);
    row(LeaseAction::Change { id: B, to: C }, [none, other, other, other, other]);
}

#[test]
fn release_by_state() {
    let (free, none) = (Ok((LeaseState::Available, Uuid::nil())), Err(R::NothingToActOn));
    let other = Err(R::ActsOnOther);
    row(LeaseAction::Release { id: A }, [none, free, free, free, free]);
    row(LeaseAction::Release { id: B }, [none, other, other, other, other]);
}

#[test]
fn break_by_state() {
    let none = Err(R::NothingToActOn);
    let (breaking, broken) = (Ok((LeaseState::Breaking, A)), Ok((LeaseState::Broken, A)));
    let at_once = LeaseAction::Break { period: secs(0) };
    row(at_once, [none, broken, broken, broken, broken]);
    let later = LeaseAction::Break { period: secs(2) };
    row(later, [none, breaking, breaking, broken, broken]);
    let unsaid = LeaseAction::Break { period: None };
    row(unsaid, [none, breaking, breaking, broken, broken]);
}

#[test]
fn break_ends_when_it_was_asked_to_or_with_the_duration() {
    let ends = |current: Lease, period| {
        let result = act(Some(current), LeaseAction::Break { period }, at(100)).unwrap();
        let LeaseResult::Broken { lease, left } = result else { panic!("{result:?}") };
        assert_eq!(Some(left), lease.breaks_at.map(|ends| ends.since(at(100))));
        lease.breaks_at
    };
    let held = lease(LeaseState::Leased).unwrap();
    assert_eq!(ends(held, secs(60)), Some(at(105)), "no later than the duration");
    assert_eq!(ends(held, secs(3)), Some(at(103)));
    assert_eq!(ends(held, None), Some(at(105)));
    let infinite = Lease { duration: None, ..held };
    assert_eq!(ends(infinite, secs(60)), Some(at(160)));
    assert_eq!(ends(infinite, None), Some(at(100)), "at once");
    let breaking = lease(LeaseState::Breaking).unwrap();
    assert_eq!(ends(breaking, secs(60)), Some(at(103)), "never longer");
    assert_eq!(ends(breaking, secs(1)), Some(at(101)));
    assert_eq!(ends(lease(LeaseState::Broken).unwrap(), secs(9)), Some(at(99)));
}

#[test]
fn acquire_and_renew_start_the_duration_again() {
    let renewed = act(lease(LeaseState::Expired), LeaseAction::Renew { id: A }, at(100));
    assert_eq!(renewed.unwrap().lease().unwrap().expires(), Some(at(115)));
    let again = LeaseAction::Acquire { proposed: Some(A), duration: None };
    assert_eq!(
        act(lease(LeaseState::Leased), again, at(100)).unwrap().lease().unwrap().expires(),
        None
    );
}
