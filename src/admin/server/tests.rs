use prometheus_client::metrics::counter::Counter;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::env::clock::SimClock;
use crate::env::net::PipeConnect;
use crate::env::net::PipeListen;
use crate::env::rand::SeededRand;
use crate::env::tasks::Tasks;

struct Served {
    state: AdminState,
    connect: PipeConnect,
    env: Env,
}

fn serve() -> Served {
    let tasks = Tasks::new();
    let env = Env { clock: Arc::new(SimClock::new()), rand: Arc::new(SeededRand::new(1)), tasks };
    let (listener, connect) = PipeListen::new();
    let state = AdminState::default();
    let server = AdminServer::new(Box::new(listener), state.clone(), env.clone());
    drop(env.tasks.spawn("admin", server.run(env.tasks.stopping())));
    Served { state, connect, env }
}

impl Served {
    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = self.connect.connect().await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

#[tokio::test]
async fn readyz_follows_the_phase_and_healthz_does_not() {
    let served = serve();
    let phases = [(Phase::Starting, 503), (Phase::Ready, 200), (Phase::Draining, 503)];
    for (phase, status) in phases {
        served.state.readiness.set(phase);
        assert_eq!(served.get("/readyz").await, (status, format!("{}\n", phase.word())));
        assert_eq!(served.get("/healthz").await.0, 200);
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn metrics_show_what_roles_registered() {
    let served = serve();
    assert_eq!(served.get("/metrics").await.0, 503, "before the roles have registered");
    let mut registry = Registry::default();
    let counter = Counter::<u64>::default();
    registry.register("things", "Things counted", counter.clone());
    served.state.registry.set(registry).unwrap();
    counter.inc_by(42);
    let (status, text) = served.get("/metrics").await;
    assert_eq!(status, 200);
    assert!(text.contains("\nthings_total 42\n"), "{text}");
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let served = serve();
    assert_eq!(served.get("/").await.0, 404);
    assert_eq!(served.get("/metrics/../secret").await.0, 404);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let served = serve();
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        idle.push(served.connect.connect().await.unwrap());
    }
    let asked = served.get("/healthz");
    let mut asked = std::pin::pin!(asked);
    assert!(futures_util::poll!(asked.as_mut()).is_pending());
    idle.pop();
    assert_eq!(asked.await.0, 200);
    served.env.tasks.shutdown().await;
}
