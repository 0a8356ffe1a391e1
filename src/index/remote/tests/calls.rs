//! Golden bytes, and what a front end does with each answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::partitions::status;
use super::rig::Partition;
use super::rig::Process;
use super::rig::World;
use super::rig::identity;
use super::rig::target_at;
use crate::env::Clock;
use crate::index::ChangeError;
use crate::index::ChangeEvent;
use crate::index::ChangeKind;
use crate::index::Changed;
use crate::index::ChangesOf;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::KnownChanges;
use crate::index::PartitionCounts;
use crate::index::Plan;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Refused;
use crate::index::ServedPartitions;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteId;
use crate::index::WriteReply;
use crate::index::remote::ChangedAccounts;
use crate::index::remote::ChangesTo;
use crate::index::remote::calls;
use crate::index::remote::calls::AccountsAfter;
use crate::index::remote::calls::Answer;
use crate::index::remote::calls::Change;
use crate::index::remote::calls::Changes;
use crate::index::remote::calls::Counts;
use crate::index::remote::calls::EvenCuts;
use crate::index::remote::calls::EvenCutsCall;
use crate::index::remote::calls::Give;
use crate::index::remote::calls::GiveCall;
use crate::index::remote::calls::IndexClientsOf;
use crate::index::remote::calls::ReadCall;
use crate::index::remote::calls::RowSpread;
use crate::index::remote::calls::RowSpreadCall;
use crate::index::remote::calls::Served;
use crate::index::remote::calls::Shared;
use crate::index::remote::calls::WriteCall;
use crate::index::remote::decode_untrusted;
use crate::rpc::Method;
use crate::rpc::decode;
use crate::rpc::encode;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;
use crate::types::Timestamp;

fn name(text: &str) -> AccountName {
    AccountName::new(text).unwrap()
}

fn read() -> Read {
    Read::Account(name("acct"))
}

fn write() -> Write {
    Write::CreateAccount { name: name("acct"), id: AccountId::new(7), anonymous: true }
}

/// A message, and its bytes after the version.
#[track_caller]
fn check<T: Serialize>(message: &T, bytes: &[u8]) {
    assert_eq!(encode(message).unwrap()[1..], *bytes);
}

#[test]
fn messages_have_golden_bytes() {
    let numbers =
        [calls::Read::NUMBER, calls::Write::NUMBER, IndexClientsOf::NUMBER, AccountsAfter::NUMBER];
    assert_eq!(numbers, [0x0201, 0x0202, 0x0203, 0x0204]);
    let numbers = [Give::NUMBER, Served::NUMBER, Counts::NUMBER, Changes::NUMBER];
    assert_eq!(numbers, [0x0205, 0x0206, 0x0207, 0x0208]);
    assert_eq!([EvenCuts::NUMBER, RowSpread::NUMBER, Change::NUMBER], [0x0209, 0x020a, 0x020b]);
    check(
        &GiveCall { target: target_at(1), to: HostId::of(NodeId::new(300), 4) },
        &[1, 2, 1, 0, 0xAC, 0x02, 4],
    );
    let target = [1, 2, 1, 0];
    let call = ReadCall { target: target_at(1), read: Shared(Arc::new(read())) };
    check(&call, &[&target[..], &[0, 4], b"acct"].concat());
    assert_eq!(decode::<ReadCall>(&encode(&call).unwrap()).unwrap(), call);
    let call = WriteCall { target: target_at(1), id: None, write: Shared(Arc::new(write())) };
    check(&call, &[&target[..], &[0, 0, 4], b"acct", &[7, 1]].concat());
    let id = WriteId { process: identity(300, 2), number: 9, settled: 8, is_repeated: true };
    let call = WriteCall { id: Some(id), ..call };
    let id = [1, 0xAC, 0x02, 2, 9, 8, 1];
    check(&call, &[&target[..], &id, &[0, 4], b"acct", &[7, 1]].concat());
    assert_eq!(decode::<WriteCall>(&encode(&call).unwrap()).unwrap(), call);
    check(&Answer::Done(ReadReply::DeadContainers(Vec::new())), &encoded_done());
    check(&Answer::<()>::Failed(Error::WrongPartition), &[1, 0]);
    check(&Answer::<()>::NotHere, &[2]);
    check(&Answer::<()>::TooLarge(300), &[3, 0xAC, 0x02]);
    check(&Answer::Done(vec![identity(300, 2)]), &[0, 1, 0xAC, 0x02, 2]);
    let to = ChangesTo { of: identity(300, 2), number: 9 };
    check(&Some(to), &[1, 0xAC, 0x02, 2, 9]);
    let changed = ChangedAccounts { to, accounts: Some(vec![name("acct")]) };
    check(&Answer::Done(changed), &[&[0, 0xAC, 0x02, 2, 9, 1, 1, 4][..], b"acct"].concat());
}

