//! Answers to changes, and whether one fits a state.

use blockyard::index::Leased;
use blockyard::types::Etag;
use blockyard::types::Timestamp;

use crate::change::Change;
use crate::content::Body;
use crate::lease;
use crate::state::State;

/// The answer to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done(Done),
    /// Not done, because of the state of the blob.
    Refused,
    /// Not done, for another reason than the state of the blob.
    NotDone,
    /// The outcome is unknown.
    Unknown,
}

/// What the answer to a change shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) etag: Option<Etag>,
    /// The exact time of the change.
    pub(crate) at: Option<Timestamp>,
    pub(crate) more: More,
}

/// Fields that only the answers of some changes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum More {
    #[default]
    Nothing,
    Appended {
        offset: u64,
        blocks: u32,
    },
    Sequence(u64),
    Taken(Timestamp),
    Leased(Leased),
}

impl Answer {
    /// Its name in the counts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done(_) => "changes done",
            Self::Refused => "changes refused",
            Self::NotDone => "changes not done",
            Self::Unknown => "changes unknown",
        }
    }
}

/// Whether the answer fits this state. If so, the state takes over what the answer shows.
pub(crate) fn settle(state: &mut State, change: &Change, done: Done) -> bool {
    let renewed = change.renews_etag() || matches!(change, Change::Seal { .. });
    if let Some(committed) = state.committed.as_mut().filter(|_| renewed) {
        if committed.etag.is_some() && committed.etag != done.etag {
            return false;
        }
        committed.etag = done.etag;
    }
    if let Change::Complete { upload, .. } = change
        && !settle_completion(state, *upload, done.etag)
    {
        return false;
    }
    match done.more {
        More::Nothing => true,
        More::Appended { offset, blocks } => {
            let Some(body) = state.committed.as_ref().map(|committed| &committed.body) else {
                return false;
            };
            let last = body.segments().last().map_or(0, |segment| segment.len);
            body.len() - last == offset && body.segments().len() == blocks as usize
        }
        More::Sequence(sequence) => {
            let body = state.committed.as_ref().map(|committed| &committed.body);
            matches!(body, Some(Body::Pages(pages)) if pages.sequence == sequence)
        }
        More::Taken(at) => {
            let Some(taken) = state.snapshots.last_mut() else { return false };
            let fits = taken.was.etag.is_none_or(|etag| Some(etag) == done.etag);
            (taken.at, taken.was.etag) = (Some(at), done.etag);
            fits
        }
        More::Leased(leased) => state
            .committed
            .as_mut()
            .is_some_and(|committed| lease::answered(&mut committed.lease, &leased)),
    }
}

/// Whether the tag that a completion answered fits this state: each completion of an upload answers
/// the same, and the blob has this tag until it changes.
fn settle_completion(state: &mut State, upload: u64, etag: Option<Etag>) -> bool {
    let Some(completed) = state.completed.get_mut(&upload) else { return false };
    if completed.etag.is_some_and(|known| Some(known) != etag) {
        return false;
    }
    completed.etag = etag;
    match &mut state.committed {
        Some(committed) if committed.upload == Some(upload) => {
            let fits = committed.etag.is_none_or(|known| Some(known) == etag);
            committed.etag = etag;
            fits
        }
        Some(_) | None => true,
    }
}
