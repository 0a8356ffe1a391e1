//! Lease Blob and Lease Container: the effect of an action on a lease. No rows and no I/O.
//!
//! Source: "outcomes of lease operations by lease state" of both operations.

use std::time::Duration;

use crate::index::api::LeaseRefusal;
use crate::index::api::LeaseResult;
use crate::types::Lease;
use crate::types::LeaseAction;
use crate::types::LeaseState;
use crate::types::Timestamp;

/// Applies `action` to a lease.
pub(super) fn act(
    current: Option<Lease>,
    action: LeaseAction,
    now: Timestamp,
) -> Result<LeaseResult, LeaseRefusal> {
    if let LeaseAction::Acquire { proposed, duration } = action {
        let id = proposed.unwrap_or_default();
        let fresh = Lease { id, duration, since: now, breaks_at: None };
        return acquire(current, fresh, now).map(LeaseResult::Acquired);
    }
    let lease = current.ok_or(LeaseRefusal::NothingToActOn)?;
    let state = lease.state(now);
    match action {
        LeaseAction::Acquire { .. } => Err(LeaseRefusal::AlreadyPresent),
        LeaseAction::Renew { id } if id != lease.id => Err(LeaseRefusal::ActsOnOther),
        LeaseAction::Renew { .. } => match state {
            LeaseState::Breaking | LeaseState::Broken => Err(LeaseRefusal::BrokenNotRenewed),
            LeaseState::Leased | LeaseState::Expired | LeaseState::Available => {
                Ok(LeaseResult::Renewed(Lease { since: now, ..lease }))
            }
        },
        // A change that is repeated because its answer was lost finds the new id already set.
        LeaseAction::Change { id, to } if id != lease.id && to != lease.id => {
            Err(LeaseRefusal::ActsOnOther)
        }
        LeaseAction::Change { to, .. } => match state {
            LeaseState::Leased => Ok(LeaseResult::Changed(Lease { id: to, ..lease })),
            LeaseState::Breaking => Err(LeaseRefusal::BreakingNotChanged),
            LeaseState::Broken | LeaseState::Expired | LeaseState::Available => {
                Err(LeaseRefusal::NothingToActOn)
            }
        },
        LeaseAction::Release { id } if id != lease.id => Err(LeaseRefusal::ActsOnOther),
        LeaseAction::Release { .. } => Ok(LeaseResult::Released),
        LeaseAction::Break { period } => Ok(broken(lease, period, now)),
    }
}

fn acquire(current: Option<Lease>, fresh: Lease, now: Timestamp) -> Result<Lease, LeaseRefusal> {
    let Some(lease) = current else { return Ok(fresh) };
    let own = lease.id == fresh.id;
    match lease.state(now) {
        LeaseState::Leased if !own => Err(LeaseRefusal::AlreadyPresent),
        LeaseState::Breaking if own => Err(LeaseRefusal::BreakingNotAcquired),
        LeaseState::Breaking => Err(LeaseRefusal::AlreadyPresent),
        LeaseState::Leased | LeaseState::Broken | LeaseState::Expired | LeaseState::Available => {
            Ok(fresh)
        }
    }
}

/// The lease after a break. The break period ends no later than the lease. A second break can only
/// shorten the period.
fn broken(lease: Lease, period: Option<Duration>, now: Timestamp) -> LeaseResult {
    let asked = period.map(|period| now.plus(period));
    let breaks_at = match lease.state(now) {
        LeaseState::Leased => match (asked, lease.expires()) {
            (Some(asked), Some(expires)) => asked.min(expires),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => now,
        },
        LeaseState::Breaking => {
            let before = lease.breaks_at.unwrap_or(now);
            asked.map_or(before, |asked| asked.min(before))
        }
        LeaseState::Broken => lease.breaks_at.unwrap_or(now),
        LeaseState::Expired | LeaseState::Available => now,
    };
    let lease = Lease { breaks_at: Some(breaks_at), ..lease };
    LeaseResult::Broken { lease, left: breaks_at.since(now) }
}

#[cfg(test)]
mod tests;
