//! The target of requests: one endpoint, one container, one of the two dialects.

mod azure;
mod s3;

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header::HeaderName;
use http::header::HeaderValue;
use http_body_util::Full;

use crate::types::Timestamp;

use super::call::Call;
use super::signing::shared_key::SharedKey;
use super::signing::sigv4::SigV4;

/// The protocol of an endpoint, with the credentials for it.
pub enum Dialect {
    /// Azure Blob, Shared Key.
    Azure(SharedKey),
    /// Azure Blob, a shared access signature, or nothing: what everyone may do.
    Signed(Option<String>),
    /// S3, Signature Version 4.
    S3(SigV4),
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Azure(_) => "Azure(..)",
            Self::Signed(_) => "Signed(..)",
            Self::S3(_) => "S3(..)",
        })
    }
}

/// One container of one server.
#[derive(Debug)]
pub struct Target {
    /// `host:port`, to connect to and to send as `Host`.
    pub authority: String,
    /// Path in front of the container: empty, or `/account`.
    root: String,
    /// The container (bucket) of all requests.
    container: String,
    /// Protocol and credentials.
    pub dialect: Dialect,
    /// Whether a block of Azure has its CRC-64, which some servers do not take.
    pub crc64: bool,
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
    /// A container of the server at `authority`, below the path `root`.
    #[must_use]
    pub fn new(authority: &str, root: &str, container: &str, dialect: Dialect) -> Self {
        let root = root.trim_end_matches('/').to_owned();
        let (authority, container) = (authority.to_owned(), container.to_owned());
        Self { authority, root, container, dialect, crc64: false }
    }

    /// The signed request for `call`; `None` if the protocol needs no request for it.
    ///
    /// # Errors
    /// A name or value does not fit into a header.
    pub fn request(
        &self,
        call: &Call,
        now: Timestamp,
    ) -> Result<Option<Request<Full<Bytes>>>, String> {
        let draft = match &self.dialect {
            Dialect::Azure(key) => azure::draft(self, Some(key), call, now)?,
            Dialect::Signed(_) => azure::draft(self, None, call, now)?,
            Dialect::S3(key) => s3::draft(self, key, call, now)?,
        };
        let Some(draft) = draft else { return Ok(None) };
        let mut uri = draft.path.clone();
        for (i, (name, value)) in draft.query.iter().enumerate() {
            uri.push(if i == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            uri.push_str(&encode(value));
        }
        if let Dialect::Signed(Some(signature)) = &self.dialect {
            uri.push(if draft.query.is_empty() { '?' } else { '&' });
            uri.push_str(signature);
        }
        let mut request = Request::new(Full::new(draft.body));
        *request.method_mut() = draft.method;
        *request.uri_mut() = uri.parse().map_err(|e| format!("{}: {e}", draft.path))?;
        *request.headers_mut() = draft.headers;
        Ok(Some(request))
    }

    /// Whether `status` is a success of `call`.
    pub fn accepts(&self, call: &Call, status: StatusCode) -> bool {
        let is_made = matches!(call, Call::CreateContainer { may_exist: true });
        status.is_success() || is_made && status == StatusCode::CONFLICT
    }

    /// Whether the server refuses `call` for a blob that does not exist. S3 deletes it with
    /// success.
    pub fn misses(&self, call: &Call) -> bool {
        match self.dialect {
            Dialect::Azure(_) | Dialect::Signed(_) => true,
            Dialect::S3(_) => !matches!(call, Call::Delete { .. }),
        }
    }

    /// Number of names in a page, and the marker of the next page if there is one.
    pub fn page(&self, xml: &[u8]) -> (usize, Option<String>) {
        let (entry, marker) = match self.dialect {
            Dialect::Azure(_) | Dialect::Signed(_) => ("<Blob>", "NextMarker"),
            Dialect::S3(_) => ("<Contents>", "NextContinuationToken"),
        };
        let text = String::from_utf8_lossy(xml);
        (text.matches(entry).count(), element(&text, marker).filter(|m| !m.is_empty()))
    }

    /// Names and tags of a page, in its order.
    pub fn entries(&self, xml: &[u8]) -> Vec<(String, String)> {
        let (entry, name, tag) = match self.dialect {
            Dialect::Azure(_) | Dialect::Signed(_) => ("<Blob>", "Name", "Etag"),
            Dialect::S3(_) => ("<Contents>", "Key", "ETag"),
        };
        let text = String::from_utf8_lossy(xml);
        let value = |entry: &str, of| element(entry, of).unwrap_or_default().replace("&quot;", "");
        text.split(entry).skip(1).map(|entry| (value(entry, name), value(entry, tag))).collect()
    }

    /// Names of a page of unfinished uploads, each with the id of its upload; Azure has none.
    #[must_use]
    pub fn unfinished(&self, xml: &[u8]) -> Vec<(String, String)> {
        let (entry, name) = match self.dialect {
            Dialect::Azure(_) | Dialect::Signed(_) => ("<Blob>", "Name"),
            Dialect::S3(_) => ("<Upload>", "Key"),
        };
        let text = String::from_utf8_lossy(xml);
        let value = |entry: &str, of| element(entry, of).unwrap_or_default();
        text.split(entry).skip(1).map(|one| (value(one, name), value(one, "UploadId"))).collect()
    }

    fn blob_path(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.root, self.container)
    }

    fn container_path(&self) -> String {
        format!("{}/{}", self.root, self.container)
    }
}

/// Text of the first element called `name`; entities are left as they are.
pub fn element(xml: &str, name: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::driver::signing::sigv4::SigV4;

    #[test]
    fn only_s3_deletes_what_is_not_there() {
        let key = || String::new();
        let s3 = SigV4 { access_key: key(), secret: key(), token: None, region: key() };
        let (name, expect) = (String::new(), Bytes::new());
        let (delete, head) =
            (Call::Delete { name: name.clone() }, Call::Head { name: name.clone() });
        let get = Call::Get { name, from: None, expect };
        for (dialect, deleted) in [(Dialect::S3(s3), false), (Dialect::Signed(None), true)] {
            let target = Target::new("h", "", "c", dialect);
            assert_eq!(
                [&delete, &head, &get].map(|call| target.misses(call)),
                [deleted, true, true]
            );
        }
    }
}
