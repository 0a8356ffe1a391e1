//! Calls between nodes on a simulated network.

mod calls;
mod connections;
mod histories;
mod service;
mod tcp;
mod tls;

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use self::service::Book;
use self::service::Echo;
use self::service::TestService;
use super::*;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::env::net_sim::SimNet;
use crate::types::ClusterNumber;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;

const PORT: u16 = 7000;
const DELAY: Range<Duration> = Duration::from_micros(100)..Duration::from_micros(400);

fn address(node: u64) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(node).unwrap()).into()
}

fn cluster() -> ClusterIdentity {
    ClusterIdentity { number: ClusterNumber::new(3), id: 0xABC, generation: 1 }
}

fn identity(node: u64, incarnation: u64) -> NodeIdentity {
    NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(incarnation) }
}

fn env(seed: u64) -> Env {
    let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(seed)));
    Env { clock, rand, tasks: Tasks::new() }
}

/// Two nodes: 1 calls, 2 serves.
struct World {
    net: SimNet,
    env: Env,
    book: Arc<Book>,
    us: CallerConfig,
}

impl World {
    fn new(seed: u64) -> Self {
        let net = SimNet::new(seed);
        net.set_default_delay(DELAY);
        let env = env(seed);
        let us = us(&net, &env, identity(1, 1));
        Self { net, env, book: Arc::default(), us }
    }

    fn config(&self) -> ServerConfig {
        let service: Arc<dyn Service> =
            Arc::new(TestService { book: Arc::clone(&self.book), clock: self.env.clock.clone() });
        let services = [(service::SERVICE, service)].into();
        let mut config = ServerConfig::new(identity(2, 1), cluster(), services);
        config.security = Security::TrustedNetwork;
        config
    }

    /// Serves, with what `change` makes of the configuration.
    fn serve_with(&self, change: impl FnOnce(&mut ServerConfig)) -> Tasks {
        let mut config = self.config();
        change(&mut config);
        let env = Env { tasks: Tasks::new(), ..self.env.clone() };
        let listener = self.net.host(address(2)).listen(PORT).unwrap();
        let server = Server::new(&env, config);
        drop(env.tasks.spawn("server", server.run(Box::new(listener))));
        env.tasks
    }

    fn serve(&self) -> Tasks {
        self.serve_with(|_| {})
    }

    fn peer(&self) -> RemoteNode {
        peer(&self.us)
    }
}

fn us(net: &SimNet, env: &Env, node: NodeIdentity) -> CallerConfig {
    let dial = Arc::new(net.host(address(node.node.get())));
    let security = Security::TrustedNetwork;
    CallerConfig {
        env: env.clone(),
        dial,
        security,
        cluster: cluster(),
        node,
        roles: NodeRoles::ALL,
    }
}

fn peer(us: &CallerConfig) -> RemoteNode {
    RemoteNode::new(us, NodeId::new(2), &address(2).to_string(), PORT)
}

fn within(ms: u64) -> Bounds {
    Bounds { time: Duration::from_millis(ms), answer_bytes_max: 4096 }
}

async fn echo(peer: &RemoteNode, text: &str) -> Result<String, CallError> {
    peer.call::<Echo>(&text.to_owned(), Vec::new(), within(1000)).await.map(|(text, _)| text)
}

fn pause(ms: u64) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_millis(ms))
}

fn piece(bytes: usize) -> Bytes {
    Bytes::from((0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect::<Vec<_>>())
}
