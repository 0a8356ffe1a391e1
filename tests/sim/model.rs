//! The reference model: the possible states of a blob, given all answers so far.
//!
//! A change without an answer may or may not have happened, so a blob has a set of possible states.
//! An answer or a read that fits none of them is a violation. One that fits some of them excludes
//! the others, because what was once seen must stay (I1, I6): permanently after a restart; before
//! it, except for changes that are still in progress.
//!
//! Clients share some names. Overlapping answers are compared with all orders that their times
//! allow.
//!
//! `answer.rs` has the answers, `state.rs` the effect of a change (`change.rs`) on one state,
//! `content.rs` the content of blobs, `lease.rs`, `tier.rs` and `when.rs` what depends on time.

use std::collections::BTreeMap;
use std::fmt;

use blockyard::types::Etag;
use blockyard::types::Timestamp;

use crate::answer::Answer;
use crate::answer::settle;
use crate::change::Change;
use crate::change::Demand;
use crate::content::Body;
use crate::seeds::Violation;
use crate::state::Outcomes;
use crate::state::State;
use crate::when::When;

/// A requested change.
#[derive(Clone, Debug)]
struct Asked {
    change: Change,
    demand: Demand,
    when: When,
}

/// A request in progress. A shared name may have several at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The possible states after an answer, of a blob that was in this state. Empty if the answer does
/// not fit.
type Fits<'a> = Box<dyn Fn(&State) -> Vec<State> + 'a>;

/// An answer that came while other requests were in progress. It shows the state at some moment
/// between its two times.
struct Answered {
    began: u64,
    ended: u64,
    what: String,
    fits: Fits<'static>,
}

/// A state, and a bit for each lingering change that has happened before it. Each change happens at
/// most once.
#[derive(Clone, Debug, PartialEq)]
struct Possible {
    state: State,
    happened: u64,
}

impl Possible {
    fn of(state: State) -> Self {
        Self { state, happened: 0 }
    }

    /// Whether every future of `other` is also a future of this one. No lingering change has to
    /// happen, so the same state after fewer of them has all futures of the other.
    fn covers(&self, other: &Self) -> bool {
        self.happened & !other.happened == 0 && self.state == other.state
    }
}

/// Adds one unless another one covers it. Possibilities that an answer could distinguish are never
/// merged.
fn add(all: &mut Vec<Possible>, one: Possible) -> bool {
    if all.iter().any(|known| known.covers(&one)) {
        return false;
    }
    all.retain(|known| !one.covers(known));
    all.push(one);
    true
}

/// A blob.
pub(crate) struct Blob {
    states: Vec<Possible>,
    /// Requests without an answer yet. Reads have no change.
    open: BTreeMap<Ticket, Option<Asked>>,
    /// Answers since the last moment without a request in progress.
    answered: Vec<Answered>,
    /// Changes with an unknown outcome: they may take effect at any time until the process ends, or
    /// never.
    lingering: Vec<Asked>,
    seen: Vec<Etag>,
    /// Counts requests and answers.
    events: u64,
}

impl Default for Blob {
    fn default() -> Self {
        Self {
            states: vec![Possible::of(State::default())],
            open: BTreeMap::new(),
            answered: Vec::new(),
            lingering: Vec::new(),
            seen: Vec::new(),
            events: 0,
        }
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("states", &self.states).finish_non_exhaustive()
    }
}

/// With more possible states than this, a blob is not changed further.
const STATES_MAX: usize = 64;
/// The most overlapping answers whose orders are searched. The number of orders grows fast.
const ANSWERED_MAX: usize = 10;

impl Blob {
    /// The state, if only one is possible.
    pub(crate) fn known(&self) -> Option<&State> {
        match self.states.as_slice() {
            [one] if self.is_settled() => Some(&one.state),
            _ => None,
        }
    }

    /// The content, if it is the same in all possible states.
    pub(crate) fn body(&self) -> Option<&Body> {
        let body = |state: &State| state.committed.as_ref().map(|committed| committed.body.clone());
        let first = &self.states.first()?.state;
        let sure =
            self.is_settled() && self.states.iter().all(|one| body(&one.state) == body(first));
        first.committed.as_ref().map(|committed| &committed.body).filter(|_| sure)
    }

