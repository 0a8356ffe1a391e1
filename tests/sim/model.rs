//! The reference: what a blob may be, given every answer so far.
//!
//! A change whose answer never came may or may not have happened, so a blob is a set of possible states. An answer or a
//! read that fits none of them is a broken promise; one that fits some rules the others out, because what was once seen
//! must stay (I1, I6): for good after a restart, before it but for changes still on their way.

use std::collections::BTreeMap;

use blockyard::types::BlockSource;
use blockyard::types::Etag;
use bytes::Bytes;

use crate::draw::content;
use crate::seeds::Violation;

/// A stretch of a blob: a block, or the body of a Put Blob, which has no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) id: Option<u32>,
    pub(crate) tag: u64,
    pub(crate) len: u64,
}

/// A committed blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) segments: Vec<Segment>,
    /// What its metadata says.
    pub(crate) mark: u64,
    /// Unknown after a change whose answer never came.
    pub(crate) etag: Option<Etag>,
}

impl Committed {
    pub(crate) fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        let parts: Vec<Bytes> =
            self.segments.iter().map(|segment| content(segment.tag, segment.len)).collect();
        parts.concat().into()
    }
}

/// One possible state of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) committed: Option<Committed>,
    pub(crate) staged: BTreeMap<u32, Segment>,
}

/// What a change demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    None,
    IfMatch(Etag),
    IfAbsent,
}

/// A change asked for.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put { segment: Segment, mark: u64 },
    Stage { segment: Segment },
    Commit { list: Vec<(BlockSource, u32)>, mark: u64 },
    Mark { mark: u64 },
    Delete,
}

impl State {
    /// The state after the change; none when it is to be refused.
    fn after(&self, change: &Change, demand: Demand) -> Option<Self> {
        let current = self.committed.as_ref();
        match demand {
            Demand::None => {}
            Demand::IfAbsent if current.is_some() => return None,
            Demand::IfAbsent => {}
            Demand::IfMatch(etag) if current.and_then(|c| c.etag) != Some(etag) => return None,
            Demand::IfMatch(_) => {}
        }
        let mut next = self.clone();
        match change {
            Change::Put { segment, mark } => {
                next = Self::default();
                let segments = vec![*segment];
                next.committed = Some(Committed { segments, mark: *mark, etag: None });
            }
            Change::Stage { segment } => {
                next.staged.insert(segment.id?, *segment);
            }
            Change::Commit { list, mark } => {
                let segments = list.iter().map(|(source, id)| self.block(*source, *id));
                let segments = segments.collect::<Option<Vec<Segment>>>()?;
                next = Self::default();
                next.committed = Some(Committed { segments, mark: *mark, etag: None });
            }
            Change::Mark { mark } => {
                let committed = next.committed.as_mut()?;
                committed.mark = *mark;
                committed.etag = None;
            }
            Change::Delete => {
                current?;
                next = Self::default();
            }
        }
        Some(next)
    }

    fn block(&self, source: BlockSource, id: u32) -> Option<Segment> {
        let staged = self.staged.get(&id).copied();
        let committed = || {
            let segments = &self.committed.as_ref()?.segments;
            segments.iter().find(|segment| segment.id == Some(id)).copied()
        };
        match source {
            BlockSource::Committed => committed(),
            BlockSource::Uncommitted => staged,
            BlockSource::Latest => staged.or_else(committed),
        }
    }
}

/// How a change was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, with the new tag if there is one.
    Done(Option<Etag>),
    /// Not done, because of what the blob is.
    Refused,
    /// Not done, for reasons that are not the blob's.
    NotDone,
    /// Nobody knows.
    Unknown,
}

impl Answer {
    /// For counting.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done(_) => "changes done",
            Self::Refused => "changes refused",
            Self::NotDone => "changes not done",
            Self::Unknown => "changes unknown",
        }
    }
}

/// A blob.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    states: Vec<State>,
    /// Asked for and not yet answered.
    asked: Option<(Change, Demand)>,
    /// Answered with "nobody knows": may take effect at any time until the process is gone, or never.
    lingering: Vec<(Change, Demand)>,
    seen: Vec<Etag>,
}

