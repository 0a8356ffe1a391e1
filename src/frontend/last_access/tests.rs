//! Notes against an index that only listens.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::index::Error;
use crate::index::Full;
use crate::index::IndexHost;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::client::testing::env;
use crate::index::client::testing::publish;
use crate::telemetry::Registry;
use crate::types::*;

/// Remembers what it was asked to write.
#[derive(Debug, Default)]
struct Listener {
    full: AtomicBool,
    heard: Mutex<Vec<NoteRead>>,
}

impl Listener {
    fn heard(&self) -> Vec<NoteRead> {
        mem::take(&mut self.heard.lock().unwrap())
    }
}

#[async_trait]
impl IndexHost for Listener {
    async fn read(&self, _target: Target, _read: Read) -> Result<ReadReply, Error> {
        Err(Error::Overloaded)
    }

    async fn write_shared(&self, _target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        let Write::NoteRead(note) = write.as_ref() else { panic!("{write:?}") };
        if self.full.load(Ordering::Relaxed) {
            return Err(Error::Full(Full::Disks));
        }
        self.heard.lock().unwrap().push(note.clone());
        Ok(WriteReply::Done)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        Vec::new()
    }
}

struct Rig {
    index: Arc<Listener>,
    router: Router,
    env: Env,
    reads: Arc<LastAccess>,
}

async fn rig() -> Rig {
    let env = env();
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
    publish(coordinator.as_ref(), (1, 1), KeyRange::all()).await;
    let index = Arc::new(Listener::default());
    let host = Arc::clone(&index) as Arc<dyn IndexHost>;
    let router = Router::new(host, coordinator, env.clone()).await.unwrap();
    let reads = Arc::new(LastAccess::new(&Metrics::register(&mut Registry::default())));
    Rig { index, router, env, reads }
}

fn key(name: &str) -> BlobKey {
    let (account, container) = (AccountId::new(1), ContainerId::new(7));
    let name = BlobName::new(name).unwrap();
    BlobKey { account, container, collation: Collation::Utf16, name }
}

fn version(name: &str) -> BlobVersion {
    BlobVersion { key: key(name), revision: Revision::Current }
}

fn record(accessed: Option<Timestamp>) -> BlobRecord {
    let made = Timestamp::from_ticks(1);
    BlobRecord { accessed, ..BlobRecord::new(made, made, 1, Crc64::EMPTY) }
}

#[tokio::test(start_paused = true)]
async fn a_blob_is_written_once_a_day() {
    let Rig { index, router, env, reads } = rig().await;
    let (a, now) = (version("a"), env.clock.now());
    reads.note(&a, &record(None), now);
    reads.note(&a, &record(None), now.plus(Duration::from_secs(9)));
    reads.write(&router).await;
    assert_eq!(index.heard(), [NoteRead { key: a.key.clone(), at: now }], "the first read of two");
    let hours = |n: u64| now.plus(Duration::from_secs(3_600 * n));
    let known = record(Some(now));
    reads.note(&a, &known, hours(23));
    reads.note(&BlobVersion { revision: Revision::Snapshot(now), ..a.clone() }, &record(None), now);
    reads.write(&router).await;
    assert_eq!(index.heard(), [], "known already, or of a snapshot");
    reads.note(&a, &known, hours(24));
    reads.write(&router).await;
    assert_eq!(index.heard(), [NoteRead { key: a.key, at: hours(24) }]);
    assert_eq!((reads.written.get(), reads.dropped.get()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_dropped_and_counted() {
    let Rig { index, router, env, reads } = rig().await;
    let now = env.clock.now();
    for number in 0..NOTES_MAX + 5 {
        reads.note(&version(&number.to_string()), &record(None), now);
    }
    assert_eq!((reads.notes().len(), reads.dropped.get()), (NOTES_MAX, 5));
    reads.note(&version("0"), &record(None), now);
    assert_eq!(reads.dropped.get(), 5, "one that waits already needs no room");
    reads.write(&router).await;
    assert_eq!((index.heard().len(), reads.notes().len()), (NOTES_MAX, 0));
}

#[tokio::test(start_paused = true)]
async fn what_the_index_refuses_is_written_later() {
    let Rig { index, router, env, reads } = rig().await;
    let now = env.clock.now();
    for number in 0..WRITES_AT_ONCE + 5 {
        reads.note(&version(&number.to_string()), &record(None), now);
    }
    index.full.store(true, Ordering::Relaxed);
    reads.write(&router).await;
    assert_eq!((reads.notes().len(), reads.written.get()), (WRITES_AT_ONCE + 5, 0));
    index.full.store(false, Ordering::Relaxed);
    reads.write(&router).await;
    let mut heard: Vec<String> =
        index.heard().iter().map(|note| note.key.name.as_str().to_owned()).collect();
    heard.sort();
    heard.dedup();
    assert_eq!((heard.len(), reads.dropped.get()), (WRITES_AT_ONCE + 5, 0));
}

#[tokio::test(start_paused = true)]
async fn notes_are_written_in_time_when_many_and_at_the_stop() {
    let Rig { index, router, env, reads } = rig().await;
    let clock = Arc::clone(&env.clock);
    let (writer, tasks) = (Arc::clone(&reads), env.tasks.clone());
    drop(tasks.spawn("last access", async move { writer.write_until_stop(&router, &env).await }));
    let note = |name: &str| reads.note(&version(name), &record(None), clock.now());
    clock.sleep(Duration::from_secs(1)).await;
    note("a");
    clock.sleep(WRITE_EVERY - Duration::from_secs(2)).await;
    assert_eq!(index.heard(), []);
    clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(index.heard().len(), 1);
    (0..NOTES_MANY).for_each(|number| note(&number.to_string()));
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(index.heard().len(), NOTES_MANY);
    note("z");
    tasks.shutdown().await;
    assert_eq!(index.heard().len(), 1);
}
