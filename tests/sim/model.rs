//! The reference: what a blob may be, given every answer so far.
//!
//! A change whose answer never came may or may not have happened, so a blob is a set of possible states. An answer or a
//! read that fits none of them is a broken promise; one that fits some rules the others out, because what was once seen
//! must stay (I1, I6): for good after a restart, before it but for changes still on their way.
//!
//! `state.rs` says what a change (`change.rs`) makes of one state, `content.rs` what blobs hold, `lease.rs`, `tier.rs` and
//! `when.rs` what time decides.

use blockyard::index::Leased;
use blockyard::types::Etag;
use blockyard::types::Timestamp;

use crate::change::Change;
use crate::change::Demand;
use crate::content::Body;
use crate::lease;
use crate::seeds::Violation;
use crate::state::Outcomes;
use crate::state::State;
use crate::when::When;

/// How a change was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done(Done),
    /// Not done, because of what the blob is.
    Refused,
    /// Not done, for reasons that are not the blob's.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// What an answer to a change tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) etag: Option<Etag>,
    /// When it was done, exactly.
    pub(crate) at: Option<Timestamp>,
    pub(crate) more: More,
}

/// What only some changes tell.
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

/// A change that was asked for.
#[derive(Clone, Debug)]
struct Asked {
    change: Change,
    demand: Demand,
    when: When,
}

/// A blob.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    states: Vec<State>,
    /// Not yet answered.
    asked: Option<Asked>,
    /// Answered with "nobody knows": may take effect at any time until the process is gone, or never.
    lingering: Vec<Asked>,
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

/// States of a blob between which changes still tell.
const STATES_MAX: usize = 64;

impl Blob {
    /// The state, when only one is possible.
    pub(crate) fn known(&self) -> Option<&State> {
        match self.states.as_slice() {
            [state] if self.lingering.is_empty() => Some(state),
            _ => None,
        }
    }

    /// What it holds, when that is sure though a lease or tier may not be.
    pub(crate) fn body(&self) -> Option<&Body> {
        let body = |state: &State| state.committed.as_ref().map(|committed| committed.body.clone());
        let first = self.states.first()?;
        let sure =
            self.lingering.is_empty() && self.states.iter().all(|state| body(state) == body(first));
        first.committed.as_ref().map(|committed| &committed.body).filter(|_| sure)
    }

    /// One of the states it may be in: to draw changes by.
    pub(crate) fn likely(&self) -> &State {
        self.states.last().expect("a blob is in some state")
    }

    /// Whether so many changes linger, or states are possible, that another would only blur the picture.
    pub(crate) fn is_blurred(&self) -> bool {
        self.lingering.len() >= 3 || self.states.len() > STATES_MAX
    }

    pub(crate) fn ask(&mut self, change: Change, demand: Demand, now: Timestamp) {
        assert!(self.asked.is_none(), "one change at a time");
        self.asked = Some(Asked { change, demand, when: When::since(now) });
    }

    /// An answer to what was asked, no later than `until`.
    pub(crate) fn answer(&mut self, answer: Answer, until: Timestamp) -> Result<(), Violation> {
        let mut asked = self.asked.take().expect("asked before answered");
        let states: Vec<State> = match answer {
            Answer::NotDone => return Ok(()),
            Answer::Unknown => {
                self.lingering.push(asked);
                return Ok(());
            }
            Answer::Refused => {
                asked.when.to = until;
                let mut states = self.possible();
                states.retain(|state| after(state, &asked).refused);
                states
            }
            Answer::Done(done) => {
                asked.when.to = until;
                // One that was sealed before tells of then.
                if let Some(at) = done.at.filter(|_| !matches!(asked.change, Change::Seal { .. })) {
                    if !asked.when.contains(at) {
                        return Err(format!("{asked:?} was done at {at:?}"));
                    }
                    asked.when = When::at(at);
                }
                self.check_etag(&asked.change, done.etag)?;
                let mut changed: Vec<State> =
                    self.possible().iter().flat_map(|state| after(state, &asked).done).collect();
                changed.retain_mut(|state| settle(state, &asked.change, done));
                changed
            }
        };
        self.narrow(states, || format!("{answer:?} to {asked:?} fits none of"))
    }

    fn check_etag(&mut self, change: &Change, etag: Option<Etag>) -> Result<(), Violation> {
        let Some(etag) = etag.filter(|_| change.renews_etag()) else { return Ok(()) };
        if self.seen.contains(&etag) {
            return Err(format!("the tag {etag} was given twice"));
        }
        self.seen.push(etag);
        Ok(())
    }

    /// The process is gone, no later than `until`, and with it what was on its way: it happened, or it never will.
    pub(crate) fn cut_off(&mut self, until: Timestamp) {
        self.lingering.extend(self.asked.take());
        self.lingering.iter_mut().for_each(|asked| asked.when.to = until);
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
    pub(crate) fn possible(&self) -> Vec<State> {
        let mut states = self.states.clone();
        for asked in &self.lingering {
            for state in states.clone().iter().flat_map(|state| after(state, asked).done) {
                if !states.contains(&state) {
                    states.push(state);
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

fn after(state: &State, asked: &Asked) -> Outcomes {
    state.after(&asked.change, asked.demand, asked.when)
}

/// Whether the answer tells of this state; what it tells is then known.
fn settle(state: &mut State, change: &Change, done: Done) -> bool {
    let renewed = change.renews_etag() || matches!(change, Change::Seal { .. });
    if let Some(committed) = state.committed.as_mut().filter(|_| renewed) {
        if committed.etag.is_some() && committed.etag != done.etag {
            return false;
        }
        committed.etag = done.etag;
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
