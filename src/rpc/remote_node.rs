//! The way to another node: a connection for small calls and one for large ones, opened when they
//! are needed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::future::Shared;
use tokio::task::JoinError;

use super::caller::Caller;
use super::caller::Unsent;
use super::error::CallError;
use super::error::Reason;
use super::hello::ClusterIdentity;
use super::hello::Hello;
use super::hello::Lane;
use super::hello::NodeIdentity;
use super::hello::Unwelcome;
use super::hello::VERSION;
use super::hello::VERSION_MIN;
use super::hello::Welcome;
use super::hello::introduction;
use super::hello::is_introduction;
use super::message::decode;
use super::message::write;
use super::packet::Draft;
use super::packet::Kind;
use super::packet::charge;
use super::service::Method;
use super::tls::Security;
use super::tls::server_name;
use super::wire::PacketReader;
use super::wire::write_packet;
use crate::env::Env;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::types::NodeId;
use crate::types::NodeRoles;

/// How long opening a connection may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one address of a node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long calls fail at once after a connection could not be opened.
const OPEN_PAUSE: Duration = Duration::from_millis(100);
/// A call with more bytes, there and back together, takes the connection for large calls.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// What a process needs for calling other nodes.
#[derive(Clone, Debug)]
pub struct CallerConfig {
    /// The machine.
    pub env: Env,
    /// The network.
    pub dial: Arc<dyn Dial>,
    /// How nodes prove who they are.
    pub security: Security,
    /// The cluster.
    pub cluster: ClusterIdentity,
    /// This node.
    pub node: NodeIdentity,
    /// What it does.
    pub roles: NodeRoles,
}

/// How long a caller waits, and for how much.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long.
    pub time: Duration,
    /// The most bytes of message and payload of the answer.
    pub answer_bytes_max: u32,
}

/// Another node. Calls of all tasks share its two connections. A process has one of these for each
/// other node: the connections of a second one would end those of the first.
pub struct RemoteNode {
    way: Arc<Way>,
}

impl fmt::Debug for RemoteNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way { node, host, port, .. } = &*self.way;
        write!(f, "RemoteNode({node}, {host}:{port})")
    }
}

/// The way to a node.
struct Way {
    us: CallerConfig,
    node: NodeId,
    host: String,
    port: u16,
    small: Slot,
    bulk: Slot,
}

/// The connection of one lane.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    attempts: AtomicU64,
}

/// What became of an attempt to open a connection.
type Opened = Result<Arc<Caller>, Arc<str>>;

#[derive(Clone, Default)]
enum State {
    #[default]
    Closed,
    /// A task opens it.
    Opening(Shared<BoxFuture<'static, Opened>>),
    Open(Arc<Caller>),
    /// It could not be opened.
    Failed {
        at: Duration,
        why: Arc<str>,
    },
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteNode {
    /// A node at an address. Connects when it is called first.
    #[must_use]
    pub fn new(us: &CallerConfig, node: NodeId, host: &str, port: u16) -> Self {
        let (small, bulk) = (Slot::default(), Slot::default());
        let way = Way { us: us.clone(), node, host: host.to_owned(), port, small, bulk };
        Self { way: Arc::new(way) }
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.way.node
    }

    /// Makes a call. Returns the message of the answer and its payload. If it is dropped, the other
    /// node is told; what the call has begun may go on there.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call<M: Method>(
        &self,
        call: &M::Call,
        payload: Vec<Bytes>,
        bounds: Bounds,
    ) -> Result<(M::Answer, Bytes), CallError>
    where
        M::Call: Sync,
    {
        let deadline = self.way.us.env.clock.monotonic().saturating_add(bounds.time);
        let mut is_last = false;
        loop {
            let mut draft = Draft::new();
            write(call, draft.message()).map_err(|_| CallError::NotDone(Reason::Malformed))?;
            let answer_bytes_max = bounds.answer_bytes_max;
            let too_large = |_| CallError::NotDone(Reason::TooLarge);
            let bytes = charge(draft.fits(&payload).map_err(too_large)?, answer_bytes_max);
            let lane = if bytes > SMALL_BYTES_MAX { Lane::Bulk } else { Lane::Small };
            let caller = self.way.caller(lane, deadline).await?;
            let (method, payload) = (M::NUMBER, payload.clone());
            let unsent = Unsent { method, draft, payload, answer_bytes_max, deadline };
            match caller.call(unsent).await {
                // The connection had ended without a trace. A new one shows whether the node is
                // there.
                Err(CallError::NotDone(Reason::ConnectionLost)) if !is_last => is_last = true,
                Err(error) => return Err(error),
                Ok(answered) => {
                    let malformed = |_| CallError::Unknown(Reason::Malformed);
                    let answer = decode(&answered.message).map_err(malformed)?;
                    return Ok((answer, answered.payload));
                }
            }
        }
    }

    /// Ends the connections. A later call opens new ones.
    pub fn disconnect(&self) {
        for slot in [&self.way.small, &self.way.bulk] {
            let state = std::mem::take(&mut *slot.lock());
            if let State::Open(caller) = state {
                caller.end();
            }
        }
    }
}

impl Drop for RemoteNode {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl Way {
    const fn slot(&self, lane: Lane) -> &Slot {
        match lane {
            Lane::Small => &self.small,
            Lane::Bulk => &self.bulk,
        }
    }

