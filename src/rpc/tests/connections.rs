//! How connections begin and end.

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::service::Wait;
use super::service::Write;
use super::*;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::rpc::hello::introduction;
use crate::rpc::packet::Draft;
use crate::rpc::packet::Head;
use crate::rpc::packet::Kind;
use crate::rpc::packet::Outgoing;
use crate::rpc::packet::Packet;
use crate::rpc::wire::PacketReader;
use crate::rpc::wire::write_packet;

fn unreachable_because(error: CallError) -> String {
    let CallError::NotDone(Reason::Unreachable(why)) = error else { panic!("{error:?}") };
    why
}

#[tokio::test(start_paused = true)]
async fn node_that_nobody_listens_at_is_unreachable() {
    let world = World::new(20);
    let peer = world.peer();
    unreachable_because(echo(&peer, "a").await.unwrap_err());
    // It is tried again, but not by each call.
    world.serve();
    unreachable_because(echo(&peer, "b").await.unwrap_err());
    pause(100).await;
    assert_eq!(echo(&peer, "c").await.unwrap(), "c");
}

#[tokio::test(start_paused = true)]
async fn only_the_right_cluster_node_and_life_are_let_in() {
    let world = World::new(21);
    world.serve();
    let asks = |us: CallerConfig, node| {
        let peer = RemoteNode::new(&us, NodeId::new(node), &address(2).to_string(), PORT);
        async move { unreachable_because(echo(&peer, "a").await.unwrap_err()) }
    };
    let other = ClusterIdentity { id: 1, ..cluster() };
    let why = asks(CallerConfig { cluster: other, ..world.us.clone() }, 2).await;
    assert!(why.ends_with("it belongs to another cluster"), "{why}");
    let older = ClusterIdentity { generation: 0, ..cluster() };
    let why = asks(CallerConfig { cluster: older, ..world.us.clone() }, 2).await;
    assert!(why.ends_with("it knows generation 1 of the cluster"), "{why}");
    let why = asks(world.us.clone(), 3).await;
    assert!(why.ends_with("it is node 2"), "{why}");
    // A life before one that was met.
    echo(&peer(&us(&world.net, &world.env, identity(1, 8))), "a").await.unwrap();
    let why = asks(us(&world.net, &world.env, identity(1, 7)), 2).await;
    assert!(why.contains("it has met incarnation 8 of this node"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn new_connection_of_a_caller_ends_its_old_one() {
    let world = World::new(22);
    world.serve();
    let (old, new) = (world.peer(), world.peer());
    let running = old.call::<Wait>(&500, Vec::new(), within(1000));
    let other = async {
        pause(50).await;
        echo(&new, "new").await.unwrap();
    };
    let (ended, ()) = futures_util::future::join(running, other).await;
    assert_eq!(ended.unwrap_err(), CallError::Unknown(Reason::ConnectionLost));
    // The call was dropped, not just left alone.
    assert_eq!(*world.book.waits.lock().unwrap(), (0, 1));
    // Connections of other nodes go on.
    let third = peer(&us(&world.net, &world.env, identity(3, 1)));
    echo(&third, "third").await.unwrap();
    let before = world.net.connections();
    echo(&new, "new").await.unwrap();
    assert_eq!(world.net.connections(), before);
}

#[tokio::test(start_paused = true)]
async fn later_life_ends_all_connections_of_the_earlier_one() {
    let world = World::new(23);
    world.serve();
    let old = world.peer();
    let bulk = Bounds { answer_bytes_max: 1 << 20, ..within(1000) };
    let both = futures_util::future::join(
        old.call::<Wait>(&500, Vec::new(), within(1000)),
        old.call::<Wait>(&500, Vec::new(), bulk),
    );
    let other = async {
        pause(50).await;
        echo(&peer(&us(&world.net, &world.env, identity(1, 2))), "later").await.unwrap();
    };
    let ((small, bulk), ()) = futures_util::future::join(both, other).await;
    let lost = CallError::Unknown(Reason::ConnectionLost);
    assert_eq!((small.unwrap_err(), bulk.unwrap_err()), (lost.clone(), lost));
}

#[tokio::test(start_paused = true)]
async fn no_lane_of_a_later_life_is_served_before_the_earlier_life_has_ended() {
    let world = World::new(33);
    world.serve();
    let bulk = Bounds { answer_bytes_max: 1 << 20, ..within(1000) };
    for life in 1..20 {
        let waits = *world.book.waits.lock().unwrap();
        let [old, new] =
            [life, life + 1].map(|life| peer(&us(&world.net, &world.env, identity(1, life))));
        let running = futures_util::future::join(
            old.call::<Wait>(&500, Vec::new(), within(1000)),
            old.call::<Wait>(&500, Vec::new(), bulk),
        );
        let later = async {
            pause(50).await;
            let dropped = || world.book.waits.lock().unwrap().1 - waits.1;
            let small = async {
                echo(&new, "small").await.unwrap();
                assert_eq!(dropped(), 2);
            };
            let large = async {
                new.call::<Echo>(&String::new(), Vec::new(), bulk).await.unwrap();
                assert_eq!(dropped(), 2);
            };
            futures_util::future::join(small, large).await;
        };
        let ((small, large), ()) = futures_util::future::join(running, later).await;
        assert!(small.is_err() && large.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn overtaken_hello_ends_nothing() {
    let world = World::new(34);
    world.serve();
    let mut later = Raw::connected(&world).await;
    let hello = |attempt| introduction(Kind::Hello, &Hello { attempt, ..hello() }).unwrap();
    later.send(hello(5)).await;
    assert_eq!(later.next().await.unwrap().head.kind, Kind::Welcome);
    let mut overtaken = Raw::connected(&world).await;
    overtaken.send(hello(4)).await;
    let refused = overtaken.next().await.unwrap();
    let incarnation = Incarnation::new(1);
    assert_eq!(decode(&refused.message), Ok(Unwelcome::Superseded { incarnation }));
    later.send(Outgoing::bare(Kind::Ping, 0)).await;
    assert_eq!(later.next().await.unwrap().head.kind, Kind::Pong);
}

#[tokio::test(start_paused = true)]
async fn caller_of_another_release_is_told_which_versions_are_spoken() {
    let world = World::new(35);
    world.serve();
    let mut raw = Raw::connected(&world).await;
    let future = Hello { version_min: 7, version_max: 9, ..hello() };
    raw.send(introduction(Kind::Hello, &future).unwrap()).await;
    let refused = raw.next().await.unwrap();
    assert_eq!(refused.head.kind, Kind::Unwelcome);
    assert_eq!(decode(&refused.message), Ok(Unwelcome::Version { min: 1, max: 1 }));
    assert!(raw.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn removed_node_is_let_in_no_more() {
    let world = World::new(36);
    let server = Server::new(&world.env, world.config());
    let listener = world.net.host(address(2)).listen(PORT).unwrap();
    let serving = Arc::clone(&server).run(Box::new(listener));
    drop(world.env.tasks.spawn("server", serving));
    let peer = world.peer();
    let running = peer.call::<Wait>(&500, Vec::new(), within(1000));
    let remove = async {
        pause(50).await;
        server.remove(NodeId::new(1));
    };
    let (ended, ()) = futures_util::future::join(running, remove).await;
    assert_eq!(ended.unwrap_err(), CallError::Unknown(Reason::ConnectionLost));
    let why = unreachable_because(echo(&peer, "a").await.unwrap_err());
    assert!(why.ends_with("this node was removed from the cluster"), "{why}");
    let third = self::peer(&us(&world.net, &world.env, identity(3, 1)));
    echo(&third, "third").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn slow_transfer_is_no_silence() {
    let world = World::new(37);
    world.serve();
    let slow = Duration::from_millis(300);
    world.net.set_default_delay(slow..slow);
    world.net.set_buffer(64 << 10);
    let peer = world.peer();
    let bounds = Bounds { time: Duration::from_secs(600), answer_bytes_max: 4 << 20 };
    let begun = world.env.clock.monotonic();
    let empty = String::new();
    let call = peer.call::<Echo>(&empty, vec![piece(3 << 20)], bounds);
    assert_eq!(call.await.unwrap().1, piece(3 << 20));
    let took = world.env.clock.monotonic() - begun;
    assert!(took > Duration::from_secs(20), "{took:?}");
    assert_eq!(world.net.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_whose_time_is_over_before_its_turn_is_not_sent() {
    let world = World::new(38);
    world.serve();
    let peer = world.peer();
    let bulk = Bounds { answer_bytes_max: 2 << 20, ..within(60_000) };
    peer.call::<Echo>(&String::new(), Vec::new(), bulk).await.unwrap();
    // The connection is full.
    world.net.block(address(1), address(2));
    let empty = String::new();
    let long = peer.call::<Echo>(&empty, vec![piece(1 << 20)], bulk);
    let late = async {
        pause(10).await;
        let bulk = Bounds { time: Duration::from_millis(50), ..bulk };
        let late = peer.call::<Write>(&(0, 1), Vec::new(), bulk).await.unwrap_err();
        assert_eq!(late, CallError::NotDone(Reason::OutOfTime));
        // One whose caller goes.
        let wait = Duration::from_millis(50);
        let gone = peer.call::<Write>(&(0, 2), Vec::new(), bulk);
        tokio::time::timeout(wait / 2, gone).await.unwrap_err();
        world.net.unblock(address(1), address(2));
    };
    let (long, ()) = futures_util::future::join(long, late).await;
    assert_eq!(long.unwrap().1.len(), 1 << 20);
    peer.call::<Write>(&(0, 3), Vec::new(), bulk).await.unwrap();
    assert_eq!(*world.book.written.lock().unwrap(), [3]);
}

#[tokio::test(start_paused = true)]
async fn killed_node_ends_its_calls_and_is_reached_again_when_it_is_back() {
    let world = World::new(24);
    let first = world.serve();
    let peer = world.peer();
    let running = peer.call::<Wait>(&500, Vec::new(), within(1000));
    let kill = async {
        pause(50).await;
        world.net.kill(address(2));
    };
    let (ended, ()) = futures_util::future::join(running, kill).await;
    assert_eq!(ended.unwrap_err(), CallError::Unknown(Reason::ConnectionLost));
    first.shutdown().await;
    world.serve();
    assert_eq!(echo(&peer, "back").await.unwrap(), "back");
}

#[tokio::test(start_paused = true)]
async fn silent_connection_is_given_up() {
    let world = World::new(25);
    world.serve();
    let peer = world.peer();
    echo(&peer, "a").await.unwrap();
    world.net.power_off(address(2));
    let begun = world.env.clock.monotonic();
    let ended = peer.call::<Wait>(&60_000, Vec::new(), within(120_000)).await.unwrap_err();
    let took = world.env.clock.monotonic() - begun;
    assert_eq!(ended, CallError::Unknown(Reason::ConnectionLost));
    assert!((3..6).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn idle_connection_stays_and_a_slow_call_is_not_silence() {
    let world = World::new(26);
    world.serve();
    let peer = world.peer();
    echo(&peer, "a").await.unwrap();
    pause(3_600_000).await;
    echo(&peer, "b").await.unwrap();
    peer.call::<Wait>(&60_000, Vec::new(), within(120_000)).await.unwrap();
    assert_eq!(world.net.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn server_drops_the_reads_of_a_caller_that_fell_silent() {
    let world = World::new(27);
    world.serve();
    let peer = world.peer();
    let running = async {
        drop(peer.call::<Wait>(&60_000, Vec::new(), within(120_000)).await);
    };
    let cut = async {
        pause(50).await;
        world.net.power_off(address(1));
        pause(25_000).await;
        assert_eq!(*world.book.waits.lock().unwrap(), (0, 1));
    };
    futures_util::future::join(running, cut).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_program_ends_its_connections() {
    let world = World::new(28);
    let server = world.serve();
    let peer = world.peer();
    let running = peer.call::<Wait>(&60_000, Vec::new(), within(120_000));
    let stop = async {
        pause(50).await;
        let begun = world.env.clock.monotonic();
        server.shutdown().await;
        let took = world.env.clock.monotonic() - begun;
        assert!(took < Duration::from_secs(1), "{took:?}");
    };
    let (ended, ()) = futures_util::future::join(running, stop).await;
    assert_eq!(ended.unwrap_err(), CallError::Unknown(Reason::ConnectionLost));
    assert_eq!(*world.book.waits.lock().unwrap(), (0, 1));
    unreachable_because(echo(&peer, "b").await.unwrap_err());
}

fn hello() -> Hello {
    Hello {
        version_min: 1,
        version_max: 1,
        cluster: cluster(),
        from: identity(1, 1),
        roles: NodeRoles::ALL,
        to: NodeId::new(2),
        lane: Lane::Small,
        attempt: 0,
    }
}

/// A caller that sends what it likes.
struct Raw {
    reader: PacketReader<tokio::io::ReadHalf<Box<dyn Stream>>>,
    writer: tokio::io::WriteHalf<Box<dyn Stream>>,
}

impl Raw {
    async fn connected(world: &World) -> Self {
        let addr = (address(2), PORT).into();
        let stream = world.net.host(address(1)).connect(addr).await.unwrap();
        let (reader, writer) = tokio::io::split(stream);
        Self { reader: PacketReader::new(reader), writer }
    }

    async fn greeted(world: &World) -> Self {
        let mut raw = Self::connected(world).await;
        raw.send(introduction(Kind::Hello, &hello()).unwrap()).await;
        assert_eq!(raw.next().await.unwrap().head.kind, Kind::Welcome);
        raw
    }

    async fn send(&mut self, packet: Outgoing) {
        write_packet(&mut self.writer, packet).await.unwrap();
    }

    async fn next(&mut self) -> Option<Packet> {
        self.reader.next(|_| Ok(())).await.ok()
    }

    /// Whether the server closes the connection.
    async fn is_closed(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(6), self.next())
            .await
            .is_ok_and(|one| one.is_none())
    }
}

fn write_call(call: u64, time_left_ms: u32) -> Outgoing {
    let head = Head {
        method: Write::NUMBER,
        time_left_ms,
        answer_bytes_max: 1000,
        ..Head::bare(Kind::Call, call)
    };
    let mut draft = Draft::new();
    draft.message().extend_from_slice(&encode(&(0_u64, call)).unwrap());
    draft.finish(head, Vec::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn call_without_time_left_is_refused() {
    let world = World::new(29);
    world.serve();
    let mut raw = Raw::greeted(&world).await;
    raw.send(write_call(1, 0)).await;
    let refused = raw.next().await.unwrap();
    assert_eq!(
        (refused.head, decode(&refused.message)),
        (Head::bare(Kind::Refusal, 1), Ok(Refusal::Late))
    );
    raw.send(write_call(2, 1000)).await;
    assert_eq!(raw.next().await.unwrap().head, Head::bare(Kind::Answer, 2));
    assert_eq!(*world.book.written.lock().unwrap(), [2]);
}

#[tokio::test(start_paused = true)]
async fn caller_that_breaks_a_rule_is_cut_off() {
    let world = World::new(30);
    world.serve_with(|config| config.small_credit = Credit { calls: 2, bytes: 4000 });
    let large = |call| {
        let head = Head { answer_bytes_max: 4000, ..Head::bare(Kind::Call, call) };
        Draft::new().finish(head, Vec::new()).unwrap()
    };
    let wait = |call| {
        let head =
            Head { method: Wait::NUMBER, time_left_ms: 60_000, ..Head::bare(Kind::Call, call) };
        let mut draft = Draft::new();
        draft.message().extend_from_slice(&encode(&60_000_u64).unwrap());
        draft.finish(head, Vec::new()).unwrap()
    };
    let flipped = {
        let Outgoing { front, .. } = write_call(1, 1000);
        let mut front = front.to_vec();
        *front.last_mut().unwrap() ^= 1;
        Outgoing { front: front.into(), payload: Vec::new() }
    };
    let long_ping = Draft::new().finish(Head::bare(Kind::Ping, 0), vec![piece(1)]).unwrap();
    let none = Outgoing::bare(Kind::Call, 0);
    let rules = [
        ("a call without a number", vec![none]),
        ("more bytes than granted", vec![large(1)]),
        ("more calls than granted", vec![wait(1), wait(2), wait(3)]),
        ("one number twice", vec![wait(1), wait(1)]),
        ("a wrong checksum", vec![flipped]),
        ("a ping with a payload", vec![long_ping]),
        ("an answer", vec![Outgoing::bare(Kind::Answer, 1)]),
        ("a second hello", vec![Outgoing::bare(Kind::Hello, 0)]),
    ];
    for (rule, packets) in rules {
        let mut raw = Raw::greeted(&world).await;
        for packet in packets {
            raw.send(packet).await;
        }
        assert!(raw.is_closed().await, "{rule}");
    }
    assert!(world.book.written.lock().unwrap().is_empty());
    // One that breaks none is served.
    let mut raw = Raw::greeted(&world).await;
    raw.send(Outgoing::bare(Kind::Ping, 0)).await;
    assert_eq!(raw.next().await.unwrap().head, Head::bare(Kind::Pong, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_say_hello_is_cut_off() {
    let world = World::new(31);
    world.serve();
    let mut silent = Raw::connected(&world).await;
    let mut early = Raw::connected(&world).await;
    early.send(write_call(1, 1000)).await;
    let mut other = Raw::connected(&world).await;
    other
        .writer
        .write_all(b"GET / HTTP/1.1\r\nHost: of another protocol, quite long\r\n\r\n")
        .await
        .unwrap();
    for raw in [&mut silent, &mut early, &mut other] {
        assert!(raw.is_closed().await);
    }
    assert!(world.book.written.lock().unwrap().is_empty());
}

/// A server that sends this after its welcome.
async fn faulty_server(world: &World, packet: Outgoing) -> CallError {
    let listener = world.net.host(address(2)).listen(PORT).unwrap();
    let serving = async {
        let (stream, _) = crate::env::net::Listener::accept(&listener).await.unwrap();
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = PacketReader::new(reader);
        reader.next(|_| Ok(())).await.unwrap();
        let credit = Credit { calls: 10, bytes: 1 << 20 };
        let welcome = Welcome { version: 1, from: identity(2, 1), roles: NodeRoles::ALL, credit };
        write_packet(&mut writer, introduction(Kind::Welcome, &welcome).unwrap()).await.unwrap();
        reader.next(|_| Ok(())).await.unwrap();
        write_packet(&mut writer, packet).await.unwrap();
        // Until the caller goes.
        let mut rest = Vec::new();
        drop(reader.into_stream().read_to_end(&mut rest).await);
    };
    let peer = world.peer();
    let calling = async {
        let ended = echo(&peer, "a").await.unwrap_err();
        peer.disconnect();
        ended
    };
    futures_util::future::join(serving, calling).await.1
}

#[tokio::test(start_paused = true)]
async fn server_that_breaks_a_rule_is_left() {
    let world = World::new(32);
    let answer = |call, message: &[u8], payload: usize| {
        let mut draft = Draft::new();
        draft.message().extend_from_slice(message);
        draft.finish(Head::bare(Kind::Answer, call), vec![piece(payload)]).unwrap()
    };
    let lost = CallError::Unknown(Reason::ConnectionLost);
    for packet in [
        answer(1, &[1, 1, b'a'], 5000),
        answer(2, &[1, 1, b'a'], 0),
        Outgoing::bare(Kind::Cancel, 1),
    ] {
        assert_eq!(faulty_server(&world, packet).await, lost);
    }
    let malformed = faulty_server(&world, answer(1, &[2, 1, b'a'], 0)).await;
    assert_eq!(malformed, CallError::Unknown(Reason::Malformed));
    let unknown = faulty_server(&world, Outgoing::bare(Kind::Refusal, 1)).await;
    assert_eq!(unknown, CallError::Unknown(Reason::Malformed));
}
