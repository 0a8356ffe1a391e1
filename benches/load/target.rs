//! The target of requests: one endpoint, one container, one of the two dialects.

mod azure;
mod s3;

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Request;
use http::StatusCode;
use http::Uri;
use http::header::HeaderName;
use http::header::HeaderValue;
use http_body_util::Full;

use crate::call::Call;
use crate::signing::shared_key::SharedKey;
use crate::signing::sigv4::SigV4;

/// The protocol of an endpoint, with the credentials for it.
#[derive(Debug)]
pub(crate) enum Dialect {
    /// Azure Blob, Shared Key.
    Azure(SharedKey),
    /// S3, Signature Version 4.
    S3(SigV4),
}

/// One container of one server.
#[derive(Debug)]
pub(crate) struct Target {
    /// `host:port`, to connect to and to send as `Host`.
    pub(crate) authority: String,
    /// Path in front of the container: empty, or `/account`.
    root: String,
    /// The container (bucket) of all requests.
    container: String,
    /// Protocol and credentials.
    pub(crate) dialect: Dialect,
}

/// The parts of a request before it is signed.
struct Draft {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Bytes,
}

impl Draft {
    fn new(method: Method, path: String) -> Self {
        Self { method, path, query: Vec::new(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    fn header(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let value = HeaderValue::from_str(value).map_err(|e| format!("{name}: {e}"))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(())
    }
}

impl Target {
    /// Reads `http://host:port[/account]`.
    ///
    /// # Errors
    /// The endpoint is not a plain http address.
    pub(crate) fn new(endpoint: &str, container: &str, dialect: Dialect) -> Result<Self, String> {
        let uri: Uri = endpoint.parse().map_err(|e| format!("{endpoint}: {e}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("{endpoint}: only http:// is driven"));
        }
        let authority = uri.authority().ok_or_else(|| format!("{endpoint}: no host"))?.to_string();
        let root = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { authority, root, container: container.to_owned(), dialect })
    }

    /// The signed request for `call`; `None` if the protocol needs no request for it.
    ///
    /// # Errors
    /// A name or value does not fit into a header.
    pub(crate) fn request(&self, call: &Call) -> Result<Option<Request<Full<Bytes>>>, String> {
        let draft = match &self.dialect {
            Dialect::Azure(key) => azure::draft(self, key, call)?,
            Dialect::S3(key) => s3::draft(self, key, call)?,
        };
        let Some(draft) = draft else { return Ok(None) };
        let mut uri = draft.path;
        for (i, (name, value)) in draft.query.iter().enumerate() {
            uri.push(if i == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            uri.push_str(&encode(value));
        }
        let mut request = Request::new(Full::new(draft.body));
        *request.method_mut() = draft.method;
        *request.uri_mut() = uri.parse().map_err(|e| format!("{uri}: {e}"))?;
        *request.headers_mut() = draft.headers;
        Ok(Some(request))
    }

    /// Whether `status` is a success of `call`.
    pub(crate) fn accepts(&self, call: &Call, status: StatusCode) -> bool {
        let made_before = matches!(call, Call::CreateContainer) && status == StatusCode::CONFLICT;
        status.is_success() || made_before
    }

    /// Number of names in a page, and the marker of the next page if there is one.
    pub(crate) fn page(&self, xml: &[u8]) -> (usize, Option<String>) {
        let (entry, marker) = match self.dialect {
            Dialect::Azure(_) => ("<Blob>", "NextMarker"),
            Dialect::S3(_) => ("<Contents>", "NextContinuationToken"),
        };
        let text = String::from_utf8_lossy(xml);
        (text.matches(entry).count(), element(&text, marker).filter(|m| !m.is_empty()))
    }

    /// Names and tags of a page, in its order.
    pub(crate) fn entries(&self, xml: &[u8]) -> Vec<(String, String)> {
        let (entry, name, tag) = match self.dialect {
            Dialect::Azure(_) => ("<Blob>", "Name", "Etag"),
            Dialect::S3(_) => ("<Contents>", "Key", "ETag"),
        };
        let text = String::from_utf8_lossy(xml);
        let value = |entry: &str, of| element(entry, of).unwrap_or_default().replace("&quot;", "");
        text.split(entry).skip(1).map(|entry| (value(entry, name), value(entry, tag))).collect()
    }

    fn blob_path(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.root, self.container)
    }

    fn container_path(&self) -> String {
        format!("{}/{}", self.root, self.container)
    }
}

/// Text of the first element called `name`; entities are left as they are.
pub(crate) fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.to_owned())
}

/// Percent-encoding of all characters except the unreserved ones.
fn encode(value: &str) -> String {
    const KEPT: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    percent_encoding::utf8_percent_encode(value, &KEPT).to_string()
}
