//! Requests to a blob service: signed, and sent again when that can help.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::header::CONTENT_LENGTH;
use http::header::HOST;
use http::header::RETRY_AFTER;
use http::header::USER_AGENT;
use http_body_util::Full;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

use crate::auth::MINT_VERSION;
use crate::auth::SignedRequest;
use crate::auth::sign;
use crate::cli::escaped::shown;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::protocol::azure::answers;

use super::connect::ConnectArgs;
use super::endpoint::Credential;
use super::endpoint::Endpoint;
use super::error::CallError;
use super::error::FilesError;
use super::http::Answer;
use super::http::Http;

/// The first pause before a request is sent again. It doubles each time.
const PAUSE: Duration = Duration::from_millis(400);
/// The longest pause, also if the server asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The time for an answer without bytes. Bytes add to it.
const PATIENCE: Duration = Duration::from_secs(90);
/// The rate below which a request is given up, bytes per second.
const RATE_MIN: u64 = 16 << 10;
/// The longest answer without the content of a blob, bytes.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// The longest refusal of a request for a piece of a blob, bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) to: &'a Endpoint,
    pub(super) container: Option<&'a str>,
    pub(super) blob: Option<&'a str>,
    /// Names and values, not encoded.
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    /// The longest answer, bytes.
    pub(super) answer_max: usize,
    /// Bytes that the answer has, or that the server fetches before it answers.
    pub(super) expected: u64,
}

impl<'a> Ask<'a> {
    /// A request without query, headers and body.
    pub(super) fn new(
        method: Method,
        to: &'a Endpoint,
        container: Option<&'a str>,
        blob: Option<&'a str>,
    ) -> Self {
        let (query, headers, body) = (Vec::new(), Vec::new(), Bytes::new());
        let answer_max = DOCUMENT_BYTES_MAX;
        Self { method, to, container, blob, query, headers, body, answer_max, expected: 0 }
    }

    /// The same with a parameter.
    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The same with a header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a body.
    pub(super) fn body(self, body: Bytes) -> Self {
        Self { body, ..self }
    }

    /// The same, answered with `len` bytes of a blob.
    pub(super) fn answered_by(self, len: u64) -> Self {
        // A refusal is longer than a short piece.
        let max = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(REFUSAL_BYTES_MAX);
        Self { answer_max: max, expected: len, ..self }
    }

    /// The same, for which the server has to fetch `bytes` bytes.
    pub(super) fn fetching(self, bytes: u64) -> Self {
        Self { expected: bytes, ..self }
    }

    /// The longest time until the whole answer is there.
    fn patience(&self) -> Duration {
        let bytes = (self.body.len() as u64).saturating_add(self.expected);
        PATIENCE + Duration::from_secs(bytes / RATE_MIN)
    }

    /// Its description, for messages.
    fn what(&self) -> String {
        let url = self.to.url(self.container, self.blob);
        let comp = self.query.iter().find(|(name, _)| *name == "comp");
        let comp = comp.map_or_else(String::new, |(_, value)| format!("?comp={value}"));
        format!("{} {url}{comp}", self.method)
    }
}

/// Bytes of bodies that were sent and received, and requests that were sent again.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) repeated: AtomicU64,
}

/// A client of blob services.
pub(super) struct Service {
    http: Http,
    retries: u32,
    pub(super) env: Env,
    pub(super) traffic: Arc<Traffic>,
}

impl Service {
    /// A client as the arguments have it.
    ///
    /// # Errors
    /// [`FilesError::Authority`].
    pub(super) fn new(args: &ConnectArgs) -> Result<Self, FilesError> {
        let (clock, rand) = (Arc::new(OsClock::new()), Arc::new(OsRand));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let http = Http::new(args.login.ca.as_deref(), env.tasks.clone())
            .map_err(FilesError::Authority)?;
        Ok(Self { http, retries: args.retries, env, traffic: Arc::default() })
    }

