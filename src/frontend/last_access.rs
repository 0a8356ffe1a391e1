//! Last-access times: reads are noted in memory and written to the blobs' rows later, in batches.
//!
//! A read never waits for a write. If the record of the blob has no read of this day yet, the read
//! is noted, once for each blob. Notes are lost in a crash, or if too many wait; these are counted
//! (ADR 0018).

pub(super) mod run;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::join_all;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

use crate::env::Env;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::metrics::Metrics;
use crate::index::BlobRecord;
use crate::index::NoteRead;
use crate::index::Router;
use crate::types::BlobKey;
use crate::types::Timestamp;

/// The most notes that wait; further ones are dropped.
const NOTES_MAX: usize = 64 * 1024;
/// The number of notes at which they are written immediately.
const NOTES_MANY: usize = 4 * 1024;
/// How long a note waits otherwise.
const WRITE_EVERY: Duration = Duration::from_secs(30);
/// Concurrent writes; they share commits.
const WRITES_AT_ONCE: usize = 256;

/// Reads that are not written to rows yet.
#[derive(Debug)]
pub(crate) struct LastAccess {
    notes: Mutex<HashMap<BlobKey, Timestamp>>,
    many: Notify,
    written: Counter,
    dropped: Counter,
}

impl LastAccess {
    /// No notes.
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            notes: Mutex::default(),
            many: Notify::new(),
            written: metrics.reads_noted.clone(),
            dropped: metrics.reads_dropped.clone(),
        }
    }

    /// Notes that a blob, found as `record`, was read at `now`; snapshots and versions are not
    /// tracked.
    pub(crate) fn note(&self, blob: &BlobVersion, record: &BlobRecord, now: Timestamp) {
        let key = &blob.key;
        if !blob.revision.is_current() || !record.notes_read(now) {
            return;
        }
        let mut notes = self.notes();
        if notes.contains_key(key) {
            return;
        }
        if notes.len() >= NOTES_MAX {
            self.dropped.inc();
            return;
        }
        notes.insert(key.clone(), now);
        if notes.len() == NOTES_MANY {
            self.many.notify_one();
        }
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<BlobKey, Timestamp>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all notes. Those that the index refuses are kept for the next time.
    async fn write(&self, router: &Router) {
        let noted = mem::take(&mut *self.notes());
        let mut due: Vec<(BlobKey, Timestamp)> = noted.into_iter().collect();
        while !due.is_empty() {
            let batch = due.split_off(due.len().saturating_sub(WRITES_AT_ONCE));
            let writes = batch.into_iter().map(|(key, at)| async move {
                let write = NoteRead { key: key.clone(), at };
                (router.tell(write).await, (key, at))
            });
            let mut refused = Vec::new();
            for (answer, note) in join_all(writes).await {
                match answer {
                    Ok(()) => {
                        self.written.inc();
                    }
                    Err(error) => {
                        tracing::debug!(
                            %error,
                            "a last access time was not written; it is written later"
                        );
                        refused.push(note);
                    }
                }
            }
            if !refused.is_empty() {
                due.append(&mut refused);
                self.keep(due);
                return;
            }
        }
    }

    /// Puts notes back, beside newer ones.
    fn keep(&self, due: Vec<(BlobKey, Timestamp)>) {
        let mut notes = self.notes();
        for (key, at) in due {
            let full = notes.len() >= NOTES_MAX;
            match notes.entry(key) {
                Entry::Occupied(mut newer) => *newer.get_mut() = at,
                Entry::Vacant(_) if full => {
                    self.dropped.inc();
                }
                Entry::Vacant(free) => {
                    free.insert(at);
                }
            }
        }
    }

    /// Writes notes at intervals until the tasks stop, and then once more.
    pub(super) async fn write_until_stop(&self, router: &Router, env: &Env) {
        let stopping = env.tasks.stopping();
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return self.write(router).await,
                () = self.many.notified() => {}
                () = env.clock.sleep(WRITE_EVERY) => {}
            }
            self.write(router).await;
        }
    }
}

#[cfg(test)]
mod tests;
