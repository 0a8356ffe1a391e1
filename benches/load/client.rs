//! One keep-alive connection to the target.

use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

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
use tokio::net::TcpStream;

use crate::call::Call;
use crate::target::Target;
use crate::target::element;

/// A connection that is opened again when the server has closed it.
#[derive(Debug)]
pub(crate) struct Client {
    /// Where it connects to.
    pub(crate) target: Rc<Target>,
    open: Option<SendRequest<Full<Bytes>>>,
    /// Connections opened so far.
    pub(crate) connects: u64,
    /// Time spent on opening them. The owner resets it.
    pub(crate) connecting: Duration,
}

/// The answer to a successful call.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Names in a page (`List`).
    pub(crate) keys: usize,
    /// Where the next page begins (`List`).
    pub(crate) marker: Option<String>,
    /// The page itself (`List`).
    pub(crate) page: BytesMut,
    /// The upload's id (`StartUpload`), the block's tag (`Stage`), or the blob's tag.
    pub(crate) tag: String,
    /// `Content-Length` of the answer.
    pub(crate) length: Option<u64>,
}

impl Client {
    /// A client that has not connected yet.
    pub(crate) fn new(target: Rc<Target>) -> Self {
        Self { target, open: None, connects: 0, connecting: Duration::ZERO }
    }

    /// Sends `call` and reads its whole answer; wrong bytes are an error like a wrong status.
    ///
    /// # Errors
    /// Text for people: the status and body of the refusal, the transport's error, or where the
    /// bytes differ.
    pub(crate) async fn call(&mut self, call: &Call) -> Result<Answer, String> {
        let Some(request) = self.target.request(call)? else { return Ok(Answer::default()) };
        match self.exchange(call, request).await {
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
    pub(crate) async fn connect(&mut self) -> Result<(), String> {
        self.sender().await.map(|_| ())
    }

    /// The answer or the refusal; an error if the connection can no longer be used.
    async fn exchange(
        &mut self,
        call: &Call,
        request: Request<Full<Bytes>>,
    ) -> Result<Result<Answer, String>, String> {
        let sender = self.sender().await?;
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
            Call::List { .. } => {
                answer.page = read(body).await?;
                (answer.keys, answer.marker) = self.target.page(&answer.page);
            }
            Call::StartUpload { .. } => {
                let xml = read(body).await?;
                let text = String::from_utf8_lossy(&xml);
                answer.tag = element(&text, "UploadId").ok_or("no UploadId in the answer")?;
            }
            Call::CreateContainer
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

    /// The open connection, or a new one if there is none that works.
    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, String> {
        let usable = match &mut self.open {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            self.open = None;
            let begun = Instant::now();
            let stream = TcpStream::connect(&self.target.authority)
                .await
                .map_err(|e| format!("connect to {}: {e}", self.target.authority))?;
            stream.set_nodelay(true).map_err(|e| e.to_string())?;
            let (sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
            tokio::task::spawn_local(connection);
            self.connects += 1;
            self.connecting += begun.elapsed();
            self.open = Some(sender);
        }
        self.open.as_mut().ok_or_else(|| "no connection".to_owned())
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
        Call::CreateContainer
        | Call::Head { .. }
        | Call::Delete { .. }
        | Call::List { .. }
        | Call::StartUpload { .. } => format!("{call:?}"),
    }
}
