//! Every cell of the tables of use attempts.

use std::time::Duration;

use super::*;
use crate::index::api::LeaseRefusal as R;
use crate::types::LeaseState;

const A: Uuid = Uuid::from_u128(0xA);
const B: Uuid = Uuid::from_u128(0xB);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(seconds))
}

/// A lease of A that is in `state` at 100 s.
fn lease(state: LeaseState) -> Option<Lease> {
    let duration = Some(Duration::from_secs(15));
    let held = Lease { id: A, duration, since: at(90), breaks_at: None };
    match state {
        LeaseState::Available => None,
        LeaseState::Leased => Some(held),
        LeaseState::Expired => Some(Lease { since: at(80), ..held }),
        LeaseState::Breaking => Some(Lease { breaks_at: Some(at(101)), ..held }),
        LeaseState::Broken => Some(Lease { breaks_at: Some(at(99)), ..held }),
    }
}

#[test]
fn reads_by_state() {
    use LeaseState as S;
    let cells = [
        (S::Available, [None, Some(R::NotPresent), Some(R::NotPresent)]),
        (S::Leased, [None, None, Some(R::Mismatch)]),
        (S::Breaking, [None, None, Some(R::Mismatch)]),
        (S::Broken, [None, Some(R::Lost), Some(R::Lost)]),
        (S::Expired, [None, Some(R::Lost), Some(R::Lost)]),
    ];
    for (state, refusals) in cells {
        for (sent, refusal) in [None, Some(A), Some(B)].into_iter().zip(refusals) {
            let expected = refusal.map_or(Ok(()), |refusal| Err(Refused::Lease(refusal)));
            assert_eq!(lease_of_read(sent, lease(state), at(100)), expected, "{state:?} {sent:?}");
        }
    }
}

#[test]
fn writes_by_state() {
    use LeaseState as S;
    let gone = Ok(None);
    let stays = |state| Ok(lease(state));
    let refused = |refusal| Err(Refused::Lease(refusal));
    let cells = [
        (S::Available, [gone.clone(), refused(R::NotPresent), refused(R::NotPresent)]),
        (S::Leased, [refused(R::Missing), stays(S::Leased), refused(R::Mismatch)]),
        (S::Breaking, [refused(R::Missing), stays(S::Breaking), refused(R::Mismatch)]),
        (S::Broken, [gone.clone(), refused(R::Lost), refused(R::Lost)]),
        (S::Expired, [gone, refused(R::Lost), refused(R::Lost)]),
    ];
    for (state, outcomes) in cells {
        for (sent, expected) in [None, Some(A), Some(B)].into_iter().zip(outcomes) {
            assert_eq!(lease_of_write(sent, lease(state), at(100)), expected, "{state:?} {sent:?}");
        }
    }
}