    /// The connection of a lane, opened if there is none.
    async fn caller(
        self: &Arc<Self>,
        lane: Lane,
        deadline: Duration,
    ) -> Result<Arc<Caller>, CallError> {
        let unreachable = |why: &str| CallError::NotDone(Reason::Unreachable(why.to_owned()));
        let Env { clock, tasks, .. } = &self.us.env;
        if tasks.stopping().is_cancelled() {
            return Err(unreachable("this node is stopping"));
        }
        let now = clock.monotonic();
        let opening = {
            let mut state = self.slot(lane).lock();
            match &*state {
                State::Open(caller) if caller.is_open() => return Ok(Arc::clone(caller)),
                State::Opening(opening) => opening.clone(),
                State::Failed { at, why } if now < *at + OPEN_PAUSE => {
                    return Err(unreachable(why));
                }
                State::Failed { .. } | State::Open(_) | State::Closed => {
                    let opening = self.start_opening(lane);
                    *state = State::Opening(opening.clone());
                    opening
                }
            }
        };
        tokio::select! {
            biased;
            opened = opening => opened.map_err(|why| unreachable(&why)),
            () = clock.sleep(deadline.saturating_sub(now)) => {
                Err(CallError::NotDone(Reason::OutOfTime))
            }
        }
    }

    /// Opens a connection in a task: it goes on although the call that needed it may not.
    fn start_opening(self: &Arc<Self>, lane: Lane) -> Shared<BoxFuture<'static, Opened>> {
        let way = Arc::clone(self);
        let attempt = self.slot(lane).attempts.fetch_add(1, Ordering::Relaxed);
        let opening = self.us.env.tasks.spawn("connect to a node", async move {
            let clock = &way.us.env.clock;
            let opened = tokio::select! {
                biased;
                opened = way.open(lane, attempt) => opened.map_err(|error| error.to_string().into()),
                () = clock.sleep(OPEN_TIMEOUT) => Err("it took too long".into()),
            };
            way.note(lane, attempt, opened.clone());
            opened
        });
        let ended = |opened: Result<Opened, JoinError>| {
            opened.unwrap_or_else(|_| Err("it panicked".into()))
        };
        opening.map(ended).boxed().shared()
    }

    /// Notes what became of an attempt, if it is the latest and somebody may still want it.
    fn note(&self, lane: Lane, attempt: u64, opened: Opened) {
        let slot = self.slot(lane);
        let mut state = slot.lock();
        let is_latest = slot.attempts.load(Ordering::Relaxed) == attempt + 1;
        if !is_latest || !matches!(&*state, State::Opening(_)) {
            if let Ok(caller) = opened {
                caller.end();
            }
            return;
        }
        *state = match opened {
            Ok(caller) => State::Open(caller),
            Err(why) => State::Failed { at: self.us.env.clock.monotonic(), why },
        };
    }

    /// Opens a connection and says hello.
    async fn open(&self, lane: Lane, attempt: u64) -> io::Result<Arc<Caller>> {
        let us = &self.us;
        let stream = self.connect(us.dial.resolve(&self.host, self.port).await?).await?;
        let stream = match &us.security {
            Security::Tls(tls) => tls.connect(stream, server_name(self.node, &us.cluster)?).await?,
            Security::Loopback | Security::TrustedNetwork => stream,
        };
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = PacketReader::new(reader);
        let hello = Hello {
            version_min: VERSION_MIN,
            version_max: VERSION,
            cluster: us.cluster,
            from: us.node,
            roles: us.roles,
            to: self.node,
            lane,
            attempt,
        };
        write_packet(&mut writer, introduction(Kind::Hello, &hello)?).await?;
        let kinds = [Kind::Welcome, Kind::Unwelcome];
        let packet = reader.next(|unchecked| is_introduction(unchecked, &kinds)).await;
        let packet = packet.map_err(io::Error::other)?;
        if packet.head.kind == Kind::Unwelcome {
            let why = decode::<Unwelcome>(&packet.message).map(|why| why.to_string());
            let why = why.unwrap_or_else(|_| "this release does not know why".to_owned());
            return Err(io::Error::other(format!("it does not let this node in: {why}")));
        }
        let welcome = Welcome::read(&packet.message);
        let welcome = welcome.ok_or_else(|| io::Error::other("its welcome cannot be read"))?;
        if welcome.from.node != self.node || !(VERSION_MIN..=VERSION).contains(&welcome.version) {
            return Err(io::Error::other("its welcome does not fit the hello"));
        }
        let end = us.env.tasks.stopping().child_token();
        Ok(Caller::start(&us.env, (reader, writer), welcome.credit, end))
    }

    /// Connects to the first address that answers.
    async fn connect(&self, addresses: Vec<SocketAddr>) -> io::Result<Box<dyn Stream>> {
        let mut connected = Err(io::Error::other("its name has no address"));
        for address in addresses {
            self.us.security.check(address.ip())?;
            connected = tokio::select! {
                biased;
                connected = self.us.dial.connect(address) => connected,
                () = self.us.env.clock.sleep(CONNECT_TIMEOUT) => {
                    Err(io::Error::other(format!("{address} does not answer")))
                }
            };
            if connected.is_ok() {
                break;
            }
        }
        connected
    }
}
