//! Sources on other servers: one request, no redirects. The address that the rules permitted is the
//! one that is connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::HeaderMap;
use http::Response;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http::header::ETAG;
use http::uri::Scheme;
use hyper::body::Incoming;

use crate::env::Env;
use crate::frontend::answers::Flows;
use crate::frontend::body::RequestBody;
use crate::frontend::body::SourceTime;
use crate::frontend::client::ClientError;
use crate::frontend::client::Get;
use crate::frontend::client::port;
use crate::frontend::dialect;
use crate::frontend::source::facts::Facts;
use crate::frontend::source::rate::MinimumRate;
use crate::frontend::source::reach::Outside;
use crate::frontend::source::refusal;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopySource;
use crate::types::AccountId;

/// The time from the look-up of the name until the head of the answer.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// The time until the last byte: 5000 MiB at 1.4 MiB/s.
pub(super) const TOTAL_TIME_MAX: Duration = Duration::from_secs(3_600);

/// The account for which a source is fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchAccount {
    /// The account whose share of memory the bytes in transit use.
    pub(crate) payer: AccountId,
    /// The account whose admission the request holds, if a request waits for the bytes.
    pub(crate) admitted: Option<AccountId>,
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The blob's properties, from the head of the answer.
    pub(crate) facts: Facts,
    /// Bytes to come.
    pub(crate) len: u64,
    /// `ETag`.
    pub(crate) etag: Option<String>,
    /// Counts the bytes that have arrived.
    pub(crate) count: Option<Arc<AtomicU64>>,
    by: FetchAccount,
    body: Incoming,
    /// When all of it must have arrived, by the monotonic clock.
    deadline: Duration,
}

impl Fetched {
    /// The bytes.
    pub(crate) fn body(self, front: &FrontEnd) -> RequestBody {
        let idle = front.config.body_idle;
        self.limited(&front.config.outside, idle, &front.load.uploads, front.env.clone())
    }

    /// The bytes. The body fails after a wait of `idle`, or below the minimum rate of `outside`.
    fn limited(
        self,
        outside: &Outside,
        idle: Duration,
        uploads: &Arc<Flows>,
        env: Env,
    ) -> RequestBody {
        let pace = MinimumRate::at_least(outside.least);
        let time = SourceTime { idle, deadline: self.deadline };
        let body = RequestBody::of_outside(self.body, uploads, time, env);
        let mut body = body.counted(self.count).paced(pace);
        body.pay(self.by.payer);
        if let Some(account) = self.by.admitted {
            body.admitted(account);
        }
        body
    }
}

/// Requests the source from its server.
pub(super) async fn open(
    front: &FrontEnd,
    by: FetchAccount,
    source: &CopySource,
    time: Duration,
) -> Result<Fetched, Refusal> {
    let deadline = front.env.clock.monotonic() + time;
    let response = tokio::select! {
        biased;
        response = ask(front, source) => response?,
        () = front.env.clock.sleep(HEAD_TIME_MAX) => {
            return Err(unreachable("The copy source did not answer in time."));
        }
    };
    let (head, body) = response.into_parts();
    let wanted = if source.range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    match head.status {
        status if status == wanted => {}
        StatusCode::NOT_MODIFIED => return Err(refusal::unmet(Reason::NotModified)),
        StatusCode::PRECONDITION_FAILED => return Err(refusal::unmet(Reason::ConditionNotMet)),
        StatusCode::RANGE_NOT_SATISFIABLE => return Err(Reason::InvalidRange.into()),
        status if status.is_client_error() => return Err(refused(status.as_u16(), &head.headers)),
        status if status.is_server_error() => return Err(refused(500, &head.headers)),
        status => {
            let text = format!("The copy source answered {status}, which is not followed.");
            return Err(cannot(409, &text));
        }
    }
    let len = head.headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    let len = len.ok_or_else(|| cannot(409, "The copy source does not say how long it is."))?;
    let most = source.range.and_then(|range| range.within(u64::MAX)).map(|r| r.end - r.start);
    if most.is_some_and(|most| len > most) {
        return Err(cannot(409, "The copy source answered with more than was asked for."));
    }
    let etag = head.headers.get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
    let facts = dialect::outside::facts(&head.headers, &head.extensions);
    Ok(Fetched { facts, len, etag, count: None, by, body, deadline })
}

