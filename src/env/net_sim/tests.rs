use std::collections::BTreeSet;
use std::io;
use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio::time::timeout;

use super::*;
use crate::env::Clock;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Listener;
use crate::env::net::Stream;

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const SERVICE: SocketAddr = SocketAddr::new(B, 80);
const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

type Conn = Box<dyn Stream>;

fn fixed(delay: Duration) -> Range<Duration> {
    delay..delay
}

/// The two ends of a new connection from A to B, and the listener.
async fn connected(net: &SimNet) -> (Conn, Conn, SimListen) {
    let listener = net.host(B).listen(80).unwrap();
    let client = net.host(A).connect(SERVICE).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer.ip(), A);
    (client, server, listener)
}

fn dial(net: &SimNet) -> JoinHandle<io::Result<Conn>> {
    let host = net.host(A);
    Tasks::new().spawn("dial", async move { host.connect(SERVICE).await })
}

/// Reads to the end: the bytes, and the error that came instead of an end.
async fn drain(stream: &mut Conn) -> (Vec<u8>, Option<io::ErrorKind>) {
    let mut bytes = Vec::new();
    let error = stream.read_to_end(&mut bytes).await.err().map(|error| error.kind());
    (bytes, error)
}

async fn write_error(stream: &mut Conn) -> Option<io::ErrorKind> {
    stream.write(b"x").await.err().map(|error| error.kind())
}