    /// Does work on files that blocks. Its error names `path`.
    ///
    /// # Errors
    /// [`FilesError::Disk`].
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, FilesError> {
        let done = self.env.tasks.spawn_blocking("local file", work).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|error| FilesError::Disk { path: path.to_owned(), error })
    }

    /// Sends a request until it succeeds, is refused, or was sent often enough.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn call(&self, ask: &Ask<'_>) -> Result<Answer, CallError> {
        let mut tries = 0;
        loop {
            let (error, asked) = match self.once(ask).await {
                Ok(answer) if answer.status.is_success() => return Ok(answer),
                // An earlier try has deleted it, and its answer was lost.
                Ok(answer) if tries > 0 && is_deleted(ask, &answer) => return Ok(answer),
                Ok(answer) => (refused(ask, &answer), retry_after(&answer)),
                Err(message) => {
                    let (what, code) = (ask.what(), String::new());
                    (CallError { what, status: None, code, message }, None)
                }
            };
            if tries >= self.retries || !may_succeed(error.status) {
                return Err(error);
            }
            tracing::debug!(%error, tries, "a request is sent again");
            self.traffic.repeated.fetch_add(1, Ordering::Relaxed);
            let random = self.env.rand.below(1_000);
            self.env.clock.sleep(pause(tries, asked, random)).await;
            tries += 1;
        }
    }

    async fn once(&self, ask: &Ask<'_>) -> Result<Answer, String> {
        let request = self.request(ask)?;
        let sent = ask.body.len() as u64;
        let answer = self.http.send(ask.to, request, ask.answer_max, ask.patience()).await?;
        self.traffic.sent.fetch_add(sent, Ordering::Relaxed);
        self.traffic.received.fetch_add(answer.body.len() as u64, Ordering::Relaxed);
        Ok(answer)
    }

    /// The request with its signature, whose time is now.
    fn request(&self, ask: &Ask<'_>) -> Result<Request<Full<Bytes>>, String> {
        let path = ask.to.path(ask.container, ask.blob);
        let pairs = ask.query.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
        let mut query = pairs.collect::<Vec<_>>().join("&");
        if let Credential::Signature(signature) = &ask.to.credential {
            query = [query.as_str(), signature].join("&").trim_matches('&').to_owned();
        }
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: &str| {
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("{name} cannot be sent: it is no plain text"))?;
            headers.insert(name, value);
            Ok::<_, String>(())
        };
        set(HOST, &ask.to.authority)?;
        set(USER_AGENT, concat!("blockyard/", env!("CARGO_PKG_VERSION")))?;
        set(HeaderName::from_static("x-ms-version"), MINT_VERSION)?;
        set(HeaderName::from_static("x-ms-date"), &self.env.clock.now().to_string())?;
        for (name, value) in &ask.headers {
            set(HeaderName::from_static(name), value)?;
        }
        if ask.method == Method::PUT {
            set(CONTENT_LENGTH, &ask.body.len().to_string())?;
        }
        if let Credential::Key(keys) = &ask.to.credential {
            let signed = SignedRequest {
                method: &ask.method,
                path: &path,
                query: Some(query.as_str()).filter(|query| !query.is_empty()),
                headers: &headers,
                account: &ask.to.account,
                secondary: false,
            };
            let value = sign(&signed, keys);
            let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
            headers.insert(AUTHORIZATION, value);
        }
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let built = Request::builder().method(ask.method.clone()).uri(target);
        let mut request =
            built.body(Full::new(ask.body.clone())).map_err(|error| error.to_string())?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn refused(ask: &Ask<'_>, answer: &Answer) -> CallError {
    let refused = answers::refusal(&answer.body).unwrap_or_default();
    let code = match answer.header("x-ms-error-code") {
        "" => shown(&refused.code),
        code => shown(code),
    };
    let (status, message) = (Some(answer.status.as_u16()), shown(&refused.message));
    CallError { what: ask.what(), status, code, message }
}

/// Whether a deletion found nothing to delete.
fn is_deleted(ask: &Ask<'_>, answer: &Answer) -> bool {
    ask.method == Method::DELETE && answer.status == StatusCode::NOT_FOUND
}

/// Whether the same request may succeed later. Other refusals stay.
fn may_succeed(status: Option<u16>) -> bool {
    status.is_none_or(|status| matches!(status, 408 | 429 | 500 | 502 | 503 | 504))
}

/// How long the server asks to wait.
fn retry_after(answer: &Answer) -> Option<Duration> {
    answer.header(RETRY_AFTER.as_str()).parse().ok().map(Duration::from_secs)
}

/// The pause after `tries` tries. A random part, of 0 to 999 thousandths of half the pause, is
/// subtracted, so that clients that failed together do not retry together.
fn pause(tries: u32, asked: Option<Duration>, random: u64) -> Duration {
    let doubled = PAUSE * 2_u32.pow(tries.min(10));
    let whole = doubled.max(asked.unwrap_or_default()).min(PAUSE_MAX);
    whole - whole.mul_f64(0.5) * u32::try_from(random.min(999)).unwrap_or(0) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::files::connect::Login;
    use crate::cli::files::connect::LoginArgs;

    #[test]
    fn only_what_can_pass_is_sent_again() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(may_succeed(Some(status)), "{status}");
        }
        assert!(may_succeed(None), "a broken connection");
        for status in [304, 400, 401, 403, 404, 409, 412, 416, 501, 507] {
            assert!(!may_succeed(Some(status)), "{status}");
        }
    }

    #[test]
    fn time_grows_with_the_bytes_that_are_sent_answered_or_fetched() {
        let args = LoginArgs { endpoint: None, account: None, connection_string: None, ca: None };
        let endpoint = Login::new(&args).unwrap().endpoint();
        let ask = || Ask::new(Method::PUT, &endpoint, Some("c"), Some("b"));
        assert_eq!(ask().patience(), PATIENCE);
        for bytes in [8 << 20, 64 << 20, 4_000 << 20] {
            let wanted = PATIENCE + Duration::from_secs(bytes / RATE_MIN);
            assert_eq!(ask().answered_by(bytes).patience(), wanted, "{bytes}");
            assert_eq!(ask().fetching(bytes).patience(), wanted, "{bytes}");
        }
        let body = Bytes::from(vec![0; 1 << 20]);
        assert_eq!(ask().body(body).patience(), PATIENCE + Duration::from_secs(64));
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_as_long_as_the_server_asks() {
        assert_eq!(pause(0, None, 0), PAUSE);
        assert_eq!(pause(3, None, 0), PAUSE * 8);
        assert_eq!(pause(40, None, 0), PAUSE_MAX);
        assert_eq!(pause(0, Some(Duration::from_secs(7)), 0), Duration::from_secs(7));
        assert_eq!(pause(0, Some(Duration::from_secs(7_000)), 0), PAUSE_MAX);
        let least = pause(2, None, 999);
        assert!(least > PAUSE * 2 && least < PAUSE * 4, "{least:?}");
    }
}
