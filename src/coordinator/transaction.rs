//! The effect of a transaction on rows, the same in the embedded and the simulated store.

use std::convert::Infallible;

use bytes::Bytes;

use super::api::Compare;
use super::api::Event;
use super::api::Op;
use super::api::Revision;
use super::api::Session;
use super::api::TxnReply;

/// The most conditions, and the most changes, of one transaction. More are a bug of the caller.
pub(super) const TXN_ITEMS_MAX: usize = 128;

/// The stored data of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The revision of the transaction that wrote it.
    pub mod_revision: Revision,
    /// The session with which it is removed.
    pub session: Option<Session>,
    /// The value.
    pub value: Bytes,
}

/// The rows of a store, for a transaction.
pub(super) trait Rows {
    /// Why the store failed.
    type Error;

    /// Reads a row.
    fn get(&self, key: &[u8]) -> Result<Option<Row>, Self::Error>;

    /// Writes a row.
    fn put(&mut self, key: &Bytes, row: Row) -> Result<(), Self::Error>;

    /// Removes a row. Returns whether it existed.
    fn remove(&mut self, key: &[u8]) -> Result<bool, Self::Error>;

    /// The keys that were written with `session`, in byte order.
    fn keys_of(&self, session: Session) -> Result<Vec<Bytes>, Self::Error>;
}

/// The effect of a transaction.
#[derive(Debug)]
pub(super) struct Effect {
    /// The result for the caller.
    pub reply: TxnReply,
    /// The store's revision after it.
    pub revision: Revision,
    /// The changes for watches.
    pub events: Vec<Event>,
}

/// Applies `then` at the revision after `revision` if all of `when` holds. A transaction that
/// changes no row does not change the revision.
pub(super) fn apply<R: Rows>(
    rows: &mut R,
    revision: Revision,
    when: &[Compare],
    then: &[Op],
) -> Result<Effect, R::Error> {
    assert!(when.len() <= TXN_ITEMS_MAX, "{} conditions in one transaction", when.len());
    assert!(then.len() <= TXN_ITEMS_MAX, "{} changes in one transaction", then.len());
    for compare in when {
        if !holds(rows, compare)? {
            return Ok(Effect {
                reply: TxnReply::Rejected(revision),
                revision,
                events: Vec::new(),
            });
        }
    }
    let next = Revision(revision.0 + 1);
    let mut events = Vec::with_capacity(then.len());
    for op in then {
        let (key, value) = match op {
            Op::Put(key, value) => {
                put(rows, key, value, next, None)?;
                (key, Some(value))
            }
            Op::PutWithSession(key, value, session) => {
                put(rows, key, value, next, Some(*session))?;
                (key, Some(value))
            }
            Op::Delete(key) if rows.remove(key)? => (key, None),
            Op::Delete(_) => continue,
        };
        events.push(Event { key: key.clone(), value: value.cloned(), revision: next });
    }
    let revision = if events.is_empty() { revision } else { next };
    Ok(Effect { reply: TxnReply::Committed(revision), revision, events })
}

/// Removes every key of a session, at one revision.
pub(super) fn end_session<R: Rows>(
    rows: &mut R,
    revision: Revision,
    session: Session,
) -> Result<Effect, R::Error> {
    let next = Revision(revision.0 + 1);
    let mut events = Vec::new();
    for key in rows.keys_of(session)? {
        rows.remove(&key)?;
        events.push(Event { key, value: None, revision: next });
    }
    let revision = if events.is_empty() { revision } else { next };
    Ok(Effect { reply: TxnReply::Committed(revision), revision, events })
}

/// The sessions with which a transaction writes keys.
pub(super) fn sessions_of(then: &[Op]) -> impl Iterator<Item = Session> + '_ {
    then.iter().filter_map(|op| match op {
        Op::PutWithSession(_, _, session) => Some(*session),
        Op::Put(..) | Op::Delete(_) => None,
    })
}

fn holds<R: Rows>(rows: &R, compare: &Compare) -> Result<bool, R::Error> {
    Ok(match compare {
        Compare::ModRevision(key, revision) => {
            rows.get(key)?.is_some_and(|row| row.mod_revision == *revision)
        }
        Compare::Absent(key) => rows.get(key)?.is_none(),
        Compare::Value(key, value) => rows.get(key)?.is_some_and(|row| row.value == *value),
    })
}

fn put<R: Rows>(
    rows: &mut R,
    key: &Bytes,
    value: &Bytes,
    mod_revision: Revision,
    session: Option<Session>,
) -> Result<(), R::Error> {
    rows.put(key, Row { mod_revision, session, value: value.clone() })
}

impl Rows for std::collections::BTreeMap<Bytes, Row> {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Row>, Infallible> {
        Ok(Self::get(self, key).cloned())
    }

    fn put(&mut self, key: &Bytes, row: Row) -> Result<(), Infallible> {
        self.insert(key.clone(), row);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, Infallible> {
        Ok(Self::remove(self, key).is_some())
    }

    fn keys_of(&self, session: Session) -> Result<Vec<Bytes>, Infallible> {
        let owned = self.iter().filter(|(_, row)| row.session == Some(session));
        Ok(owned.map(|(key, _)| key.clone()).collect())
    }
}