#[test]
fn messages_about_partitions_have_golden_bytes() {
    let (host, all) = (HostId::of(NodeId::new(300), 4), KeyRange::all());
    let id = PartitionId::new(300);
    check(&EvenCutsCall { partition: id, parts: 2 }, &[0xAC, 0x02, 2]);
    check(&RowSpreadCall { range: all.clone(), parts: 300 }, &[0, 0, 0xAC, 0x02]);
    check(
        &Plan::Split(id, vec![RoutingKey::from_bytes(Bytes::from_static(b"k"))]),
        &[0, 0xAC, 0x02, 1, 1, b'k'],
    );
    check(&Plan::SplitEvenly(id, 3), &[1, 0xAC, 0x02, 3]);
    check(&Plan::Move(id, host), &[2, 0xAC, 0x02, 0xAC, 0x02, 4]);
    check(&Plan::Stripe(id, all.clone(), 4), &[3, 0xAC, 0x02, 0, 0, 4]);
    check(&Plan::Merge(vec![id, PartitionId::new(1)]), &[4, 2, 0xAC, 0x02, 1]);
    let known = KnownChanges::from([(identity(300, 2), 9)]);
    check(&known, &[1, 0xAC, 0x02, 2, 9]);
    let (pause, range) = (Duration::from_nanos(5), all.clone());
    let counts = PartitionCounts { id, host, range, stripe: None, requests: 7, cpu: pause };
    check(&vec![counts], &[1, 0xAC, 0x02, 0xAC, 0x02, 4, 0, 0, 0, 7, 0, 5]);
    let made = Changed { partitions: vec![id], pause };
    check(&Ok::<_, ChangeError>(made), &[0, 1, 0xAC, 0x02, 0, 5]);
    let errors = [
        ChangeError::NoSuchPartition,
        ChangeError::BadKeys,
        ChangeError::Striped,
        ChangeError::NotStripable,
        ChangeError::NotNeighbours,
        ChangeError::NoSuchHost,
        ChangeError::Busy("b".into()),
        ChangeError::Refused(Error::WrongPartition),
        ChangeError::Failed(Error::WrongPartition),
        ChangeError::PartlyDone(Box::new(ChangeError::BadKeys)),
    ];
    let ends: [&[u8]; 10] = [&[], &[], &[], &[], &[], &[], &[1, b'b'], &[0], &[0], &[1]];
    for ((variant, error), end) in (0..).zip(errors).zip(ends) {
        check(&Err::<Changed, _>(error), &[&[1, variant], end].concat());
    }
    let (at, range) = (Timestamp::ZERO, all.clone());
    let (from, to, kind) = (vec![id], Vec::new(), ChangeKind::Move);
    let change = ChangeEvent { number: 9, at, kind, from, to, range, host, pause };
    let bytes = [9, 0, 2, 1, 0xAC, 0x02, 0, 0, 0, 0xAC, 0x02, 4, 0, 5];
    let of = ChangesOf { process: identity(1, 2), changes: vec![change] };
    check(&of, &[&[1, 2, 1][..], &bytes].concat());
    let served = ServedPartitions { hosts: vec![host], partitions: vec![status(300, all, host)] };
    let counts = [1, 2, 3, 4, 5, 0, 6];
    let bytes =
        [&[1, 0xAC, 0x02, 4, 1, 0xAC, 0x02, 2, 0xAC, 0x02, 4, 0, 0, 0][..], &counts, &[0, 7]];
    check(&served, &[&bytes.concat()[..], &[8, 9, 10, 11, 0, 1, 1, b'x']].concat());
}

/// The variant of the answer, then the reply as `api/tests.rs` knows its bytes.
fn encoded_done() -> Vec<u8> {
    let reply = postcard::to_stdvec(&ReadReply::DeadContainers(Vec::new())).unwrap();
    [&[0][..], &reply].concat()
}

