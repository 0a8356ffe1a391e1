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
//! `state.rs` has the effect of a change (`change.rs`) on one state, `content.rs` the content of
//! blobs, `lease.rs`, `tier.rs` and `when.rs` what depends on time.

use std::collections::BTreeMap;
use std::fmt;

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
struct Told {
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
    told: Vec<Told>,
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
            told: Vec::new(),
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
const TOLD_MAX: usize = 10;

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
        self.lingering.is_empty() && !self.is_changing() && self.told.is_empty()
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
            || self.told.len() + self.open.len() >= TOLD_MAX
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
        if !self.told.is_empty() {
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
        self.told.push(Told { began: ticket.0, ended, what, fits });
        self.settle()
    }

    /// When no request is in progress any more: finds the orders in which all answers are possible
    /// (I6, I8: each takes effect at one moment between its request and its answer), and keeps the
    /// final states of these orders.
    fn settle(&mut self) -> Result<(), Violation> {
        if !self.open.is_empty() || self.told.is_empty() {
            return Ok(());
        }
        let told = std::mem::take(&mut self.told);
        // For each set of ordered answers, the possible states after them. Only the states are kept
        // and not the orders that lead to them, so the number of sets bounds the work, not the
        // number of orders.
        let mut reached = BTreeMap::from([(0_u64, self.with_lingering(self.states.clone()))]);
        for _ in 0..told.len() {
            let mut next: BTreeMap<u64, Vec<Possible>> = BTreeMap::new();
            for (placed, states) in &reached {
                let left = || (0..told.len()).filter(|n| placed & (1 << n) == 0);
                let first_end = left().map(|n| told[n].ended).min().unwrap_or_default();
                for n in left().filter(|n| told[*n].began < first_end) {
                    let found = next.entry(placed | 1 << n).or_default();
                    for one in states {
                        for state in (told[n].fits)(&one.state) {
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
            let about: Vec<&str> = told.iter().map(|told| told.what.as_str()).collect();
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

/// Whether the answer fits this state. If so, the state takes over what the answer shows.
fn settle(state: &mut State, change: &Change, done: Done) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Segment;
    use crate::state::Marks;

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    fn put(tag: u64) -> Change {
        let body = Body::Blocks(vec![Segment { id: None, tag, len: 8 }]);
        Change::Make { body, marks: Marks::default() }
    }

    fn done(etag: &str) -> Answer {
        Answer::Done(Done { etag: Etag::parse(etag), at: None, more: More::Nothing })
    }

    /// A read that shows this content.
    fn shows(tag: Option<u64>) -> impl Fn(&mut State) -> bool + 'static {
        move |state| {
            let body = state.committed.as_ref().map(|committed| &committed.body);
            body.and_then(|body| body.segments().first()).map(|one| one.tag) == tag
        }
    }

    #[test]
    fn changes_that_overlap_may_come_in_either_order_and_a_read_then_decides_it() {
        for last in [1, 2] {
            let mut blob = Blob::default();
            let first = blob.ask(put(1), Demand::default(), at(1));
            let second = blob.ask(put(2), Demand::default(), at(1));
            blob.answer(second, done("0x2"), at(9)).unwrap();
            blob.answer(first, done("0x1"), at(9)).unwrap();
            assert!(blob.known().is_none(), "nobody knows which came last");
            blob.see("it", shows(Some(last))).unwrap();
            blob.see("it again", shows(Some(3 - last))).unwrap_err();
        }
    }

    #[test]
    fn a_read_that_overlaps_a_change_shows_either_side_of_it_and_one_after_it_does_not() {
        for seen in [None, Some(1)] {
            let mut blob = Blob::default();
            let change = blob.ask(put(1), Demand::default(), at(1));
            let read = blob.look();
            blob.seen_by(read, "it", shows(seen)).unwrap();
            blob.answer(change, done("0x1"), at(9)).unwrap();
        }
        let mut blob = Blob::default();
        let change = blob.ask(put(1), Demand::default(), at(1));
        let other = blob.look();
        blob.answer(change, done("0x1"), at(9)).unwrap();
        let late = blob.look();
        blob.seen_by(late, "nothing", shows(None)).unwrap();
        // Now no request is in progress: the late read was right at no moment.
        blob.looked_away(other).unwrap_err();
    }

    #[test]
    fn two_reads_do_not_see_a_change_come_and_go() {
        let mut blob = Blob::default();
        let change = blob.ask(put(1), Demand::default(), at(1));
        for seen in [Some(1), None] {
            let read = blob.look();
            blob.seen_by(read, "it", shows(seen)).unwrap();
        }
        blob.answer(change, done("0x1"), at(9)).unwrap_err();
    }

    #[test]
    fn what_nobody_answered_may_happen_until_the_process_is_gone() {
        let mut blob = Blob::default();
        let lost = blob.ask(put(1), Demand::default(), at(1));
        blob.answer(lost, Answer::Unknown, at(2)).unwrap();
        blob.see("nothing", shows(None)).unwrap();
        blob.see("it", shows(Some(1))).unwrap();
        let mut blob = Blob::default();
        let _cut = blob.ask(put(1), Demand::default(), at(1));
        blob.cut_off(at(2)).unwrap();
        blob.see("nothing", shows(None)).unwrap();
        blob.see("it", shows(Some(1))).unwrap_err();
    }

    /// A log that is replayed twice must be detected (I14).
    #[test]
    fn what_nobody_answered_happens_once_at_most() {
        let append = |tag| {
            let segment = Segment { id: None, tag, len: 8 };
            Change::Append { segment, position: None, len_max: None }
        };
        let count = |wanted: usize| {
            move |state: &mut State| {
                let body = state.committed.as_ref().map(|committed| &committed.body);
                body.is_some_and(|body| body.segments().len() == wanted)
            }
        };
        let mut blob = Blob::default();
        let made = blob.ask(
            Change::Make {
                body: Body::Appended { segments: Vec::new(), sealed: false },
                marks: Marks::default(),
            },
            Demand::default(),
            at(1),
        );
        blob.answer(made, done("0x1"), at(2)).unwrap();
        let lost = blob.ask(append(7), Demand::default(), at(3));
        blob.answer(lost, Answer::Unknown, at(4)).unwrap();
        let look = blob.look();
        blob.seen_by(look, "one", count(1)).unwrap();
        let look = blob.look();
        blob.seen_by(look, "two", count(2)).unwrap_err();
    }

    /// Several lingering changes may happen between two answers, in any order.
    #[test]
    fn what_lingers_happens_in_any_order() {
        for last in [1, 2] {
            let mut blob = Blob::default();
            for tag in [1, 2] {
                let lost = blob.ask(put(tag), Demand::default(), at(1));
                blob.answer(lost, Answer::Unknown, at(2)).unwrap();
            }
            let look = blob.look();
            blob.seen_by(look, "either", |_| true).unwrap();
            blob.see("the other", shows(Some(3 - last))).unwrap();
            blob.see("the last", shows(Some(last))).unwrap();
            blob.see("the other again", shows(Some(3 - last))).unwrap_err();
        }
    }

    /// The number of states grows with what answers can distinguish, not with the orders of
    /// answers.
    #[test]
    fn answers_that_overlap_while_changes_linger_leave_few_states() {
        let mut blob = Blob::default();
        for tag in 1..=3 {
            let lost = blob.ask(put(tag), Demand::default(), at(1));
            blob.answer(lost, Answer::Unknown, at(2)).unwrap();
        }
        let looks: Vec<Ticket> = (0..9).map(|_| blob.look()).collect();
        let last = blob.ask(put(4), Demand::default(), at(3));
        for look in looks {
            blob.seen_by(look, "anything", |_| true).unwrap();
        }
        blob.answer(last, done("0x4"), at(9)).unwrap();
        assert!(blob.states.len() <= 16, "{} states", blob.states.len());
    }
}
