//! Calls over TCP, on several threads.

use futures_util::future::join_all;

use super::service::Write;
use super::*;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::net::Listener;
use crate::env::net::TcpDial;
use crate::env::net::TcpListen;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_call_at_once() {
    let (clock, rand) = (Arc::new(OsClock::new()), Arc::new(OsRand));
    let env = Env { clock, rand, tasks: Tasks::new() };
    let book = Arc::<Book>::default();
    let service: Arc<dyn Service> =
        Arc::new(TestService { book: Arc::clone(&book), clock: env.clock.clone() });
    let services = [(service::SERVICE, service)].into();
    let mut config = ServerConfig::new(identity(2, 1), cluster(), services);
    config.small_credit = Credit { calls: 8, bytes: 1 << 20 };
    let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(env.tasks.spawn("server", Server::new(&env, config).run(Box::new(listener))));
    let (dial, security) = (Arc::new(TcpDial), Security::Loopback);
    let (node, roles) = (identity(1, 1), NodeRoles::ALL);
    let us = CallerConfig { env: env.clone(), dial, security, cluster: cluster(), node, roles };
    let peer = Arc::new(RemoteNode::new(&us, NodeId::new(2), "127.0.0.1", port));
    let tasks = (0..16_u64).map(|task| {
        let peer = Arc::clone(&peer);
        env.tasks.spawn("caller", async move {
            let bounds = Bounds { time: Duration::from_secs(60), answer_bytes_max: 300_000 };
            for number in 0..50 {
                let (text, payload) = (format!("{task} {number}"), piece(5_000 * (number % 50)));
                let call = peer.call::<Echo>(&text, vec![payload.clone()], bounds);
                assert_eq!(call.await.unwrap(), (text, payload));
                let write = (0, task * 50 + number as u64);
                peer.call::<Write>(&write, Vec::new(), within(60_000)).await.unwrap();
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let mut written = book.written.lock().unwrap().clone();
    written.sort_unstable();
    assert_eq!(written, (0..800).collect::<Vec<_>>());
    env.tasks.shutdown().await;
}