#[test]
fn other_bytes_are_no_message() {
    for bytes in [&[][..], &[1], &[2, 0], &[1, 0xFF, 0xFF, 0xFF]] {
        let _accepted = decode_untrusted(bytes);
    }
    assert!(decode::<ReadCall>(&[1, 1, 2, 0, 0xFF]).is_err());
}

#[tokio::test(start_paused = true)]
async fn partition_of_another_process_is_read_and_changed() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    let found = front.read(read()).await.unwrap();
    assert_eq!(found, ReadReply::DeadContainers(Vec::new()));
    let done = front.write(write()).await.unwrap();
    assert_eq!(done, WriteReply::Done);
    assert_eq!(*partition.writes.lock().unwrap(), [write()]);
    // The process that serves asks itself without a message.
    server.index.read_kept(world.target(), &read()).await.unwrap();
    assert_eq!(partition.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_count_that_any_process_with_partitions_lets_in() {
    let world = World::new();
    let one = Process::start(&world, 1, 1);
    let two = Process::start(&world, 2, 2);
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    one.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.serve_at(&[1, 2]);
    let all = [one.identity, two.identity];
    assert_eq!(one.index.index_clients(&world).await.unwrap(), all);
    // It has not heard of its own claim yet, and knows a process that others do not.
    world.serve_at(&[2]);
    assert_eq!(one.index.index_clients(&world).await.unwrap(), all);
}

#[tokio::test(start_paused = true)]
async fn number_of_another_process_is_refused() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    let own = WriteId { process: identity(2, 2), number: 1, settled: 1, is_repeated: false };
    let forged = WriteId { process: identity(1, 1), ..own };
    let send = |id| front.index.write_once(world.target(), id, Arc::new(write()));
    assert_eq!(send(forged).await, Err(Error::Overloaded));
    assert_eq!(partition.writes(), 0);
    assert_eq!(send(own).await, Ok(WriteReply::Done));
}

