//! The reference model of leases. Whether a lease is still held depends on times that are known
//! only within bounds, so the caller says which bound it means.

use std::time::Duration;

use blockyard::index;
use blockyard::types::LeaseAction;
use uuid::Uuid;

use crate::when::When;

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: Uuid,
    duration: Option<Duration>,
    /// When it expires or is broken; `None` means never.
    ends: Option<When>,
    breaking: bool,
}

impl Lease {
    /// Whether it may be held, and whether it may be over.
    pub(crate) fn may_be(&self, held: bool, when: When) -> bool {
        match self.ends {
            None => held,
            Some(ends) if held => when.may_precede(ends),
            Some(ends) => when.may_follow(ends),
        }
    }

    /// Whether a record shows this lease. If so, times that were known within bounds become exact.
    pub(crate) fn see(&mut self, seen: &blockyard::types::Lease) -> bool {
        let ends = seen.breaks_at.or(seen.expires());
        let fits = match (self.ends, ends) {
            (None, None) => true,
            (Some(bounds), Some(time)) => bounds.contains(time),
            (None, Some(_)) | (Some(_), None) => false,
        };
        self.ends = ends.map(When::at);
        fits && self.id == seen.id && self.breaking == seen.breaks_at.is_some()
    }

    /// The lease after an action; `Err` if the action is refused.
    pub(crate) fn act(
        current: Option<Self>,
        held: bool,
        action: LeaseAction,
        when: When,
    ) -> Result<Option<Self>, ()> {
        if let LeaseAction::Acquire { proposed, duration } = action {
            let id = proposed.expect("always proposed");
            let ends = duration.map(|duration| when.plus(duration));
            let fresh = Self { id, duration, ends, breaking: false };
            return match current {
                Some(lease) if held && (lease.breaking || lease.id != id) => Err(()),
                Some(_) | None => Ok(Some(fresh)),
            };
        }
        let lease = current.ok_or(())?;
        match action {
            LeaseAction::Acquire { .. } => unreachable!("answered above"),
            LeaseAction::Renew { id } if id != lease.id || lease.breaking => Err(()),
            LeaseAction::Renew { .. } => {
                Ok(Some(Self { ends: lease.duration.map(|d| when.plus(d)), ..lease }))
            }
            LeaseAction::Change { id, to } => {
                let own = id == lease.id || to == lease.id;
                if own && held && !lease.breaking {
                    Ok(Some(Self { id: to, ..lease }))
                } else {
                    Err(())
                }
            }
            LeaseAction::Release { id } => {
                if id == lease.id {
                    Ok(None)
                } else {
                    Err(())
                }
            }
            LeaseAction::Break { period } => Ok(Some(lease.broken(period, held, when))),
        }
    }

    fn broken(self, period: Option<Duration>, held: bool, when: When) -> Self {
        let asked = period.map(|period| when.plus(period));
        let ends = match (held, self.ends, asked) {
            (true, Some(ends), Some(asked)) => ends.min(asked),
            (true, Some(ends), None) => ends,
            (true, None, asked) => asked.unwrap_or(when),
            (false, Some(ends), _) if self.breaking => ends,
            (false, _, _) => when,
        };
        Self { ends: Some(ends), breaking: true, ..self }
    }
}

/// Whether the answer to an action fits this lease.
pub(crate) fn answered(lease: &mut Option<Lease>, seen: &index::Leased) -> bool {
    match (lease, &seen.result.lease()) {
        (None, None) => true,
        (Some(lease), Some(seen)) => lease.see(seen),
        (None, Some(_)) | (Some(_), None) => false,
    }
}
