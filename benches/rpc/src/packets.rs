//! A server and a caller of `src/rpc`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use blockyard::env::Env;
use blockyard::env::OsClock;
use blockyard::env::OsRand;
use blockyard::env::Tasks;
use blockyard::env::net::Listener;
use blockyard::env::net::TcpDial;
use blockyard::env::net::TcpListen;
use blockyard::rpc::Bounds;
use blockyard::rpc::CallerConfig;
use blockyard::rpc::ClusterIdentity;
use blockyard::rpc::Incoming;
use blockyard::rpc::Method;
use blockyard::rpc::NodeIdentity;
use blockyard::rpc::Refusal;
use blockyard::rpc::RemoteNode;
use blockyard::rpc::Reply;
use blockyard::rpc::Security;
use blockyard::rpc::Server;
use blockyard::rpc::ServerConfig;
use blockyard::rpc::Service;
use blockyard::types::ClusterNumber;
use blockyard::types::Incarnation;
use blockyard::types::NodeId;
use blockyard::types::NodeRoles;
use bytes::Bytes;

use crate::Caller;

struct Fill;

impl Method for Fill {
    const NUMBER: u16 = 0x7F01;
    type Call = u64;
    type Answer = ();
}

/// Answers with a payload of so many bytes.
#[derive(Debug)]
struct Filler(Bytes);

#[async_trait]
impl Service for Filler {
    fn is_read(&self, _: u16) -> bool {
        true
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        let back = usize::try_from(call.decode::<Fill>()?).expect("64 bits");
        Ok(Reply::of::<Fill>(&(), vec![self.0.slice(..back)]))
    }
}

#[derive(Clone)]
pub struct Packets(Arc<RemoteNode>);

impl Caller for Packets {
    async fn call(&self, payload: Bytes, back: usize) -> usize {
        let answer_bytes_max = u32::try_from(back + 64).expect("short");
        let bounds = Bounds { time: Duration::from_secs(60), answer_bytes_max };
        let answered = self.0.call::<Fill>(&(back as u64), vec![payload], bounds).await;
        answered.expect("an answer").1.len()
    }
}

pub async fn start() -> Packets {
    let (clock, tasks) = (Arc::new(OsClock::new()), Tasks::new());
    let env = Env { clock, rand: Arc::new(OsRand), tasks };
    let cluster = ClusterIdentity { number: ClusterNumber::new(1), id: 1, generation: 1 };
    let node = |id| NodeIdentity { node: NodeId::new(id), incarnation: Incarnation::new(1) };
    let service: Arc<dyn Service> = Arc::new(Filler(Bytes::from(vec![9; 1 << 20])));
    let config = ServerConfig::new(node(2), cluster, [(0x7F, service)].into());
    let listener =
        TcpListen::bind("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(Server::new(&env, config).run(Box::new(listener)));
    let (dial, security) = (Arc::new(TcpDial), Security::Loopback);
    let us = CallerConfig { env, dial, security, cluster, node: node(1), roles: NodeRoles::ALL };
    Packets(Arc::new(RemoteNode::new(&us, NodeId::new(2), "127.0.0.1", port)))
}