#[tokio::test(start_paused = true)]
async fn answer_that_is_too_large_is_asked_for_once_more() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let dead = |number| crate::index::api::DeletedContainer {
        account: AccountId::new(1),
        container: ContainerId::new(number),
        deleted: Timestamp::ZERO,
    };
    let many = ReadReply::DeadContainers((0..40_000).map(dead).collect());
    let partition = Partition::new(many.clone());
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    assert_eq!(front.read(read()).await.unwrap(), many);
    assert_eq!(partition.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn request_waits_until_somebody_serves_the_index() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    let later = async {
        world.sleep(2_000).await;
        world.is_served_by(1);
        // It has the claim, and is not ready.
        world.sleep(2_000).await;
        server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    };
    let (read, written, ()) = tokio::join!(front.read(read()), front.write(write()), later);
    read.unwrap();
    written.unwrap();
    assert_eq!(partition.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn request_is_given_up_when_nobody_serves_for_long() {
    let world = World::new();
    let front = Process::start(&world, 2, 2);
    let began = world.clock.monotonic();
    let refused = front.write(write()).await.unwrap_err();
    // Surely nothing was done.
    assert_eq!(refused, Error::Overloaded);
    let took = world.clock.monotonic() - began;
    assert!((10..12).contains(&took.as_secs()), "{took:?}");
    assert!(!front.index.is_reached());
}

/// A process that stands still may carry it out when it goes on.
#[tokio::test(start_paused = true)]
async fn write_without_an_answer_is_not_sent_again_and_a_read_is() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    front.read(read()).await.unwrap();
    server.cut_off();
    let next = Process::start(&world, 3, 3);
    let taken_over = Partition::new(ReadReply::DeadContainers(Vec::new()));
    let later = async {
        world.sleep(3_000).await;
        next.served.serve(Arc::clone(&taken_over) as Arc<dyn IndexHost>);
        world.is_served_by(3);
    };
    let (read, written, ()) = tokio::join!(front.read(read()), front.write(write()), later);
    read.unwrap();
    let unknown = written.unwrap_err();
    assert!(matches!(&unknown, Error::NoAnswer(why) if why.contains("may have")), "{unknown:?}");
    assert_eq!((taken_over.reads(), taken_over.writes()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn errors_of_partitions_arrive() {
    /// Refuses everything.
    #[derive(Debug)]
    struct Refuses;

    #[async_trait::async_trait]
    impl IndexHost for Refuses {
        async fn read(&self, _: Target, _: Read) -> Result<ReadReply, Error> {
            Err(Error::Refused(Refused::BlobNotFound))
        }

        async fn write_shared(&self, _: Target, _: Arc<Write>) -> Result<WriteReply, Error> {
            Err(Error::WrongPartition)
        }

        async fn owned_extents(&self) -> Vec<crate::types::ExtentId> {
            Vec::new()
        }
    }
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    server.served.serve(Arc::new(Refuses));
    world.is_served_by(1);
    let refused = front.read(read()).await;
    assert_eq!(refused, Err(Error::Refused(Refused::BlobNotFound)));
    let written = front.index.write(world.target(), write()).await;
    assert_eq!(written, Err(Error::WrongPartition));
}

#[tokio::test(start_paused = true)]
async fn front_ends_hear_of_accounts_that_others_change() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let third = Process::start(&world, 3, 3);
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(partition as Arc<dyn IndexHost>);
    world.is_served_by(1);
    let (at, to) = (world.claim(1), |number| ChangesTo { of: server.identity, number });
    let first = front.index.accounts_after(at, None).await.unwrap();
    assert_eq!(first, ChangedAccounts { to: to(0), accounts: None });
    // While nothing changes it is answered too: the index is served.
    let began = world.clock.monotonic();
    let none = front.index.accounts_after(at, Some(to(0))).await.unwrap();
    assert_eq!(none, ChangedAccounts { to: to(0), accounts: Some(Vec::new()) });
    assert!((world.clock.monotonic() - began) < Duration::from_secs(2) && front.index.is_reached());
    let later = async {
        world.sleep(100).await;
        third.write(write()).await.unwrap();
        let key = RoutingKey::min();
        let other = Write::ExpireDeleted { key, all: false };
        third.write(other).await.unwrap();
        server.write(write()).await.unwrap();
    };
    let (heard, ()) = tokio::join!(front.index.accounts_after(at, Some(to(0))), later);
    let named = Some(vec![name("acct")]);
    assert_eq!(heard.unwrap(), ChangedAccounts { to: to(1), accounts: named });
    assert_eq!(front.index.accounts_after(at, Some(to(1))).await.unwrap().to, to(2));
    // Another process that serves counts anew.
    let next = Partition::new(ReadReply::DeadContainers(Vec::new()));
    third.served.serve(next as Arc<dyn IndexHost>);
    world.is_served_by(3);
    front.index.accounts_after(at, None).await.unwrap_err();
    let at = world.claim(3);
    for number in [0, 2] {
        let answer = front.index.accounts_after(at, Some(to(number))).await.unwrap();
        assert_eq!((answer.to.of, answer.accounts), (third.identity, None));
    }
}

/// The requests of others go to the next process, and none is answered with an error.
#[tokio::test(start_paused = true)]
async fn process_that_stops_serving_ends_the_writes_that_it_has_begun() {
    let world = World::new();
    let (server, front) = (Process::start(&world, 1, 1), Process::start(&world, 2, 2));
    let next = Process::start(&world, 3, 3);
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(Arc::clone(&partition) as Arc<dyn IndexHost>);
    world.is_served_by(1);
    partition.answers.send_replace(false);
    let stopping = async {
        world.sleep(100).await;
        let end = server.served.end(&*world.clock, Duration::from_secs(5));
        let answered = async {
            world.sleep(500).await;
            assert_eq!(partition.writes(), 1);
            partition.answers.send_replace(true);
        };
        let began = world.clock.monotonic();
        tokio::join!(end, answered);
        let took = (world.clock.monotonic() - began).as_millis();
        assert!((500..1_000).contains(&took), "{took}");
        let taken_over = Partition::new(ReadReply::DeadContainers(Vec::new()));
        next.served.serve(Arc::clone(&taken_over) as Arc<dyn IndexHost>);
        world.is_served_by(3);
        taken_over
    };
    let late = async {
        world.sleep(200).await;
        front.write(write()).await
    };
    let first = front.write(write());
    let (first, late, taken_over) = tokio::join!(first, late, stopping);
    first.unwrap();
    late.unwrap();
    assert_eq!((partition.writes(), taken_over.writes()), (1, 1));
}