    /// Whether no change may happen to it now.
    fn is_settled(&self) -> bool {
        self.lingering.is_empty() && !self.is_changing() && self.answered.is_empty()
    }

    /// Whether a change of it is in progress.
    pub(crate) fn is_changing(&self) -> bool {
        self.open.values().any(Option::is_some)
    }

    /// One of the possible states, for the choice of changes.
    pub(crate) fn likely(&self) -> &State {
        &self.states.last().expect("a blob is in some state").state
    }

    /// Whether too many changes linger, or too many states are possible, for another change to be
    /// useful.
    pub(crate) fn is_blurred(&self) -> bool {
        self.lingering.len() >= 3
            || self.states.len() > STATES_MAX
            || self.answered.len() + self.open.len() >= ANSWERED_MAX
    }

    /// Notes a requested change.
    pub(crate) fn ask(&mut self, change: Change, demand: Demand, now: Timestamp) -> Ticket {
        self.begin(Some(Asked { change, demand, when: When::since(now) }))
    }

    /// Notes a read before it is sent.
    pub(crate) fn look(&mut self) -> Ticket {
        self.begin(None)
    }

    fn begin(&mut self, asked: Option<Asked>) -> Ticket {
        let ticket = Ticket(self.event());
        self.open.insert(ticket, asked);
        ticket
    }

    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Notes the answer to a request, which took effect no later than `until`.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        until: Timestamp,
    ) -> Result<(), Violation> {
        let asked = self.open.remove(&ticket).flatten();
        let mut asked = asked.expect("asked before answered");
        let what = format!("{answer:?} to {asked:?}");
        let fits: Fits<'static> = match answer {
            Answer::NotDone => return self.settle(),
            Answer::Unknown => {
                self.lingering.push(asked);
                return self.settle();
            }
            Answer::Refused => {
                asked.when.to = until;
                Box::new(move |state| {
                    if after(state, &asked).refused { vec![state.clone()] } else { Vec::new() }
                })
            }
            Answer::Done(done) => {
                asked.when.to = until;
                // The answer for a blob that was already sealed has the time of that seal.
                // So has that of a second completion.
                let old = matches!(asked.change, Change::Seal { .. } | Change::Complete { .. });
                if let Some(at) = done.at.filter(|_| !old) {
                    if !asked.when.contains(at) {
                        return Err(format!("{asked:?} was done at {at:?}"));
                    }
                    asked.when = When::at(at);
                }
                self.check_etag(&asked.change, done.etag)?;
                Box::new(move |state| {
                    let mut changed = after(state, &asked).done;
                    changed.retain_mut(|state| settle(state, &asked.change, done));
                    changed
                })
            }
        };
        self.tell(ticket, what, fits)
    }

    fn check_etag(&mut self, change: &Change, etag: Option<Etag>) -> Result<(), Violation> {
        let Some(etag) = etag.filter(|_| change.renews_etag()) else { return Ok(()) };
        if self.seen.contains(&etag) {
            return Err(format!("the tag {etag} was given twice"));
        }
        self.seen.push(etag);
        Ok(())
    }

    /// Notes that the process has ended, no later than `until`. Requests in progress have happened
    /// or never will.
    pub(crate) fn cut_off(&mut self, until: Timestamp) -> Result<(), Violation> {
        self.lingering.extend(std::mem::take(&mut self.open).into_values().flatten());
        self.lingering.iter_mut().for_each(|asked| asked.when.to = until);
        self.settle()?;
        self.states = self.possible().into_iter().map(Possible::of).collect();
        self.lingering.clear();
        Ok(())
    }

    /// Notes what a client saw of a blob that no request changes at the time. Only states that fit
    /// remain. While the read of another client overlaps a change, no state is excluded.
    pub(crate) fn see(
        &mut self,
        what: &str,
        fits: impl Fn(&mut State) -> bool,
    ) -> Result<(), Violation> {
        assert!(!self.is_changing(), "somebody changes it meanwhile");
        if !self.answered.is_empty() {
            return Ok(());
        }
        let mut states = Vec::new();
        for mut one in self.with_lingering(self.states.clone()) {
            if fits(&mut one.state) {
                add(&mut states, one);
            }
        }
        if states.is_empty() {
            return Err(format!("saw {what}, possible were only {:?}", self.possible()));
        }
        self.states = states;
        Ok(())
    }

    /// Notes the result of a read: it was true at some time since [`Self::look`].
    pub(crate) fn seen_by(
        &mut self,
        ticket: Ticket,
        what: &str,
        fits: impl Fn(&mut State) -> bool + 'static,
    ) -> Result<(), Violation> {
        self.open.remove(&ticket);
        let fits = move |state: &State| {
            let mut state = state.clone();
            if fits(&mut state) { vec![state] } else { Vec::new() }
        };
        self.tell(ticket, format!("saw {what},"), Box::new(fits))
    }

    /// Notes that a read had no result.
    pub(crate) fn looked_away(&mut self, ticket: Ticket) -> Result<(), Violation> {
        self.open.remove(&ticket);
        self.settle()
    }

    fn tell(&mut self, ticket: Ticket, what: String, fits: Fits<'static>) -> Result<(), Violation> {
        let ended = self.event();
        self.answered.push(Answered { began: ticket.0, ended, what, fits });
        self.settle()
    }

    /// When no request is in progress any more: finds the orders in which all answers are possible
    /// (I6, I8: each takes effect at one moment between its request and its answer), and keeps the
    /// final states of these orders.
    fn settle(&mut self) -> Result<(), Violation> {
        if !self.open.is_empty() || self.answered.is_empty() {
            return Ok(());
        }
        let answered = std::mem::take(&mut self.answered);
        // For each set of ordered answers, the possible states after them. Only the states are kept
        // and not the orders that lead to them, so the number of sets bounds the work, not the
        // number of orders.
        let mut reached = BTreeMap::from([(0_u64, self.with_lingering(self.states.clone()))]);
        for _ in 0..answered.len() {
            let mut next: BTreeMap<u64, Vec<Possible>> = BTreeMap::new();
            for (placed, states) in &reached {
                let left = || (0..answered.len()).filter(|n| placed & (1 << n) == 0);
                let first_end = left().map(|n| answered[n].ended).min().unwrap_or_default();
                for n in left().filter(|n| answered[*n].began < first_end) {
                    let found = next.entry(placed | 1 << n).or_default();
                    for one in states {
                        for state in (answered[n].fits)(&one.state) {
                            add(found, Possible { state, ..*one });
                        }
                    }
                }
            }
            reached = next
                .into_iter()
                .map(|(placed, states)| (placed, self.with_lingering(states)))
                .filter(|(_, states)| !states.is_empty())
                .collect();
        }
        let states = reached.into_values().next().unwrap_or_default();
        if states.is_empty() {
            let about: Vec<&str> = answered.iter().map(|answered| answered.what.as_str()).collect();
            let about = about.join("\n    and ");
            return Err(format!("{about} fits none of {:?}", self.possible()));
        }
        self.states = states;
        Ok(())
    }

    /// The possible states, with each lingering change done or not.
    pub(crate) fn possible(&self) -> Vec<State> {
        let states = self.with_lingering(self.states.clone());
        let mut states: Vec<State> = states.into_iter().map(|one| one.state).collect();
        for asked in self.open.values().flatten() {
            let done = states.iter().flat_map(|state| after(state, asked).done);
            let done: Vec<State> = done.collect();
            states.extend(done);
        }
        dedup(&mut states);
        states
    }

    /// The possible states if lingering changes happen now, each at most once, in any order.
    fn with_lingering(&self, states: Vec<Possible>) -> Vec<Possible> {
        let mut all = Vec::new();
        let mut fresh = states;
        while let Some(one) = fresh.pop() {
            if !add(&mut all, one.clone()) {
                continue;
            }
            for (number, asked) in self.lingering.iter().enumerate() {
                let bit = 1 << number;
                if one.happened & bit == 0 {
                    let happened = one.happened | bit;
                    let done = after(&one.state, asked).done.into_iter();
                    fresh.extend(done.map(|state| Possible { state, happened }));
                }
            }
        }
        all
    }
}

fn dedup(states: &mut Vec<State>) {
    let mut kept: Vec<State> = Vec::new();
    for state in states.drain(..) {
        if !kept.contains(&state) {
            kept.push(state);
        }
    }
    *states = kept;
}

fn after(state: &State, asked: &Asked) -> Outcomes {
    state.after(&asked.change, asked.demand, asked.when)
}

#[cfg(test)]
mod tests;
