//! One keep-alive connection to the target.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use http::Request;
use http::header::CONTENT_LENGTH;
use http::header::ETAG;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::env::Env;
use crate::env::net::Dial;
use crate::env::net::Stream;
use crate::env::net::TcpDial;

use super::call::Call;
use super::target::Target;
use super::target::element;

/// The longest time until the whole answer is there.
const PATIENCE: Duration = Duration::from_secs(90);

/// How a server is reached.
pub struct Way {
    /// Clock and tasks.
    pub env: Env,
    /// Its host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For https: whom to trust.
    pub tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Way({}:{})", self.host, self.port)
    }
}

impl Way {
    /// Opens a connection to the first address that takes one.
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        let mut why = io::Error::other("the host has no address");
        for address in TcpDial.resolve(&self.host, self.port).await? {
            match TcpDial.connect(address).await {
                Ok(stream) => return self.secured(stream).await,
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn secured(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let Some(tls) = &self.tls else { return Ok(stream) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

/// A connection that is opened again when the server has closed it.
#[derive(Debug)]
pub struct Client {
    /// How it connects.
    pub way: Rc<Way>,
    /// Whom it asks, and for what.
    pub target: Rc<Target>,
    open: Option<SendRequest<Full<Bytes>>>,
    /// Connections opened so far.
    pub connects: u64,
    /// Requests sent so far.
    pub requests: u64,
    /// Time spent on opening connections. The owner resets it.
    pub connecting: Duration,
}

/// The answer to a successful call.
#[derive(Debug, Default)]
pub struct Answer {
    /// Names in a page (`List`).
    pub keys: usize,
    /// Where the next page begins (`List`).
    pub marker: Option<String>,
    /// The page itself (`List`).
    pub page: BytesMut,
    /// The upload's id (`StartUpload`), the block's tag (`Stage`), or the blob's tag.
    pub tag: String,
    /// `Content-Length` of the answer.
    pub length: Option<u64>,
}

impl Client {
    /// A client that has not connected yet.
    #[must_use]
    pub const fn new(target: Rc<Target>, way: Rc<Way>) -> Self {
        let connecting = Duration::ZERO;
        Self { way, target, open: None, connects: 0, requests: 0, connecting }
    }

    /// Sends `call` and reads its whole answer; wrong bytes are an error like a wrong status.
    ///
    /// # Errors
    /// Text for people: the status and body of the refusal, the transport's error, or where the
    /// bytes differ.
    pub async fn call(&mut self, call: &Call) -> Result<Answer, String> {
        let now = self.way.env.clock.now();
        let Some(request) = self.target.request(call, now)? else { return Ok(Answer::default()) };
        let late = |_| format!("no answer within {} s", PATIENCE.as_secs());
        let exchanged = tokio::time::timeout(PATIENCE, self.exchange(call, request)).await;
        match exchanged.map_err(late).and_then(|exchanged| exchanged) {
            Ok(result) => result,
            Err(broken) => {
                self.open = None;
                Err(broken)
            }
        }
    }

    /// Connects before the first call.
    ///
    /// # Errors
    /// The transport's error.
    pub async fn connect(&mut self) -> Result<(), String> {
        self.sender().await
    }

    /// The answer or the refusal; an error if the connection can no longer be used.
    async fn exchange(
        &mut self,
        call: &Call,
        request: Request<Full<Bytes>>,
    ) -> Result<Result<Answer, String>, String> {
        self.sender().await?;
        self.requests += 1;
        let sender = self.open.as_mut().ok_or("no connection")?;
        let reply = sender.send_request(request).await.map_err(|e| format!("send: {e}"))?;
        let (head, body) = reply.into_parts();
        if !self.target.accepts(call, head.status) {
            let body = read(body).await?;
            let text = String::from_utf8_lossy(&body);
            return Ok(Err(format!("{} for {}: {text}", head.status, describe(call))));
        }
        let text = |name| head.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
        let mut answer = Answer { tag: text(ETAG).to_owned(), ..Answer::default() };
        answer.length = text(CONTENT_LENGTH).parse().ok();
        match call {
            Call::Get { expect, .. } => compare(body, expect).await?,
            Call::List { .. } | Call::Unfinished { .. } => {
                answer.page = read(body).await?;
                (answer.keys, answer.marker) = self.target.page(&answer.page);
            }
            Call::StartUpload { .. } => {
                let xml = read(body).await?;
                let text = String::from_utf8_lossy(&xml);
                answer.tag = element(&text, "UploadId").ok_or("no UploadId in the answer")?;
            }
            Call::ProbeContainer
            | Call::CreateContainer { .. }
            | Call::DeleteContainer
            | Call::Abort { .. }
            | Call::Put { .. }
            | Call::Head { .. }
            | Call::Delete { .. }
            | Call::Stage { .. }
            | Call::Commit { .. } => {
                read(body).await?;
            }
        }
        Ok(Ok(answer))
    }

    /// Opens a connection if there is none that works.
    async fn sender(&mut self) -> Result<(), String> {
        let usable = match &mut self.open {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            self.open = None;
            let clock = &self.way.env.clock;
            let begun = clock.monotonic();
            let opened = self.way.open().await;
            let stream =
                opened.map_err(|e| format!("connect to {}: {e}", self.target.authority))?;
            let (sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
            drop(self.way.env.tasks.spawn("connection of the load driver", async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended early");
                }
            }));
            self.connects += 1;
            self.connecting += clock.monotonic().saturating_sub(begun);
            self.open = Some(sender);
        }
        Ok(())
    }
}

/// The whole body.
async fn read(mut body: Incoming) -> Result<BytesMut, String> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|e| format!("body: {e}"))?.into_data() {
            all.extend_from_slice(&data);
        }
    }
    Ok(all)
}

/// Reads the body and compares each piece of it with `expect`, keeping none.
async fn compare(mut body: Incoming, expect: &Bytes) -> Result<(), String> {
    let mut at = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|e| format!("body: {e}"))?.into_data() {
            let end = at + data.len();
            if expect.get(at..end) != Some(&data[..]) {
                return Err(format!("wrong bytes in {at}..{end} of {}", expect.len()));
            }
            at = end;
        }
    }
    if at == expect.len() { Ok(()) } else { Err(format!("{at} bytes of {}", expect.len())) }
}

/// The call without its bytes.
fn describe(call: &Call) -> String {
    match call {
        Call::Put { name, body, .. } => format!("Put {name} ({} bytes)", body.len()),
        Call::Get { name, from, expect } => {
            format!("Get {name} ({} bytes from {from:?})", expect.len())
        }
        Call::Stage { name, number, .. } => format!("Stage {name} block {number}"),
        Call::Commit { name, tags, .. } => format!("Commit {name} of {}", tags.len()),
        Call::ProbeContainer
        | Call::CreateContainer { .. }
        | Call::DeleteContainer
        | Call::Unfinished { .. }
        | Call::Abort { .. }
        | Call::Head { .. }
        | Call::Delete { .. }
        | Call::List { .. }
        | Call::StartUpload { .. } => format!("{call:?}"),
    }
}
