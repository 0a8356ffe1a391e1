//! Fetches the keys of an issuer.

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::StatusCode;
use http::header::ACCEPT;
use http_body_util::BodyExt;
use http_body_util::LengthLimitError;
use http_body_util::Limited;
use serde::Deserialize;
use thiserror::Error;

use crate::auth::KeySet;
use crate::auth::KeySetError;
use crate::env::Tasks;
use crate::frontend::client::Client;
use crate::frontend::client::ClientError;
use crate::frontend::client::Get;
use crate::frontend::client::port;
use crate::frontend::tokens::place::KeysAt;
use crate::frontend::tokens::place::KeysUrl;
use crate::frontend::tokens::place::KeysUrlError;

/// The most bytes of an answer. Key sets of large issuers have some ten thousand.
pub(super) const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Why keys cannot be fetched.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    File(std::io::Error),
    /// Its name does not resolve.
    #[error("its name does not resolve: {0}")]
    Resolve(std::io::Error),
    /// http leads to another machine.
    #[error("its name does not lead to a loopback address, and http is for those only")]
    Elsewhere,
    /// No answer.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// An answer without a document.
    #[error("it answered {0}")]
    Status(StatusCode),
    /// An answer that leads elsewhere.
    #[error("it answered {0}; redirects are not followed")]
    Redirect(StatusCode),
    /// Too long an answer.
    #[error("it answered more than {ANSWER_BYTES_MAX} bytes")]
    Large,
    /// An answer that ended early.
    #[error("its answer ended early: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// No answer within the time limit.
    #[error("it did not answer in time")]
    Late,
    /// Not a configuration document.
    #[error("its configuration document is refused: {0}")]
    Configuration(serde_json::Error),
    /// The configuration document of another issuer.
    #[error("its configuration document is of the issuer `{0}`")]
    Issuer(String),
    /// The configuration document names a URL from which keys are not fetched.
    #[error("the jwks_uri of its configuration document: {0}")]
    Place(#[from] KeysUrlError),
    /// A document at an https URL names keys at an http URL.
    #[error("the jwks_uri of its configuration document is http, and the document came by https")]
    Downgrade,
    /// Not a key set.
    #[error("{0}")]
    Keys(#[from] KeySetError),
}

/// The parts used of a configuration document (OpenID Connect Discovery 1.0, section 3).
#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

/// Fetches the keys of the issuer of that name from `place`.
pub(super) async fn keys(
    client: &Client,
    tasks: &Tasks,
    place: &KeysAt,
    issuer: &str,
) -> Result<KeySet, FetchError> {
    let url = match place {
        KeysAt::File(path) => {
            let path = path.clone();
            let reading = tasks.spawn_blocking("key set", move || std::fs::read_to_string(path));
            let read = reading.await.map_err(std::io::Error::other).and_then(|read| read);
            return Ok(KeySet::parse(&read.map_err(FetchError::File)?)?);
        }
        KeysAt::Url(url) => url.clone(),
        KeysAt::Configuration(url) => {
            let answer = get(client, tasks, url).await?;
            keys_url(&answer, url, issuer)?
        }
    };
    let answer = get(client, tasks, &url).await?;
    Ok(KeySet::parse(&String::from_utf8_lossy(&answer))?)
}

/// The URL of the keys in the configuration document of an issuer, which was read from `url`.
pub(super) fn keys_url(
    document: &[u8],
    url: &KeysUrl,
    issuer: &str,
) -> Result<KeysUrl, FetchError> {
    let configuration: Configuration =
        serde_json::from_slice(document).map_err(FetchError::Configuration)?;
    if configuration.issuer != issuer {
        return Err(FetchError::Issuer(configuration.issuer));
    }
    let keys: KeysUrl = configuration.jwks_uri.parse()?;
    if url.is_secure() && !keys.is_secure() {
        return Err(FetchError::Downgrade);
    }
    Ok(keys)
}

/// The body of the document at `url`.
async fn get(client: &Client, tasks: &Tasks, url: &KeysUrl) -> Result<Bytes, FetchError> {
    let uri = url.uri();
    let authority = uri.authority().ok_or(ClientError::Url)?;
    let found = client.resolve(authority.host(), port(uri, authority)).await;
    let mut refused = FetchError::Elsewhere;
    for address in found.map_err(FetchError::Resolve)? {
        if !url.is_secure() && !address.ip().to_canonical().is_loopback() {
            continue;
        }
        let accept = (ACCEPT, HeaderValue::from_static("application/json"));
        let request = Get { url: uri, headers: HeaderMap::from_iter([accept]) };
        let response = match client.get(request, address, tasks).await {
            Ok(response) => response,
            Err(error) => {
                refused = error.into();
                continue;
            }
        };
        match response.status() {
            StatusCode::OK => {}
            status if status.is_redirection() => return Err(FetchError::Redirect(status)),
            status => return Err(FetchError::Status(status)),
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        return body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            if error.is::<LengthLimitError>() { FetchError::Large } else { FetchError::Body(error) }
        });
    }
    Err(refused)
}
