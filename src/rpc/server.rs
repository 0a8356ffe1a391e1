//! Accepts the connections of other nodes.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use super::hello::ClusterIdentity;
use super::hello::Credit;
use super::hello::Hello;
use super::hello::Lane;
use super::hello::NoHello;
use super::hello::NodeIdentity;
use super::hello::Unwelcome;
use super::hello::Welcome;
use super::hello::introduction;
use super::hello::is_introduction;
use super::packet::Kind;
use super::serving::Services;
use super::serving::Serving;
use super::tls::Security;
use super::tls::is_of;
use super::wire::PacketReader;
use super::wire::write_packet;
use crate::env::Env;
use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::NodeRoles;

/// How long a handshake may take.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that may be in their handshake. More are closed.
const HANDSHAKES_MAX: usize = 256;
/// How often refused connections are logged.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// The pause after an error of the listener.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server grants to each caller, if nothing else is set.
const SMALL_CREDIT: Credit = Credit { calls: 512, bytes: 8 << 20 };
const BULK_CREDIT: Credit = Credit { calls: 64, bytes: 64 << 20 };

/// Who a server is and what it serves.
#[derive(Debug)]
pub struct ServerConfig {
    /// The node.
    pub node: NodeIdentity,
    /// Its cluster.
    pub cluster: ClusterIdentity,
    /// What it serves.
    pub services: Services,
    /// What the node does, for its callers.
    pub roles: NodeRoles,
    /// How callers prove who they are.
    pub security: Security,
    /// What each caller may have under way with small calls: 512 calls and 8 MiB by default.
    pub small_credit: Credit,
    /// What each caller may have under way with large calls: 64 calls and 64 MiB by default.
    pub bulk_credit: Credit,
}

impl ServerConfig {
    /// The configuration of a node of all roles that is reached on loopback only.
    #[must_use]
    pub const fn new(node: NodeIdentity, cluster: ClusterIdentity, services: Services) -> Self {
        let (small_credit, bulk_credit) = (SMALL_CREDIT, BULK_CREDIT);
        let (roles, security) = (NodeRoles::ALL, Security::Loopback);
        Self { node, cluster, services, roles, security, small_credit, bulk_credit }
    }

    const fn credit(&self, lane: Lane) -> Credit {
        match lane {
            Lane::Small => self.small_credit,
            Lane::Bulk => self.bulk_credit,
        }
    }
}

/// The server of a node.
#[derive(Debug)]
pub struct Server {
    env: Env,
    config: ServerConfig,
    services: Arc<Services>,
    callers: Mutex<BTreeMap<NodeId, Known>>,
    /// Nodes that are not let in.
    removed: Mutex<BTreeSet<NodeId>>,
    handshakes: Arc<Semaphore>,
    /// When a refused connection was logged last.
    told: Mutex<Option<Duration>>,
}

/// A node that has called.
#[derive(Debug)]
struct Known {
    /// The latest that was met.
    incarnation: Incarnation,
    connections: BTreeMap<Lane, Current>,
    /// The number of the latest connection of each lane, in this incarnation.
    attempts: BTreeMap<Lane, u64>,
    /// Connections whose place was taken, and of which a call may still begin.
    ending: Vec<Current>,
}

impl Known {
    fn new(incarnation: Incarnation) -> Self {
        let (connections, attempts) = (BTreeMap::new(), BTreeMap::new());
        Self { incarnation, connections, attempts, ending: Vec::new() }
    }

    /// Ends connections of an earlier life, and the earlier one of this lane.
    fn make_place_for(&mut self, lane: Lane, incarnation: Incarnation) {
        let ended = if incarnation > self.incarnation {
            let earlier = std::mem::replace(self, Self::new(incarnation));
            self.ending = earlier.ending;
            earlier.connections.into_values().collect()
        } else {
            Vec::from_iter(self.connections.remove(&lane))
        };
        for connection in &ended {
            connection.end.cancel();
        }
        self.ending.extend(ended);
        self.ending.retain(|connection| !connection.ended.is_cancelled());
    }
}

