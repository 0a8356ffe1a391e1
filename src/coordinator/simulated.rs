//! The coordinator of a simulation: in memory, deterministic, with faults. It survives simulated
//! crashes as a file would.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::env::Env;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Event;
use super::api::Op;
use super::api::Reason;
use super::api::Revision;
use super::api::Session;
use super::api::Snapshot;
use super::api::TxnReply;
use super::api::Versioned;
use super::api::Watch;
use super::history::History;
use super::history::HistoryWatch;
use super::sessions::Sessions;
use super::transaction;
use super::transaction::Effect;
use super::transaction::Row;

/// A fault of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not applied, and the caller gets [`Error::Unavailable`].
    Unavailable,
    /// As [`Self::Unavailable`], because the disk is full.
    Full,
    /// Another transaction commits before it, and a condition no longer holds.
    Outrun,
    /// It is applied, and the caller gets [`Error::Ambiguous`].
    AmbiguousApplied,
    /// It is not applied, and the caller gets [`Error::Ambiguous`].
    AmbiguousLost,
    /// As [`Self::AmbiguousApplied`], and the next call is refused.
    AppliedThenAway,
    /// As [`Self::AmbiguousLost`], and the next call is refused.
    LostThenAway,
    /// As [`Self::AmbiguousLost`], and the disk is full from then on.
    LostThenFull,
    /// The call panics, and the transaction is not applied.
    Panic,
}

/// The probabilities of random faults. The default has no faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Refused calls, per thousand.
    pub unavailable_per_mille: u64,
    /// Transactions with an ambiguous outcome, per thousand. Half of them are applied.
    pub ambiguous_per_mille: u64,
    /// The longest time that a request takes to the store, and its answer back. The time is random.
    /// With zero, calls do not wait.
    pub delay_max: Duration,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Bytes, Row>,
    revision: Revision,
    /// Whether it was ever opened. From then on it exists, as a file would.
    made: bool,
    /// The number of the current open. Calls of earlier opens are refused.
    generation: u32,
    faults: Faults,
    script: VecDeque<Option<Fault>>,
    /// Whether the next call is refused.
    refuse_next: bool,
    /// Whether every call is refused because the disk is full.
    full: bool,
}

/// The store, which survives a crash. Cheap to clone; clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct SimulatedStore(Arc<Mutex<State>>);

impl SimulatedStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the store as a restarted process does. Earlier opens are cut off and their sessions
    /// end. No acknowledged transaction is lost; one in progress may or may not have been applied.
    #[must_use]
    pub fn open(&self, env: &Env) -> SimulatedCoordinator {
        let mut state = self.lock();
        state.made = true;
        state.generation += 1;
        let mut revision = state.revision;
        let old: Vec<Session> = state.rows.values().filter_map(|row| row.session).collect();
        for session in old {
            let Ok(effect) = transaction::end_session(&mut state.rows, revision, session);
            revision = effect.revision;
        }
        state.revision = revision;
        SimulatedCoordinator {
            store: self.clone(),
            env: env.clone(),
            generation: state.generation,
            history: Arc::new(History::new(revision)),
            sessions: Arc::new(Sessions::new(state.generation)),
        }
    }

    /// Whether it was ever opened, so that it exists, as a file would.
    #[must_use]
    pub fn is_made(&self) -> bool {
        self.lock().made
    }

    /// Cuts every open off, as a crash of the process does. Later calls need a new [`Self::open`].
    pub fn crash(&self) {
        self.lock().generation += 1;
    }

    /// Sets the probabilities of random faults.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Fills or frees its disk. While it is full, reads fail too, as for a file that cannot be
    /// opened again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Plans this fault for the next transaction, after those that are already planned.
    pub fn inject(&self, fault: Fault) {
        self.inject_after(0, fault);
    }

    /// As [`Self::inject`], after this many transactions without a fault.
    pub fn inject_after(&self, transactions: usize, fault: Fault) {
        let mut state = self.lock();
        state.script.extend(std::iter::repeat_n(None, transactions));
        state.script.push_back(Some(fault));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open of a [`SimulatedStore`].
#[derive(Clone, Debug)]
pub struct SimulatedCoordinator {
    store: SimulatedStore,
    env: Env,
    generation: u32,
    history: Arc<History>,
    sessions: Arc<Sessions>,
}

impl SimulatedCoordinator {
    /// Ends expired sessions and returns the state. Fails if the store was opened again since.
    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.store.lock();
        if state.generation != self.generation {
            return Err(refused("this open was cut off"));
        }
        for session in self.sessions.take_expired(self.env.clock.monotonic()) {
            self.end(&mut state, session);
        }
        Ok(state)
    }

    fn end(&self, state: &mut State, session: Session) {
        self.sessions.close(session);
        let Ok(effect) = transaction::end_session(&mut state.rows, state.revision, session);
        self.take(state, effect);
    }

    fn take(&self, state: &mut State, effect: Effect) -> TxnReply {
        state.revision = effect.revision;
        self.history.publish(effect.events);
        effect.reply
    }

    /// Waits as long as a message takes.
    async fn travel(&self) {
        let delay_max = self.store.lock().faults.delay_max;
        if !delay_max.is_zero() {
            let nanos = u64::try_from(delay_max.as_nanos()).unwrap_or(u64::MAX);
            self.env.clock.sleep(Duration::from_nanos(self.env.rand.below(nanos))).await;
        }
    }

    /// Returns the state for a call other than a transaction, unless the call fails by a fault.
    fn may_fail(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.state()?;
        if state.full {
            return Err(full());
        }
        if std::mem::take(&mut state.refuse_next) {
            return Err(refused("for one call"));
        }
        if self.env.rand.below(1000) < state.faults.unavailable_per_mille {
            return Err(refused("by chance"));
        }
        Ok(state)
    }

    fn next_fault(&self, state: &mut State) -> Option<Fault> {
        let faults = state.faults;
        let dice = self.env.rand.below(1000);
        let applied = self.env.rand.below(2) == 0;
        state.script.pop_front().unwrap_or_else(|| {
            if dice < faults.unavailable_per_mille {
                Some(Fault::Unavailable)
            } else if dice < faults.unavailable_per_mille + faults.ambiguous_per_mille {
                Some(if applied { Fault::AmbiguousApplied } else { Fault::AmbiguousLost })
            } else {
                None
            }
        })
    }

    fn apply(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        // The open was cut off while the request was on its way. The caller of a real store could
        // not know whether that was before or after the change.
        let mut state = self.state().map_err(|_| Error::Ambiguous)?;
        if state.full {
            return Err(full());
        }
        let fault = self.next_fault(&mut state);
        match fault {
            Some(Fault::Unavailable) => return Err(refused("by chance")),
            Some(Fault::Full) => return Err(full()),
            Some(Fault::Outrun) => return Ok(TxnReply::Rejected(state.revision)),
            Some(Fault::AmbiguousLost) => return Err(Error::Ambiguous),
            Some(Fault::Panic) => {
                drop(state);
                panic!("planned");
            }
            Some(Fault::LostThenAway) => {
                state.refuse_next = true;
                return Err(Error::Ambiguous);
            }
            Some(Fault::LostThenFull) => {
                state.full = true;
                return Err(Error::Ambiguous);
            }
            Some(Fault::AppliedThenAway) => state.refuse_next = true,
            Some(Fault::AmbiguousApplied) | None => {}
        }
        let now = self.env.clock.monotonic();
        if !transaction::sessions_of(then).all(|session| self.sessions.is_open(now, session)) {
            return Err(Error::SessionEnded);
        }
        let revision = state.revision;
        let Ok(effect) = transaction::apply(&mut state.rows, revision, when, then);
        let reply = self.take(&mut state, effect);
        if fault.is_some() { Err(Error::Ambiguous) } else { Ok(reply) }
    }
}

