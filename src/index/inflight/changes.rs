//! Requests that change blobs. The purge of deleted containers waits for them.
//!
//! A request looks its container up, receives its body, however slowly, and commits. If the
//! container is deleted in between, the commit could write rows that the purge has passed. So a
//! request is noted from before it looks its container up until it is answered. Its commit, which
//! continues when the client disconnects, is noted before the request can end. The purge takes a
//! mark once the container is seen to be deleted. When no request from before the mark runs, all
//! their commits have been noted. It takes another mark then. When no commit from before that one
//! runs, no row can come any more.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use crate::index::InFlight;

#[derive(Debug, Default)]
pub(super) struct Changes {
    next: u64,
    requests: BTreeSet<u64>,
    commits: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Request,
    Commit,
}

impl Changes {
    const fn running(&mut self, kind: Kind) -> &mut BTreeSet<u64> {
        match kind {
            Kind::Request => &mut self.requests,
            Kind::Commit => &mut self.commits,
        }
    }
}

impl InFlight {
    /// Notes a request before it looks its container up.
    #[must_use]
    pub fn change(&self) -> ChangeNote {
        self.note_change(Kind::Request)
    }

    /// Notes a commit before its request can end.
    #[must_use]
    pub fn commit(&self) -> ChangeNote {
        self.note_change(Kind::Commit)
    }

    fn note_change(&self, kind: Kind) -> ChangeNote {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let number = changes.next;
        changes.next += 1;
        changes.running(kind).insert(number);
        drop(changes);
        ChangeNote { inflight: self.clone(), kind, number }
    }

    /// The number of the next request or commit. It separates the notes before now from later ones.
    pub(super) fn next_change(&self) -> u64 {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// All requests and commits with lower numbers have ended.
    pub(super) fn changes_ended(&self) -> u64 {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = changes.requests.first().into_iter().chain(changes.commits.first()).min();
        oldest.copied().unwrap_or(changes.next)
    }

    /// Whether a request noted before `mark` still runs.
    pub(super) fn is_changing(&self, mark: u64) -> bool {
        self.runs(Kind::Request, mark)
    }

    /// Whether a commit noted before `mark` still runs.
    pub(super) fn is_committing(&self, mark: u64) -> bool {
        self.runs(Kind::Commit, mark)
    }

    fn runs(&self, kind: Kind, mark: u64) -> bool {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.running(kind).first().is_some_and(|oldest| *oldest < mark)
    }
}

/// A running request or commit.
#[derive(Debug)]
pub struct ChangeNote {
    inflight: InFlight,
    kind: Kind,
    number: u64,
}

impl Drop for ChangeNote {
    fn drop(&mut self) {
        let mut changes = self.inflight.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.running(self.kind).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_noted_before_the_mark_is_waited_for() {
        let inflight = InFlight::default();
        let early = inflight.change();
        let mark = inflight.next_change();
        let late = inflight.change();
        assert!(inflight.is_changing(mark) && !inflight.is_committing(mark));
        drop(early);
        assert!(!inflight.is_changing(mark));
        assert!(inflight.is_changing(inflight.next_change()));
        let commit = inflight.commit();
        drop(late);
        assert!(!inflight.is_changing(inflight.next_change()));
        assert!(inflight.is_committing(inflight.next_change()));
        assert!(!inflight.is_committing(mark));
        drop(commit);
        assert!(!inflight.is_committing(inflight.next_change()));
    }
}