/// The connection of a caller for one lane.
#[derive(Clone, Debug)]
struct Current {
    /// Ends it.
    end: CancellationToken,
    /// Cancelled when no call of it can begin any more.
    ended: CancellationToken,
}

/// A connection that was let in.
struct Admitted {
    end: CancellationToken,
    /// Says that the connection has ended.
    _ended: DropGuard,
    /// Those that must have ended before it begins.
    earlier: Vec<Current>,
    version: u16,
}

impl Server {
    /// A server that listens nowhere yet.
    #[must_use]
    pub fn new(env: &Env, mut config: ServerConfig) -> Arc<Self> {
        let services = Arc::new(std::mem::take(&mut config.services));
        Arc::new(Self {
            env: env.clone(),
            config,
            services,
            callers: Mutex::default(),
            removed: Mutex::default(),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            told: Mutex::default(),
        })
    }

    /// Lets a node in no more, and ends its connections.
    pub fn remove(&self, node: NodeId) {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner).insert(node);
        if let Some(known) = self.callers().get(&node) {
            for connection in known.connections.values() {
                connection.end.cancel();
            }
        }
    }

    /// Serves the connections that a listener accepts, until the program stops.
    ///
    /// # Errors
    /// If others than this machine reach the listener, and callers need not prove who they are.
    pub async fn run(self: Arc<Self>, listener: Box<dyn Listener>) -> io::Result<()> {
        self.config.security.check(listener.local_addr()?.ip())?;
        let stop = self.env.tasks.stopping();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                accepted = listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection of a node");
                    self.env.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = Arc::clone(&self.handshakes).try_acquire_owned() else {
                tracing::warn!(%address, "too many connections that have not said hello");
                continue;
            };
            let server = Arc::clone(&self);
            drop(self.env.tasks.spawn("connection of a node", async move {
                if let Err(error) = server.serve(stream, permit).await {
                    server.tell(&address, &error);
                }
            }));
        }
    }

    /// Logs why a connection has ended. That of a node with other certificates, or none, is to be
    /// seen by the operator, but not each time it tries again.
    fn tell(&self, address: &dyn std::fmt::Display, error: &io::Error) {
        let now = self.env.clock.monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_refusal = error.kind() == io::ErrorKind::InvalidData;
        if is_refusal && told.is_none_or(|told| now >= told + TOLD_EVERY) {
            *told = Some(now);
            tracing::warn!(
                %address, %error,
                "a connection was refused: do all nodes use TLS, or none (--node-tls, \
                 --trusted-network)? do their clocks agree?"
            );
        } else {
            tracing::debug!(%address, %error, "a connection of a node ended");
        }
    }

    /// Serves one connection.
    async fn serve(&self, stream: Box<dyn Stream>, handshake: impl Send) -> io::Result<()> {
        let greeted = tokio::select! {
            biased;
            greeted = self.welcomed(stream) => greeted?,
            () = self.env.clock.sleep(HELLO_TIMEOUT) => return Err(io::ErrorKind::TimedOut.into()),
            () = async { self.env.tasks.stopping().cancelled().await } => return Ok(()),
        };
        drop(handshake);
        let Some(Greeted { mut reader, mut writer, hello, admitted }) = greeted else {
            return Ok(());
        };
        let serving = Serving {
            env: self.env.clone(),
            services: Arc::clone(&self.services),
            from: hello.from,
            credit: self.config.credit(hello.lane),
            end: admitted.end.clone(),
        };
        serving.run(&mut reader, &mut writer).await;
        Ok(())
    }

    /// Reads a hello, waits until no call of earlier connections can begin, and answers.
    async fn welcomed(&self, stream: Box<dyn Stream>) -> io::Result<Option<Greeted>> {
        let Some(mut greeted) = self.greet(stream).await? else { return Ok(None) };
        for earlier in &greeted.admitted.earlier {
            earlier.ended.cancelled().await;
        }
        let ServerConfig { node, roles, .. } = self.config;
        let credit = self.config.credit(greeted.hello.lane);
        let version = greeted.admitted.version;
        let welcome = Welcome { version, from: node, roles, credit };
        write_packet(&mut greeted.writer, introduction(Kind::Welcome, &welcome)?).await?;
        Ok(Some(greeted))
    }

    /// Reads a hello. `None` if it was refused and the caller was told so.
    async fn greet(&self, stream: Box<dyn Stream>) -> io::Result<Option<Greeted>> {
        let (stream, certificate) = match &self.config.security {
            Security::Loopback | Security::TrustedNetwork => (stream, None),
            Security::Tls(tls) => {
                let (secured, certificate) = tls.accept(stream).await?;
                (secured, Some(certificate))
            }
        };
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = PacketReader::new(reader);
        let packet = reader.next(|unchecked| is_introduction(unchecked, &[Kind::Hello])).await;
        let packet = packet.map_err(io::Error::other)?;
        let why = match Hello::read(&packet.message) {
            Ok(hello) => {
                self.check_certificate(&hello, certificate)?;
                match self.admit(&hello) {
                    Ok(admitted) => return Ok(Some(Greeted { reader, writer, hello, admitted })),
                    Err(why) => {
                        tracing::warn!(from = %hello.from, %why, "a node was not let in");
                        why
                    }
                }
            }
            Err(NoHello::Unwelcome(why)) => {
                tracing::warn!(%why, "a node of another release was not let in");
                why
            }
            Err(NoHello::Malformed) => return Err(io::Error::other("a hello that cannot be read")),
        };
        write_packet(&mut writer, introduction(Kind::Unwelcome, &why)?).await?;
        Ok(None)
    }

    fn check_certificate(
        &self,
        hello: &Hello,
        certificate: Option<CertificateDer<'static>>,
    ) -> io::Result<()> {
        match certificate {
            Some(certificate) if !is_of(&certificate, hello.from.node, &self.config.cluster) => {
                let why =
                    format!("a caller says that it is {} with another certificate", hello.from);
                tracing::warn!("{why}");
                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Lets a caller in, in place of its earlier connections.
    fn admit(&self, hello: &Hello) -> Result<Admitted, Unwelcome> {
        let version = hello.accepted_by(self.config.node.node, &self.config.cluster)?;
        let stopping = self.env.tasks.stopping();
        if stopping.is_cancelled() {
            return Err(Unwelcome::Stopping);
        }
        let NodeIdentity { node, incarnation } = hello.from;
        let mut callers = self.callers();
        if self.removed.lock().unwrap_or_else(PoisonError::into_inner).contains(&node) {
            return Err(Unwelcome::Removed);
        }
        let known = callers.entry(node).or_insert_with(|| Known::new(incarnation));
        let latest = known.attempts.get(&hello.lane).copied().unwrap_or(0);
        let is_overtaken = incarnation == known.incarnation && hello.attempt < latest;
        if incarnation < known.incarnation || is_overtaken {
            return Err(Unwelcome::Superseded { incarnation: known.incarnation });
        }
        known.make_place_for(hello.lane, incarnation);
        let (end, ended) = (stopping.child_token(), CancellationToken::new());
        let current = Current { end: end.clone(), ended: ended.clone() };
        known.connections.insert(hello.lane, current);
        known.attempts.insert(hello.lane, hello.attempt);
        let earlier = known.ending.clone();
        Ok(Admitted { end, _ended: ended.drop_guard(), earlier, version })
    }

    fn callers(&self) -> MutexGuard<'_, BTreeMap<NodeId, Known>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose caller was let in.
struct Greeted {
    reader: PacketReader<tokio::io::ReadHalf<Box<dyn Stream>>>,
    writer: tokio::io::WriteHalf<Box<dyn Stream>>,
    hello: Hello,
    admitted: Admitted,
}