fn full() -> Error {
    Error::Unavailable { reason: Reason::full("its disk is full".to_owned()) }
}

fn refused(reason: &str) -> Error {
    Error::Unavailable { reason: reason.into() }
}

#[async_trait]
impl Coordinator for SimulatedCoordinator {
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        self.travel().await;
        let state = self.may_fail()?;
        Ok(state.rows.get(key).map(versioned))
    }

    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        self.travel().await;
        let state = self.may_fail()?;
        let from = Bytes::copy_from_slice(prefix);
        let entries = state
            .rows
            .range(from..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, row)| (key.clone(), versioned(row)))
            .collect();
        Ok(Snapshot { revision: state.revision, entries })
    }

    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        drop(self.state()?);
        self.travel().await;
        let outcome = self.apply(when, then);
        self.travel().await;
        match self.state() {
            Ok(_) => outcome,
            Err(_) => Err(Error::Ambiguous),
        }
    }

    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error> {
        drop(self.may_fail()?);
        let watch = HistoryWatch::new(&self.history, prefix, after)?;
        Ok(Box::new(SimulatedWatch { coordinator: self.clone(), watch }))
    }

    async fn open_session(&self, ttl: Duration) -> Result<Session, Error> {
        self.travel().await;
        let _state = self.may_fail()?;
        Ok(self.sessions.open(self.env.clock.monotonic(), ttl))
    }

    async fn keep_alive(&self, session: Session) -> Result<(), Error> {
        self.travel().await;
        let _state = self.may_fail()?;
        self.sessions.keep_alive(self.env.clock.monotonic(), session)
    }

    async fn close_session(&self, session: Session) -> Result<(), Error> {
        self.travel().await;
        let mut state = self.may_fail()?;
        self.end(&mut state, session);
        Ok(())
    }
}

fn versioned(row: &Row) -> Versioned {
    Versioned { value: row.value.clone(), mod_revision: row.mod_revision }
}

/// A watch that also ends expired sessions while there are no calls, because no task does that
/// here.
#[derive(Debug)]
struct SimulatedWatch {
    coordinator: SimulatedCoordinator,
    watch: HistoryWatch,
}

#[async_trait]
impl Watch for SimulatedWatch {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            drop(self.coordinator.state()?);
            let deadline = self.coordinator.sessions.next_deadline();
            let clock = &self.coordinator.env.clock;
            let expiry = async {
                match deadline {
                    Some(at) => clock.sleep(at.saturating_sub(clock.monotonic())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = self.watch.next() => return event,
                () = expiry => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
