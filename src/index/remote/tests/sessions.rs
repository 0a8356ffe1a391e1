//! Whose calls are answered, and whose requests count.

use std::sync::Arc;

use super::rig::Partition;
use super::rig::Process;

use super::rig::World;
use crate::env::Tasks;
use crate::index::IndexHost;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Write;
use crate::index::WriterSessions;
use crate::index::remote::KnownWriters;
use crate::types::AccountId;
use crate::types::AccountName;

fn read() -> Read {
    Read::Account(AccountName::new("acct").unwrap())
}

fn write() -> Write {
    let (name, id) = (AccountName::new("acct").unwrap(), AccountId::new(7));
    Write::DeleteAccount { name, id }
}

struct Both {
    world: World,
    server: Process,
    front: Process,
    partition: Arc<Partition>,
}

fn both() -> Both {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    Both { world, server, front, partition }
}

#[tokio::test(start_paused = true)]
async fn process_without_a_session_is_not_answered() {
    let Both { world, front, partition, .. } = both();
    world.end_session(front.identity);
    front.read(read()).await.unwrap_err();
    front.write(write()).await.unwrap_err();
    assert_eq!((partition.reads(), partition.writes()), (0, 0));
    // A table of nodes that is behind is waited for.
    let later = async {
        world.sleep(1_000).await;
        world.begin_session(front.identity);
    };
    let (written, ()) = tokio::join!(front.write(write()), later);
    written.unwrap();
    assert_eq!(partition.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn process_whose_session_ends_during_a_write_counts_until_the_write_has_ended() {
    let Both { world, server, front, partition } = both();
    partition.answers.send_replace(false);
    let of_front = Arc::clone(&front.index);
    let tasks = Tasks::new();
    let target = world.target();
    let writing = async move { of_front.write(target, write()).await };
    let writing = tasks.spawn("a write", writing);
    world.sleep(500).await;
    assert_eq!(partition.writes(), 1);
    world.end_session(front.identity);
    let counted = async || server.index.index_clients(&world).await.unwrap();
    assert_eq!(counted().await, [server.identity, front.identity]);
    // Everybody learns that, and so nothing is freed.
    let third = Process::start(&world, 3, 3);
    let told = third.index.index_clients(&world).await.unwrap();
    assert_eq!(told, [server.identity, front.identity, third.identity]);
    front.cut_off();
    third.requests.mark().await.unwrap_err();
    partition.answers.send_replace(true);
    world.sleep(500).await;
    assert_eq!(counted().await, [server.identity, third.identity]);
    third.requests.mark().await.unwrap();
    writing.abort();
}

/// Nothing is kept for its writes then.
#[tokio::test(start_paused = true)]
async fn process_has_ended_when_its_session_and_its_writes_have() {
    let Both { world, server, front, partition } = both();
    let next = Process::start(&world, 3, 3);
    let writers =
        |process: &Process| KnownWriters::new(Arc::clone(&process.served), Arc::new(world.clone()));
    let has_ended = |at: &Process| writers(at).has_ended(front.identity);
    assert!(!has_ended(&server));
    partition.answers.send_replace(false);
    let (of_front, tasks) = (Arc::clone(&front.index), Tasks::new());
    let target = world.target();
    let writing = tasks.spawn("a write", async move { of_front.write(target, write()).await });
    world.sleep(500).await;
    world.end_session(front.identity);
    assert!(!has_ended(&server), "a write is under way");
    partition.answers.send_replace(true);
    writing.await.unwrap().unwrap();
    assert!(has_ended(&server));
    assert!(!has_ended(&next), "its table of nodes may be old");
}
