//! Sends commands to the admin listener of a running node.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::Request;
use http::header::AUTHORIZATION;
use http::header::CONTENT_TYPE;
use http::header::HOST;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::Limited;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use thiserror::Error;

use crate::env::Tasks;
use crate::node::config::ADMIN_TOKEN;
use crate::node::config::AdminAddress;
use crate::node::config::DATA;

use super::args::AdminArgs;
use super::place::AdminPlace;

/// The longest time until the node's answer begins.
const PATIENCE: Duration = Duration::from_secs(70);
/// The longest answer that is read into memory, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why a command failed. The text says what to do.
#[derive(Debug, Error)]
pub enum ClientError {
    /// There is no token.
    #[error(
        "cannot read the admin token {path}: {error}; name the node's first data directory with --data, the token's \
         file with --admin-token-file, or set BLOCKYARD_ADMIN_TOKEN"
    )]
    NoToken {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The node does not answer.
    #[error(
        "no answer from {address}: {error}; give the node's admin address with --admin-listen, and --admin-tls when the node \
         was given it"
    )]
    NoAnswer {
        /// The address.
        address: AdminAddress,
        /// Why.
        error: String,
    },
    /// The node refuses.
    #[error("{message}")]
    Refused {
        /// The code, for programs.
        code: String,
        /// The text, for users.
        message: String,
    },
}

/// The admin listener of a node, and its token.
#[derive(Clone)]
pub(crate) struct AdminClient {
    place: AdminPlace,
    token: String,
    tasks: Tasks,
}

impl std::fmt::Debug for AdminClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdminClient({})", self.place.address())
    }
}

impl AdminClient {
    /// Reads the token and the settings of the connection.
    ///
    /// # Errors
    /// [`ClientError::NoToken`]; [`ClientError::NoAnswer`] when the authority cannot be read.
    pub(crate) fn new(args: &AdminArgs) -> Result<Self, ClientError> {
        let place = AdminPlace::new(&args.place).map_err(|error| ClientError::NoAnswer {
            address: args.place.admin_listen.clone(),
            error: error.to_string(),
        })?;
        let token = match &args.admin_token {
            Some(token) => token.clone(),
            None => {
                let path = args.admin_token_file.clone().unwrap_or_else(|| {
                    let data =
                        args.place.data.first().map_or_else(|| PathBuf::from(DATA), PathBuf::clone);
                    data.join(ADMIN_TOKEN)
                });
                std::fs::read_to_string(&path)
                    .map_err(|error| ClientError::NoToken { path, error })?
            }
        };
        Ok(Self { place, token: token.trim().to_owned(), tasks: Tasks::new() })
    }

    /// Sends a command and reads the whole answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let response = self.open(method, path, body).await?;
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| self.no_answer(&error))?.to_bytes();
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| self.no_answer(&error))
    }

    /// Reads a page of text, which the node may send with any status. The first value is whether
    /// the status is a success.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`].
    pub(crate) async fn text(&self, path: &str) -> Result<(bool, String), ClientError> {
        let response = self.ask(Method::GET, path, None).await?;
        let is_success = response.status().is_success();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| self.no_answer(&error))?.to_bytes();
        Ok((is_success, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Sends a command and returns the answer's body as a stream.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let response = self.ask(method, path, body).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| self.no_answer(&error))?.to_bytes();
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = |name: &str| document["error"][name].as_str().map(str::to_owned);
        Err(ClientError::Refused {
            code: text("code").unwrap_or_else(|| status.as_u16().to_string()),
            message: text("message").unwrap_or_else(|| format!("the node answers {status}")),
        })
    }

    /// Sends a request and returns the answer, whatever its status is.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.place.host())
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| self.no_answer(&error))?;
        let answered = tokio::time::timeout(PATIENCE, self.send(request)).await;
        answered.map_err(|error| self.no_answer(&error))?
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        let stream = self.place.connect().await.map_err(|error| self.no_answer(&error))?;
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(|error| self.no_answer(&error))?;
        drop(self.tasks.spawn("admin client", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection ended");
            }
        }));
        sender.send_request(request).await.map_err(|error| self.no_answer(&error))
    }

    fn no_answer(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::NoAnswer { address: self.place.address().clone(), error: error.to_string() }
    }
}
