//! The table of nodes, as every node follows it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use bytes::Bytes;
use tokio::sync::watch;

use super::record::NodeLife;
use super::record::NodeRecord;
use crate::coordinator::api::Coordinator;
use crate::coordinator::api::Error;
use crate::coordinator::api::Event;
use crate::coordinator::api::Revision;
use crate::coordinator::api::Snapshot;
use crate::coordinator::follow::Follows;
use crate::coordinator::follow::follow;
use crate::env::Clock;
use crate::types::Incarnation;
use crate::types::NodeId;

const PREFIX: &str = "nodes/";
const RECORD: &str = "/record";
const LIFE: &str = "/life";

/// The coordinator key of a node's record.
pub(super) fn record_key(node: NodeId) -> Bytes {
    format!("{PREFIX}{:016x}{RECORD}", node.get()).into()
}

/// The coordinator key of its life.
pub(super) fn life_key(node: NodeId) -> Bytes {
    format!("{PREFIX}{:016x}{LIFE}", node.get()).into()
}

/// A node, as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAt {
    /// The node.
    pub id: NodeId,
    /// Its record.
    pub record: NodeRecord,
    /// Its life; `None` if it is away.
    pub life: Option<NodeLife>,
}

/// The nodes of a cluster. The table may be behind the coordinator, never ahead.
#[derive(Debug)]
pub struct NodeTable {
    coordinator: Arc<dyn Coordinator>,
    known: Mutex<Known>,
    followed: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct Known {
    nodes: BTreeMap<NodeId, (Option<NodeRecord>, Option<NodeLife>)>,
    revision: Revision,
}

/// What a key of the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Record,
    Life,
}

fn parse(key: &[u8]) -> Option<(NodeId, Key)> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?;
    let (digits, suffix) = rest.split_at_checked(16)?;
    let what = match suffix {
        RECORD => Key::Record,
        LIFE => Key::Life,
        _ => return None,
    };
    Some((NodeId::new(u64::from_str_radix(digits, 16).ok()?), what))
}

impl NodeTable {
    /// Reads the table. [`Self::follow`] keeps it up to date.
    ///
    /// # Errors
    /// Those of [`Coordinator::range`].
    pub async fn start(coordinator: Arc<dyn Coordinator>) -> Result<Self, Error> {
        let all = coordinator.range(PREFIX.as_bytes()).await?;
        let (known, followed) = (Mutex::default(), watch::Sender::new(all.revision));
        let table = Self { coordinator, known, followed };
        table.take_all(all);
        Ok(table)
    }

    /// Follows the changes for ever.
    ///
    /// Cancel safe: another call goes on.
    pub async fn follow(&self, clock: &dyn Clock) {
        follow(self.coordinator.as_ref(), clock, self).await;
    }

    /// Reads the table again: it knows everything that was changed before this call.
    ///
    /// # Errors
    /// Those of [`Coordinator::range`].
    pub async fn refresh(&self) -> Result<(), Error> {
        let all = Known::of(&self.coordinator.range(PREFIX.as_bytes()).await?);
        let mut known = self.lock();
        // Changes that came meanwhile are not forgotten.
        if all.revision <= known.revision {
            return Ok(());
        }
        let revision = all.revision;
        *known = all;
        drop(known);
        self.followed.send_replace(revision);
        Ok(())
    }

    /// The life of a node that is there.
    #[must_use]
    pub fn incarnation(&self, node: NodeId) -> Option<Incarnation> {
        let known = self.lock();
        let (record, life) = known.nodes.get(&node)?;
        record.as_ref().and(life.as_ref()).map(|life| life.incarnation)
    }

    /// The revision up to which all changes are known. The receiver hears of each change.
    #[must_use]
    pub fn followed(&self) -> watch::Receiver<Revision> {
        self.followed.subscribe()
    }

    /// A node, if its record is known.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<NodeAt> {
        let known = self.lock();
        let (record, life) = known.nodes.get(&node)?;
        Some(NodeAt { id: node, record: record.clone()?, life: life.clone() })
    }

    /// All nodes whose records are known, by ids.
    #[must_use]
    pub fn all(&self) -> Vec<NodeAt> {
        let known = self.lock();
        let at = |(id, (record, life)): (&NodeId, &(Option<NodeRecord>, Option<NodeLife>))| {
            Some(NodeAt { id: *id, record: record.clone()?, life: life.clone() })
        };
        known.nodes.iter().filter_map(at).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of(all: &Snapshot) -> Self {
        let mut known = Self { revision: all.revision, ..Self::default() };
        for (key, entry) in &all.entries {
            known.set(key, Some(&entry.value));
        }
        known
    }

    /// Sets or removes what a key says. A value that cannot be read counts as none.
    fn set(&mut self, key: &Bytes, value: Option<&Bytes>) {
        let Some((node, what)) = parse(key) else {
            tracing::error!(?key, "a key in the coordinator belongs to no node");
            return;
        };
        let (record, life) = self.nodes.entry(node).or_default();
        let unread = |why| tracing::error!(%node, %why, "a value of a node cannot be read");
        match what {
            Key::Record => {
                *record = value.and_then(|value| {
                    NodeRecord::decode(value).inspect_err(|why| unread(*why)).ok()
                });
            }
            Key::Life => {
                *life = value
                    .and_then(|value| NodeLife::decode(value).inspect_err(|why| unread(*why)).ok());
            }
        }
    }
}

impl Follows for NodeTable {
    fn prefix(&self) -> &'static [u8] {
        PREFIX.as_bytes()
    }

    fn revision(&self) -> Revision {
        self.lock().revision
    }

    fn take(&self, events: Vec<Event>) {
        let Some(last) = events.last().map(|event| event.revision) else { return };
        let mut known = self.lock();
        // Older ones than the table that was read again are in it.
        let before = known.revision;
        for event in events.iter().filter(|event| event.revision > before) {
            known.set(&event.key, event.value.as_ref());
        }
        known.revision = known.revision.max(last);
        let revision = known.revision;
        drop(known);
        self.followed.send_replace(revision);
    }

    fn take_all(&self, all: Snapshot) {
        let mut known = self.lock();
        // A table that was read again meanwhile is newer.
        if all.revision >= known.revision {
            *known = Known::of(&all);
        }
        let revision = known.revision;
        drop(known);
        self.followed.send_replace(revision);
    }
}
