use prometheus_client::metrics::counter::Counter;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::env::clock::SimClock;
use crate::env::net::PipeConnect;
use crate::env::net::PipeListen;
use crate::env::rand::SeededRand;
use crate::env::tasks::Tasks;

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

struct Served {
    state: AdminState,
    connect: PipeConnect,
    env: Env,
}

fn serve() -> Served {
    let tasks = Tasks::new();
    let env = Env { clock: Arc::new(SimClock::new()), rand: Arc::new(SeededRand::new(1)), tasks };
    let (listener, connect) = PipeListen::new();
    let state = AdminState::new(Token::new(TOKEN));
    let server = AdminServer::new(Box::new(listener), state.clone(), env.clone());
    drop(env.tasks.spawn("admin", server.run(env.tasks.stopping())));
    Served { state, connect, env }
}

impl Served {
    /// As once every role runs.
    fn ready(&self) -> Control {
        let mut registry = Registry::default();
        let control = Control {
            trace: Trace::default(),
            faults: Faults::new(self.env.clone(), &mut registry),
        };
        self.state.control.set(control.clone()).unwrap();
        control
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "", "").await
    }

    async fn command(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let token = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
        let (status, text) = self.ask(method, path, &token, body).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect.connect().await.unwrap();
        let len = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len}\r\n{headers}\r\n{body}"
        );
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

#[tokio::test]
async fn commands_need_the_token() {
    let served = serve();
    served.ready();
    for path in ["/admin/faults", "/admin/trace", "/admin", "/admin/nothing"] {
        for shown in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic x\r\n"] {
            let (status, text) = served.ask("GET", path, shown, "").await;
            assert_eq!(status, 401, "{path} {shown}");
            assert!(text.contains("token"), "{text}");
        }
    }
    assert_eq!(served.command("GET", "/admin/faults", "").await.0, 200);
    let (status, refused) = served.command("GET", "/admin/nothing", "").await;
    assert_eq!((status, refused["error"]["code"].as_str()), (404, Some("NoSuchPath")));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn commands_wait_for_the_roles() {
    let served = serve();
    let (status, refused) = served.command("GET", "/admin/faults", "").await;
    assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("Starting")));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn fault_rules_are_set_listed_and_cleared() {
    let served = serve();
    let control = served.ready();
    let rule = r#"{"kind":"busy","operations":["PutBlob"],"rate":0.5,"seed":3}"#;
    let (status, set) = served.command("POST", "/admin/faults", rule).await;
    assert_eq!((status, set["id"].as_u64()), (201, Some(1)));
    assert_eq!(control.faults.list().len(), 1);
    let (_, list) = served.command("GET", "/admin/faults", "").await;
    assert_eq!(list[0]["rule"]["seed"], 3);
    for (body, expected) in [(r#"{"kind":"busy","rate":2}"#, "rate"), (r#"{"kind":"off"}"#, "off")]
    {
        let (status, refused) = served.command("POST", "/admin/faults", body).await;
        assert_eq!(status, 400, "{body}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(expected), "{refused}");
    }
    assert_eq!(served.command("DELETE", "/admin/faults/9", "").await.0, 404);
    assert_eq!(served.command("DELETE", "/admin/faults", "").await.1["cleared"], 1);
    assert!(control.faults.list().is_empty());
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