async fn ask(front: &FrontEnd, source: &CopySource) -> Result<Response<Incoming>, Refusal> {
    let outside = &front.config.outside;
    let authority = source.url.authority().ok_or(Reason::InvalidHeaderValue)?;
    let host = authority.host();
    let address = resolve(outside, host, port(&source.url, authority)).await?;
    let secure = source.url.scheme() == Some(&Scheme::HTTPS);
    if source.key.is_some() && !secure && !address.ip().to_canonical().is_loopback() {
        return Err(dialect::outside::key_is_unsafe());
    }
    let request = Get { url: &source.url, headers: dialect::outside::headers(source)? };
    let answer = outside.client.get(request, address, &front.env.tasks).await;
    answer.map_err(|error| {
        tracing::debug!(%error, host, "a copy source does not answer");
        match error {
            ClientError::Url => Reason::InvalidHeaderValue.into(),
            ClientError::Trust => {
                cannot(409, "This server has no root certificates; its operator must install some before it copies over https.")
            }
            ClientError::Name => cannot(400, "The copy source has no host name."),
            ClientError::Unreachable(_) => unreachable("The copy source cannot be reached."),
            ClientError::Broken(_) => unreachable("The copy source ended the connection early."),
        }
    })
}

/// The first address of the name that the rules permit.
async fn resolve(outside: &Outside, host: &str, port: u16) -> Result<SocketAddr, Refusal> {
    let found = outside.client.resolve(host, port).await.map_err(|error| {
        tracing::debug!(%error, host, "the name of a copy source does not resolve");
        unreachable("The name of the copy source does not resolve.")
    })?;
    let permitted = found.iter().find(|address| outside.rules.permit(host, address.ip()));
    permitted.copied().ok_or_else(|| {
        let text = "This server does not copy from there; its operator can open it with --copy-source-allow.";
        cannot(403, text)
    })
}

fn refused(status: u16, headers: &HeaderMap) -> Refusal {
    let error = cannot(status, "The copy source refused the request.");
    let error = error.detail(Detail::SourceStatus, status.to_string());
    match dialect::outside::error_code(headers) {
        Some(code) => error.detail(Detail::SourceCode, code),
        None => error,
    }
}

fn unreachable(text: &str) -> Refusal {
    cannot(refusal::UNREACHABLE, text)
}

fn cannot(status: u16, text: &str) -> Refusal {
    Refusal::new(Reason::CannotVerifyCopySource).status(status).message(text)
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::frontend::client::Client;
    use crate::frontend::source::rules::Rules;
    use crate::index::client::testing;

    const SECOND: Duration = Duration::from_secs(1);
    const IDLE: Duration = Duration::from_secs(30);
    const ACCOUNT: AccountId = AccountId::new(9);

    /// Reads an answer of which the source sends `piece` bytes every second.
    async fn read(outside: &Outside, piece: usize) -> Result<u64, Refusal> {
        let env = testing::env();
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let http = hyper::client::conn::http1::handshake(TokioIo::new(near)).await;
        let (mut sender, connection) = http.unwrap();
        drop(env.tasks.spawn("connection", async { drop(connection.await) }));
        let clock = Arc::clone(&env.clock);
        let len = 200 * piece;
        drop(env.tasks.spawn("source", async move {
            assert!(far.read(&mut [0; 4096]).await.unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n");
            far.write_all(head.as_bytes()).await.unwrap();
            for _ in 0..200 {
                clock.sleep(SECOND).await;
                if far.write_all(&vec![7; piece]).await.is_err() {
                    return;
                }
            }
        }));
        let request = http::Request::new(Empty::<bytes::Bytes>::new());
        let body = sender.send_request(request).await.unwrap().into_body();
        let (facts, deadline) =
            (dialect::outside::facts(&HeaderMap::new(), &http::Extensions::new()), TOTAL_TIME_MAX);
        let len = len as u64;
        let by = FetchAccount { payer: ACCOUNT, admitted: Some(ACCOUNT) };
        let fetched = Fetched { facts, len, etag: None, count: None, by, body, deadline };
        let mut body = fetched.limited(outside, IDLE, &Arc::default(), env.clone());
        assert_eq!((body.memory().account(), body.admitted_for()), (ACCOUNT, Some(ACCOUNT)));
        while body.next().await?.is_some() {}
        Ok(body.received())
    }

    #[tokio::test(start_paused = true)]
    async fn source_below_the_minimum_rate_is_given_up_and_any_other_is_read_to_its_end() {
        let outside = || Outside::new(Rules::default(), Client::default());
        let paced = outside().at_least(1_000);
        let slow = read(&paced, 900).await.unwrap_err();
        assert_eq!(slow.reason, Reason::CannotVerifyCopySource, "{slow:?}");
        assert_eq!(read(&paced, 1_100).await.unwrap(), 220_000);
        assert_eq!(read(&outside(), 900).await.unwrap(), 180_000, "there is no minimum");
    }
}