/// Whether nothing can be read for an hour.
async fn is_silent(stream: &mut Conn) -> bool {
    timeout(HOUR, stream.read_u8()).await.is_err()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

const RESET: Option<io::ErrorKind> = Some(io::ErrorKind::ConnectionReset);

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_order_whatever_the_delays() {
    let net = SimNet::new(1);
    net.set_default_delay(Duration::ZERO..50 * MS);
    net.set_short_reads(2);
    let (mut client, mut server, _listener) = connected(&net).await;
    let sent = pattern(1_000_000);
    let bytes = sent.clone();
    let writer = Tasks::new().spawn("writer", async move {
        for (number, piece) in bytes.chunks(7777).enumerate() {
            client.write_all(piece).await.unwrap();
            sleep(MS * u32::try_from(number % 3).unwrap()).await;
        }
    });
    assert!(drain(&mut server).await == (sent, None));
    writer.await.unwrap();
    assert_eq!((net.bytes(), net.connections()), (1_000_000, 1));
}

#[tokio::test(start_paused = true)]
async fn some_reads_return_a_part() {
    let lens = async |one_in| {
        let net = SimNet::new(2);
        net.set_short_reads(one_in);
        let (mut client, mut server, _listener) = connected(&net).await;
        let mut lens = BTreeSet::new();
        for _ in 0..100 {
            client.write_all(&[7; 100]).await.unwrap();
            sleep(10 * MS).await;
            let mut buf = [0; 100];
            let len = server.read(&mut buf).await.unwrap();
            server.read_exact(&mut buf[len..]).await.unwrap();
            lens.insert(len);
        }
        lens
    };
    assert_eq!(lens(0).await, BTreeSet::from([100]));
    let seen = lens(4).await;
    assert!(seen.len() > 10 && !seen.contains(&0), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn pieces_of_a_vectored_write_arrive_as_one() {
    let net = SimNet::new(3);
    net.set_buffer(5);
    let (mut client, mut server, _listener) = connected(&net).await;
    assert!(client.is_write_vectored());
    let pieces = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"defg")];
    assert_eq!(client.write_vectored(&pieces).await.unwrap(), 5);
    drop(client);
    assert_eq!(drain(&mut server).await, (b"abcde".to_vec(), None));
}

#[tokio::test(start_paused = true)]
async fn writer_waits_until_the_reader_makes_room() {
    let net = SimNet::new(4);
    let (mut client, mut server, _listener) = connected(&net).await;
    let mut written = 0;
    while let Ok(more) = timeout(HOUR, client.write(&[1; 10_000])).await {
        written += more.unwrap();
    }
    assert_eq!(written, 256 << 10);
    let writer =
        Tasks::new().spawn("writer", async move { client.write(&[1; 5000]).await.unwrap() });
    sleep(HOUR).await;
    assert!(!writer.is_finished());
    server.read_exact(&mut [0; 1]).await.unwrap();
    assert_eq!(writer.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_half_follows_its_bytes() {
    let net = SimNet::new(5);
    let (mut client, mut server, _listener) = connected(&net).await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(write_error(&mut client).await, Some(io::ErrorKind::BrokenPipe));
    assert_eq!(drain(&mut server).await, (b"question".to_vec(), None));
    server.write_all(b"answer").await.unwrap();
    drop(server);
    assert_eq!(drain(&mut client).await, (b"answer".to_vec(), None));
}

#[tokio::test(start_paused = true)]
async fn dropped_stream_ends_both_halves_of_the_peer() {
    let net = SimNet::new(6);
    net.set_default_delay(fixed(10 * MS));
    let (mut client, mut server, _listener) = connected(&net).await;
    client.write_all(b"last").await.unwrap();
    drop(client);
    sleep(9 * MS).await;
    assert_eq!(write_error(&mut server).await, None, "the notice is still on its way");
    sleep(MS).await;
    assert_eq!(write_error(&mut server).await, Some(io::ErrorKind::BrokenPipe));
    assert_eq!(drain(&mut server).await, (b"last".to_vec(), None));
}

#[tokio::test(start_paused = true)]
async fn waiting_writer_hears_of_the_end() {
    let causes = [(false, io::ErrorKind::BrokenPipe), (true, io::ErrorKind::ConnectionReset)];
    for (is_cut, expected) in causes {
        let net = SimNet::new(7);
        let (mut client, server, _listener) = connected(&net).await;
        let writer =
            Tasks::new().spawn("writer", async move { client.write_all(&[0; 1 << 20]).await });
        sleep(HOUR).await;
        assert!(!writer.is_finished());
        let _kept = is_cut.then_some(server);
        if is_cut {
            net.cut(A, B);
        }
        assert_eq!(writer.await.unwrap().unwrap_err().kind(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn dial_takes_a_round_trip_and_is_refused_without_a_listener() {
    let clock = SimClock::new();
    let net = SimNet::new(8);
    net.set_delay(A, B, fixed(10 * MS));
    net.set_delay(B, A, fixed(30 * MS));
    let refused = net.host(A).connect(SERVICE).await.err().unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(clock.monotonic(), 40 * MS);
    let (_client, _server, listener) = connected(&net).await;
    assert_eq!(clock.monotonic(), 90 * MS, "a round trip, and the end of the handshake");
    drop(listener);
    assert!(net.host(A).connect(SERVICE).await.is_err());
    assert_eq!(net.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_listener_resets_who_was_not_accepted() {
    let net = SimNet::new(9);
    let listener = net.host(B).listen(80).unwrap();
    let mut client = net.host(A).connect(SERVICE).await.unwrap();
    drop(listener);
    assert_eq!(drain(&mut client).await, (vec![], RESET));
}

#[tokio::test(start_paused = true)]
async fn host_gives_each_port_once() {
    let host = SimNet::new(10).host(B);
    let first = host.listen(0).unwrap();
    let port = first.local_addr().unwrap().port();
    assert_ne!(host.listen(0).unwrap().local_addr().unwrap().port(), port);
    assert_eq!(host.listen(port).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(first);
    assert!(host.listen(port).is_ok());
}

#[tokio::test(start_paused = true)]
async fn names_resolve_on_every_host() {
    let net = SimNet::new(11);
    net.name("node-b", B);
    let host = net.host(A);
    assert_eq!(host.resolve("node-b", 80).await.unwrap(), [SERVICE]);
    assert_eq!(host.resolve("10.0.0.2", 80).await.unwrap(), [SERVICE]);
    let unknown = host.resolve("node-c", 80).await.unwrap_err();
    assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn one_way_block_holds_and_loses_nothing() {
    let net = SimNet::new(12);
    net.set_default_delay(fixed(10 * MS));
    let (mut client, mut server, _listener) = connected(&net).await;
    client.write_all(b"1").await.unwrap();
    sleep(10 * MS).await;
    client.write_all(b"2").await.unwrap();
    net.block(A, B);
    client.write_all(b"3").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'1', "it had arrived");
    assert!(is_silent(&mut server).await, "2 was in flight");
    server.write_all(b"back").await.unwrap();
    client.read_exact(&mut [0; 4]).await.unwrap();
    drop(client);
    let reader = Tasks::new().spawn("reader", async move {
        let read = drain(&mut server).await;
        (read, write_error(&mut server).await)
    });
    sleep(HOUR).await;
    assert!(!reader.is_finished());
    net.unblock(A, B);
    sleep(9 * MS).await;
    assert!(!reader.is_finished(), "the delay counts from the unblocking");
    let expected = ((b"23".to_vec(), None), Some(io::ErrorKind::BrokenPipe));
    assert_eq!(reader.await.unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn dial_waits_for_both_directions() {
    for (from, to) in [(A, B), (B, A)] {
        let net = SimNet::new(13);
        let listener = net.host(B).listen(80).unwrap();
        net.block(from, to);
        let dialing = dial(&net);
        sleep(HOUR).await;
        assert!(!dialing.is_finished());
        net.unblock(from, to);
        let mut client = dialing.await.unwrap().unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    }
}

#[tokio::test(start_paused = true)]
async fn accept_waits_for_the_end_of_the_handshake() {
    let net = SimNet::new(14);
    let listener = net.host(B).listen(80).unwrap();
    let mut client = net.host(A).connect(SERVICE).await.unwrap();
    net.block(A, B);
    client.write_all(b"x").await.unwrap();
    let accepting = Tasks::new().spawn("accept", async move { listener.accept().await.unwrap() });
    sleep(HOUR).await;
    assert!(!accepting.is_finished());
    net.unblock(A, B);
    assert_eq!(accepting.await.unwrap().0.read_u8().await.unwrap(), b'x');
}

/// Repeats with many seeds: what arrives is a prefix, of many lengths, and a reset follows.
async fn check_prefixes(fault: impl Fn(&SimNet)) -> BTreeSet<usize> {
    let mut lens = BTreeSet::new();
    for seed in 0..200 {
        let net = SimNet::new(seed);
        let (mut client, mut server, _listener) = connected(&net).await;
        client.write_all(&pattern(100)).await.unwrap();
        server.write_all(&pattern(100)).await.unwrap();
        fault(&net);
        let (bytes, error) = drain(&mut client).await;
        assert_eq!((&bytes[..], error), (&pattern(bytes.len())[..], RESET));
        assert_eq!(write_error(&mut client).await, RESET);
        lens.insert(bytes.len());
        let (bytes, error) = drain(&mut server).await;
        assert_eq!((&bytes[..], error), (&pattern(bytes.len())[..], RESET));
        assert_eq!(write_error(&mut server).await, RESET);
    }
    lens
}

#[tokio::test(start_paused = true)]
async fn cut_delivers_a_prefix_and_resets_both_ends() {
    let lens = check_prefixes(|net| net.cut(B, A)).await;
    assert!(lens.len() > 50 && lens.last() <= Some(&100), "{lens:?}");
}

#[tokio::test(start_paused = true)]
async fn cut_spares_other_hosts_and_later_connections() {
    let net = SimNet::new(15);
    let (mut client, _server, _listener) = connected(&net).await;
    net.cut(A, A);
    net.cut(B, B);
    assert!(is_silent(&mut client).await);
    net.cut(A, B);
    let mut later = net.host(A).connect(SERVICE).await.unwrap();
    assert_eq!(drain(&mut client).await, (vec![], RESET));
    assert!(is_silent(&mut later).await);
}

#[tokio::test(start_paused = true)]
async fn kill_resets_peers_and_ends_listeners() {
    let lens = check_prefixes(|net| net.kill(B)).await;
    assert!(lens.len() > 50, "{lens:?}");
    let net = SimNet::new(16);
    let (mut client, mut server, listener) = connected(&net).await;
    net.kill(B);
    assert_eq!(drain(&mut server).await, (vec![], RESET));
    assert_eq!(drain(&mut client).await, (vec![], RESET));
    assert_eq!(listener.accept().await.err().unwrap().kind(), io::ErrorKind::NotConnected);
    let next = net.host(B).listen(80).unwrap();
    drop(listener);
    let client = net.host(A).connect(SERVICE).await;
    assert!(client.is_ok() && next.accept().await.is_ok(), "the old listener has no port");
}

#[tokio::test(start_paused = true)]
async fn kill_ends_waiting_dials_and_accepts_of_the_host() {
    let net = SimNet::new(17);
    let listener = net.host(A).listen(80).unwrap();
    let accepting = Tasks::new().spawn("accept", async move { listener.accept().await.err() });
    net.block(A, B);
    let dialing = dial(&net);
    sleep(HOUR).await;
    assert!(!dialing.is_finished() && !accepting.is_finished());
    net.kill(A);
    assert_eq!(dialing.await.unwrap().err().map(|error| error.kind()), RESET);
    assert!(accepting.await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn host_without_power_is_silent_and_then_knows_no_connection() {
    let net = SimNet::new(18);
    let (mut writing, mut server, listener) = connected(&net).await;
    let mut idle = net.host(A).connect(SERVICE).await.unwrap();
    sleep(HOUR).await;
    net.power_off(B);
    assert_eq!(drain(&mut server).await, (vec![], RESET));
    assert!(listener.accept().await.is_err());
    assert_eq!(net.host(B).listen(80).unwrap_err().kind(), io::ErrorKind::NetworkDown);
    assert_eq!(write_error(&mut writing).await, None);
    let dialing = dial(&net);
    assert!(is_silent(&mut writing).await && is_silent(&mut idle).await);
    assert!(!dialing.is_finished());
    net.power_on(B);
    let next = net.host(B).listen(80).unwrap();
    assert_eq!(drain(&mut writing).await, (vec![], RESET), "its byte is sent again");
    assert!(is_silent(&mut idle).await, "it has sent nothing");
    assert_eq!(write_error(&mut idle).await, None);
    assert_eq!(drain(&mut idle).await, (vec![], RESET));
    assert!(dialing.await.unwrap().is_ok() && next.accept().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiting_reader_and_writer_hear_the_reset_after_power_on() {
    let net = SimNet::new(19);
    let (client, _server, _listener) = connected(&net).await;
    net.power_off(B);
    let (mut reading, mut writing) = tokio::io::split(client);
    let reader = Tasks::new().spawn("reader", async move { reading.read_u8().await });
    let writer =
        Tasks::new().spawn("writer", async move { writing.write_all(&[0; 1 << 20]).await });
    sleep(HOUR).await;
    net.block(A, B);
    net.power_on(B);
    sleep(HOUR).await;
    assert!(!reader.is_finished() && !writer.is_finished(), "B hears of it after the block");
    net.unblock(A, B);
    assert_eq!(reader.await.unwrap().err().map(|error| error.kind()), RESET);
    assert_eq!(writer.await.unwrap().err().map(|error| error.kind()), RESET);
}

/// When how many bytes arrive.
async fn trace(seed: u64) -> Vec<(Duration, usize)> {
    let clock = SimClock::new();
    let net = SimNet::new(seed);
    net.set_default_delay(MS..100 * MS);
    let (mut client, mut server, _listener) = connected(&net).await;
    let writer = Tasks::new().spawn("writer", async move {
        for _ in 0..50 {
            client.write_all(&[0; 100]).await.unwrap();
            sleep(50 * MS).await;
        }
    });
    let mut seen = Vec::new();
    let mut buf = [0; 1000];
    loop {
        match server.read(&mut buf).await.unwrap() {
            0 => break,
            len => seen.push((clock.monotonic(), len)),
        }
    }
    writer.await.unwrap();
    seen
}

#[tokio::test(start_paused = true)]
async fn seed_determines_when_bytes_arrive() {
    let first = trace(20).await;
    assert!(first.len() > 20, "{first:?}");
    assert_eq!(trace(20).await, first);
    assert_ne!(trace(21).await, first);
}
