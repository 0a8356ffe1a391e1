//! Connections that panic, stall or say nothing: others are answered all the same.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use tokio::io::DuplexStream;

use super::*;
use crate::admin::connections::CONNECTIONS_MAX;
use crate::env::net::Stream;

/// Panics at its first connections.
#[derive(Debug)]
struct Stumbles(PipeListen, AtomicUsize);

#[async_trait]
impl Listener for Stumbles {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        let left = self.1.load(Ordering::SeqCst);
        if left > 0 {
            self.1.store(left - 1, Ordering::SeqCst);
            panic!("stumbled");
        }
        self.0.accept().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[tokio::test(start_paused = true)]
async fn admin_listener_that_panicked_serves_again() {
    let tasks = Tasks::new();
    let env = Env { clock: Arc::new(SimClock::new()), rand: Arc::new(SeededRand::new(1)), tasks };
    let (listener, connect) = PipeListen::new();
    let state = AdminState::new(Token::new(TOKEN));
    let listener = Box::new(Stumbles(listener, AtomicUsize::new(2)));
    AdminServer::new(listener, state.clone(), env.clone()).start(env.tasks.stopping());
    env.clock.sleep(Duration::from_secs(10)).await;
    let served = Served { state, connect, env };
    served.state.readiness.set(Phase::Ready);
    let answered = tokio::time::timeout(Duration::from_secs(60), served.get("/readyz")).await;
    assert_eq!(answered, Ok((200, "ready\n".to_owned())));
    assert_eq!(served.env.tasks.health().panics("admin"), 2);
    served.env.tasks.shutdown().await;
}

/// Opens connections that ask `request`, and reads nothing of the answers but their first byte.
async fn ask_and_stall(served: &Served, count: usize, request: &str) -> Vec<DuplexStream> {
    let mut stalled = Vec::new();
    for _ in 0..count {
        let mut stream = served.connect.connect().await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        if !request.is_empty() {
            stream.read_exact(&mut [0]).await.unwrap();
        }
        stalled.push(stream);
    }
    stalled
}

#[tokio::test]
async fn silent_connections_do_not_keep_health_from_being_answered() {
    tokio::time::pause();
    let served = serve();
    served.state.readiness.set(Phase::Ready);
    let _silent = ask_and_stall(&served, 3 * CONNECTIONS_MAX, "").await;
    let begun = served.env.clock.monotonic();
    assert_eq!(served.get("/healthz").await.0, 200);
    assert_eq!(served.get("/readyz").await.0, 200);
    assert_eq!(served.env.clock.monotonic(), begun, "nobody's time had to run out");
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn requests_that_never_end_do_not_keep_health_from_being_answered() {
    tokio::time::pause();
    let served = serve();
    served.ready().await;
    served.state.readiness.set(Phase::Ready);
    let watch = format!("GET /admin/trace HTTP/1.1\r\nHost: localhost\r\n{}\r\n", token());
    let _watchers = ask_and_stall(&served, WORK_MAX, &watch).await;
    let (status, refused) = served.command("GET", "/admin/faults", "").await;
    assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("Busy")));
    let _silent = ask_and_stall(&served, 3 * CONNECTIONS_MAX, "").await;
    assert_eq!(served.get("/healthz").await.0, 200);
    assert_eq!(served.get("/readyz").await.0, 200);
    served.env.tasks.shutdown().await;
}

/// Opens connections that ask for `path` again and again until the server takes no more, because
/// none of the answers is read.
async fn ask_until_full(served: &Served, count: usize, path: &str) -> Vec<DuplexStream> {
    let (mut full, mut pad) = (Vec::new(), String::new());
    while full.len() < count {
        let request = format!("GET {path}?{pad} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let requests = request.repeat(20_000);
        let mut stream = served.connect.connect().await.unwrap();
        let asked = stream.write_all(requests.as_bytes());
        match tokio::time::timeout(Duration::from_millis(1), asked).await {
            Err(_) => full.push(stream),
            Ok(asked) => {
                // One read ended between a head and its body: hyper closed the connection.
                assert!(asked.is_err() && pad.len() < 100, "{path} {asked:?} {}", full.len());
                pad.push('x');
            }
        }
    }
    full
}

#[tokio::test]
async fn health_checks_that_are_not_read_do_not_keep_others_from_being_answered() {
    tokio::time::pause();
    let served = serve();
    served.state.readiness.set(Phase::Ready);
    for path in ["/healthz", "/readyz"] {
        let _full = ask_until_full(&served, CONNECTIONS_MAX, path).await;
        let begun = served.env.clock.monotonic();
        for _ in 0..CONNECTIONS_MAX {
            assert_eq!(served.get("/healthz").await.0, 200, "{path}");
        }
        assert_eq!(served.env.clock.monotonic(), begun, "nobody's time had to run out");
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn connection_whose_client_does_not_read_is_cut() {
    tokio::time::pause();
    let served = serve();
    let mut registry = Registry::default();
    for number in 0..10_000 {
        registry.register(format!("things_{number}"), "Things", Counter::<u64>::default());
    }
    served.state.registry.set(registry).unwrap();
    let whole = served.get("/metrics").await.1.len();
    let metrics = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (pause, is_cut) in [(50, false), (62, true)] {
        let mut stalled = ask_and_stall(&served, 1, metrics).await;
        served.env.clock.sleep(Duration::from_secs(pause)).await;
        let mut answer = vec![0; whole];
        let read = stalled[0].read_exact(&mut answer).await;
        assert_eq!(read.is_err(), is_cut, "after {pause} s");
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    tokio::time::pause();
    let served = serve();
    let mut idle = served.connect.connect().await.unwrap();
    let mut nothing = Vec::new();
    idle.read_to_end(&mut nothing).await.unwrap();
    served.env.tasks.shutdown().await;
}
