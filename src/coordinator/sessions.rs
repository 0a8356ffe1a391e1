//! Open sessions and when they end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use super::api::Error;
use super::api::Session;

#[derive(Clone, Copy, Debug)]
struct Lease {
    ttl: Duration,
    /// When it ends, in monotonic time.
    deadline: Duration,
}

#[derive(Debug, Default)]
struct Table {
    issued: u64,
    leases: BTreeMap<Session, Lease>,
}

/// The sessions of one open store. The next open of the store ends them all.
#[derive(Debug)]
pub(super) struct Sessions {
    /// The upper half of every id, so that an id of an earlier open never names a session of this
    /// one.
    generation: u32,
    table: Mutex<Table>,
}

impl Sessions {
    pub(super) fn new(generation: u32) -> Self {
        Self { generation, table: Mutex::new(Table::default()) }
    }

    /// Opens a session that ends at `now + ttl`.
    pub(super) fn open(&self, now: Duration, ttl: Duration) -> Session {
        let mut table = self.lock();
        table.issued += 1;
        let session = Session(u64::from(self.generation) << 32 | table.issued);
        table.leases.insert(session, Lease { ttl, deadline: now.saturating_add(ttl) });
        session
    }

    /// Moves the end of a session to `now + ttl`, unless it has ended.
    pub(super) fn keep_alive(&self, now: Duration, session: Session) -> Result<(), Error> {
        let mut table = self.lock();
        let lease = table.leases.get_mut(&session).filter(|lease| lease.deadline > now);
        let lease = lease.ok_or(Error::SessionEnded)?;
        lease.deadline = now.saturating_add(lease.ttl);
        Ok(())
    }

    /// Whether a session is open.
    pub(super) fn is_open(&self, now: Duration, session: Session) -> bool {
        self.lock().leases.get(&session).is_some_and(|lease| lease.deadline > now)
    }

    /// Removes a session. Returns whether it was open or expired and not yet taken.
    pub(super) fn close(&self, session: Session) -> bool {
        self.lock().leases.remove(&session).is_some()
    }

    /// Removes and returns the expired sessions.
    pub(super) fn take_expired(&self, now: Duration) -> Vec<Session> {
        let mut table = self.lock();
        let over: Vec<Session> = table
            .leases
            .iter()
            .filter(|(_, lease)| lease.deadline <= now)
            .map(|(session, _)| *session)
            .collect();
        for session in &over {
            table.leases.remove(session);
        }
        over
    }

    /// When the next session ends.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.lock().leases.values().map(|lease| lease.deadline).min()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
