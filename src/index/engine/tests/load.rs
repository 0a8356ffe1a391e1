//! What a partition notes of its load.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;

use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::Dependencies;
use crate::index::engine::config::Config;
use crate::index::engine::context::HostContext;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, Plain, World, put};
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// Takes a while for each write.
#[derive(Debug)]
struct Slow(Arc<dyn Clock>);

const WHILE: Duration = Duration::from_millis(5);
/// Bytes of a batch that is full with one write, but not without any.
const BATCH: usize = 100;

#[async_trait]
impl Machine for Slow {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        self.0.sleep(WHILE).await;
        Plain.evaluate(view, write, now, out).await
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error> {
        Plain.answer(view, range, read, now).await
    }
}

async fn slow(config: impl FnOnce(Config) -> Config) -> Partition {
    let world = World::new().await;
    let deps = world.deps();
    let machine = Arc::new(Slow(Arc::clone(&deps.env.clock)));
    let deps = Dependencies { machine, ..deps };
    let context =
        Arc::new(HostContext::new(deps, config(world.config), HostId::new(0), Arc::default()));
    Partition::open(&context, PARTITION).await.unwrap()
}

async fn write(partition: &Partition, numbers: std::ops::Range<u32>) -> Vec<Result<(), Error>> {
    let value = "v".repeat(BATCH);
    join_all(numbers.map(|n| partition.apply(put(&format!("key{n}"), &value)))).await
}

#[tokio::test(start_paused = true)]
async fn queue_age_is_the_wait_behind_others_but_for_the_batch_under_way() {
    // However slow a batch is, all writes that came meanwhile are in the next one.
    let partition = slow(|config| config).await;
    let clock = Arc::clone(&partition.core.context.deps.env.clock);
    let later = async {
        clock.sleep(Duration::from_millis(1)).await;
        write(&partition, 10..20).await
    };
    let (first, second) = tokio::join!(write(&partition, 0..10), later);
    assert!(first.iter().chain(&second).all(Result::is_ok));
    assert_eq!(partition.core.meter.tick(), Duration::ZERO);

    // One write a batch: the tenth waits for nine, of which one was under way.
    let partition = slow(|config| Config { batch_bytes: BATCH, ..config }).await;
    assert!(write(&partition, 0..10).await.iter().all(Result::is_ok));
    assert_eq!(partition.core.meter.tick(), WHILE * 8);
    assert_eq!(partition.core.meter.tick(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn writes_refused_for_want_of_room_are_counted_and_so_is_the_log() {
    let partition = slow(|config| Config { queue_ops: 4, ..config }).await;
    let refused = write(&partition, 0..10).await.iter().filter(|done| done.is_err()).count();
    let counts = partition.core.meter.counts();
    assert_eq!((counts.writes, counts.refused), (10, refused as u64));
    assert!(refused >= 5, "{refused}");
    // Keys and values of what was let in, and little else.
    let rows = 10 - refused as u64;
    assert!((rows * 100..rows * 300).contains(&counts.log_bytes), "{counts:?}");
}