impl Default for Blob {
    fn default() -> Self {
        Self {
            states: vec![State::default()],
            asked: None,
            lingering: Vec::new(),
            seen: Vec::new(),
        }
    }
}

impl Blob {
    /// The state, when only one is possible.
    pub(crate) fn known(&self) -> Option<&State> {
        match self.states.as_slice() {
            [state] if self.lingering.is_empty() => Some(state),
            _ => None,
        }
    }

    /// Whether so many changes linger that another would only blur the picture.
    pub(crate) fn is_blurred(&self) -> bool {
        self.lingering.len() >= 3
    }

    pub(crate) fn ask(&mut self, change: Change, demand: Demand) {
        assert!(self.asked.is_none(), "one change at a time");
        self.asked = Some((change, demand));
    }

    /// Bytes of frames it may take, at most: every segment of every possible state, each with its head and the rest of
    /// two pages.
    pub(crate) fn stored_max(&self) -> u64 {
        let mut segments = BTreeMap::new();
        for state in self.possible() {
            let committed = state.committed.into_iter().flat_map(|committed| committed.segments);
            for segment in committed.chain(state.staged.into_values()) {
                segments.insert(segment.tag, segment.len);
            }
        }
        segments.values().map(|len| len + len / 1000 + 2 * 4096).sum()
    }

    /// An answer to what was asked.
    pub(crate) fn answer(&mut self, answer: Answer) -> Result<(), Violation> {
        let (change, demand) = self.asked.take().expect("asked before answered");
        let after = |state: State| state.after(&change, demand);
        let states: Vec<State> = match answer {
            Answer::NotDone => return Ok(()),
            Answer::Unknown => {
                self.lingering.push((change, demand));
                return Ok(());
            }
            Answer::Refused => {
                self.possible().into_iter().filter(|state| after(state.clone()).is_none()).collect()
            }
            Answer::Done(etag) => {
                self.check_etag(etag)?;
                let mut changed: Vec<State> =
                    self.possible().into_iter().filter_map(after).collect();
                for committed in changed.iter_mut().filter_map(|state| state.committed.as_mut()) {
                    // Staging leaves the committed blob's tag alone.
                    if committed.etag.is_none() && !matches!(change, Change::Stage { .. }) {
                        committed.etag = etag;
                    }
                }
                changed
            }
        };
        let about = || format!("{answer:?} to {change:?} if {demand:?} fits none of");
        self.narrow(states, about)
    }

    fn check_etag(&mut self, etag: Option<Etag>) -> Result<(), Violation> {
        let Some(etag) = etag else { return Ok(()) };
        if self.seen.contains(&etag) {
            return Err(format!("the tag {etag} was given twice"));
        }
        self.seen.push(etag);
        Ok(())
    }

    /// The process is gone, and with it what was on its way: it happened, or it never will.
    pub(crate) fn cut_off(&mut self) {
        self.lingering.extend(self.asked.take());
        self.states = self.possible();
        self.lingering.clear();
    }

    /// Something was seen; only states in which `fits` remain.
    pub(crate) fn see(
        &mut self,
        what: &str,
        fits: impl Fn(&mut State) -> bool,
    ) -> Result<(), Violation> {
        let mut states = self.possible();
        states.retain_mut(fits);
        self.narrow(states, || format!("saw {what}, possible were only"))
    }

    /// The states with what lingers done or not.
    fn possible(&self) -> Vec<State> {
        let mut states = self.states.clone();
        for (change, demand) in &self.lingering {
            for after in states.clone().iter().filter_map(|state| state.after(change, *demand)) {
                if !states.contains(&after) {
                    states.push(after);
                }
            }
        }
        states
    }

    fn narrow(
        &mut self,
        states: Vec<State>,
        about: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if states.is_empty() {
            return Err(format!("{} {:?}", about(), self.possible()));
        }
        self.states.clear();
        for state in states {
            if !self.states.contains(&state) {
                self.states.push(state);
            }
        }
        Ok(())
    }
}
