//! The operations of a blob service that commands use.
//!
//! Sources: the pages of the Blob REST API with the same names.

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::header::CONTENT_LENGTH;
use http::header::CONTENT_TYPE;
use http::header::ETAG;
use http::header::LAST_MODIFIED;

use crate::protocol::azure::answers;
use crate::protocol::azure::answers::Listed;
use crate::protocol::azure::answers::ListedBlob;
use crate::protocol::azure::answers::ListedContainer;
use crate::protocol::azure::answers::Page;
use crate::protocol::azure::answers::StagedBlock;
use crate::types::Md5;

use super::endpoint::Endpoint;
use super::error::CallError;
use super::http::Answer;
use super::place::Remote;
use super::service::Ask;
use super::service::Service;

/// Names of a page of a list.
const PAGE_NAMES: &str = "5000";

/// The properties that a written blob gets.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) content_type: String,
    /// The digest of all of it.
    pub(super) md5: Option<Md5>,
}

/// A piece of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    /// Bytes, at least 1.
    pub(super) len: u64,
}

impl Piece {
    fn header(self) -> String {
        format!("bytes={}-{}", self.start, self.start + self.len - 1)
    }
}

/// The facts in the headers of a blob.
pub(super) fn facts(name: &str, answer: &Answer) -> ListedBlob {
    let header = |name: &str| answer.header(name).to_owned();
    ListedBlob {
        name: name.to_owned(),
        size: answer.header(CONTENT_LENGTH.as_str()).parse().unwrap_or(0),
        modified: answers::time(answer.header(LAST_MODIFIED.as_str())),
        etag: header(ETAG.as_str()),
        md5: Md5::from_base64(answer.header("content-md5")),
        content_type: header(CONTENT_TYPE.as_str()),
        kind: header("x-ms-blob-type"),
        tier: header("x-ms-access-tier"),
    }
}

/// An `ETag` as headers have it.
fn quoted(etag: &str) -> String {
    if etag.starts_with('"') { etag.to_owned() } else { format!("\"{etag}\"") }
}

impl Service {
    fn of_blob<'a>(&self, method: Method, at: &'a Remote) -> Ask<'a> {
        Ask::new(method, &at.endpoint, at.container.as_deref(), Some(&at.name))
    }

    /// Get Blob Properties, or Get Container Properties if no blob is named.
    pub(super) async fn properties(&self, at: &Remote) -> Result<Answer, CallError> {
        if at.name.is_empty() {
            let container = at.container.as_deref();
            let ask = Ask::new(Method::HEAD, &at.endpoint, container, None);
            return self.call(&ask.query("restype", "container")).await;
        }
        self.call(&self.of_blob(Method::HEAD, at)).await
    }

    /// The facts of a blob; `None` if it does not exist, or if the sender may not read them.
    pub(super) async fn find(&self, at: &Remote) -> Result<Option<ListedBlob>, CallError> {
        match self.properties(at).await {
            Ok(answer) => Ok(Some(facts(&at.name, &answer))),
            Err(error) if error.is_missing() || error.is_not_permitted() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Get Blob: a piece of the blob with this `ETag`, or all of a blob without bytes.
    ///
    /// # Errors
    /// [`CallError`], with status 412 if the blob was changed, and if the answer has another
    /// length.
    pub(super) async fn get(
        &self,
        at: &Remote,
        etag: &str,
        piece: Option<Piece>,
    ) -> Result<Bytes, CallError> {
        let len = piece.map_or(0, |piece| piece.len);
        let mut ask = self.of_blob(Method::GET, at).answered_by(len);
        ask = ask.header("if-match", quoted(etag));
        if let Some(piece) = piece {
            ask = ask.header("x-ms-range", piece.header());
        }
        let answer = self.call(&ask).await?;
        if answer.body.len() as u64 == len {
            return Ok(answer.body);
        }
        let message = format!("{} bytes were sent in place of {len}", answer.body.len());
        let what = format!("GET {}", at.url());
        Err(CallError { what, status: None, code: String::new(), message })
    }

    /// Put Blob: a whole block blob.
    pub(super) async fn put_blob(
        &self,
        at: &Remote,
        bytes: Bytes,
        content: &Content,
    ) -> Result<(), CallError> {
        let mut ask = self.of_blob(Method::PUT, at).header("x-ms-blob-type", "BlockBlob");
        if let Some(md5) = content.md5 {
            ask = ask.header("content-md5", md5.to_base64());
        }
        self.call(&with_content(ask, content).body(bytes)).await.map(drop)
    }

    /// The staged blocks of a blob; none if there is nothing, or if the sender may not read them.
    pub(super) async fn staged(&self, at: &Remote) -> Result<Vec<StagedBlock>, CallError> {
        let ask = self.of_blob(Method::GET, at).query("comp", "blocklist");
        match self.call(&ask.query("blocklisttype", "uncommitted")).await {
            Ok(answer) => Ok(answers::staged_blocks(&answer.body).unwrap_or_default()),
            Err(error) if error.is_missing() || error.is_not_permitted() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Put Block.
    pub(super) async fn put_block(
        &self,
        at: &Remote,
        id: &str,
        bytes: Bytes,
        md5: Md5,
    ) -> Result<(), CallError> {
        let ask = self.of_blob(Method::PUT, at).query("comp", "block").query("blockid", id);
        self.call(&ask.header("content-md5", md5.to_base64()).body(bytes)).await.map(drop)
    }

    /// Put Block From URL: a piece of the source with this `ETag`.
    pub(super) async fn put_block_from(
        &self,
        at: &Remote,
        id: &str,
        source: &Source<'_>,
        piece: Piece,
    ) -> Result<(), CallError> {
        let ask = self.of_blob(Method::PUT, at).query("comp", "block").query("blockid", id);
        let ask = ask
            .header("x-ms-copy-source", source.url)
            .header("x-ms-source-range", piece.header())
            .header("x-ms-source-if-match", quoted(source.etag));
        self.call(&ask.fetching(piece.len)).await.map(drop)
    }

    /// Put Block List.
    pub(super) async fn put_block_list(
        &self,
        at: &Remote,
        ids: &[String],
        content: &Content,
    ) -> Result<(), CallError> {
        let ask = self.of_blob(Method::PUT, at).query("comp", "blocklist");
        let body = Bytes::from(answers::block_list(ids));
        self.call(&with_content(ask, content).body(body)).await.map(drop)
    }

    /// Copy Blob: begins a copy from the same account. The answer says whether it has ended.
    pub(super) async fn copy(&self, at: &Remote, source: &Source<'_>) -> Result<Answer, CallError> {
        let ask = self.of_blob(Method::PUT, at).header("x-ms-copy-source", source.url);
        self.call(&ask.header("x-ms-source-if-match", quoted(source.etag))).await
    }

    /// Delete Blob, with its snapshots if wanted.
    pub(super) async fn delete_blob(&self, at: &Remote, snapshots: bool) -> Result<(), CallError> {
        let mut ask = self.of_blob(Method::DELETE, at);
        if snapshots {
            ask = ask.header("x-ms-delete-snapshots", "include");
        }
        self.call(&ask).await.map(drop)
    }

    /// Delete Container.
    pub(super) async fn delete_container(&self, at: &Remote) -> Result<(), CallError> {
        let ask = Ask::new(Method::DELETE, &at.endpoint, at.container.as_deref(), None);
        self.call(&ask.query("restype", "container")).await.map(drop)
    }

    /// Create Container. One that exists is left as it is.
    pub(super) async fn make_container(&self, at: &Remote) -> Result<(), CallError> {
        let ask = Ask::new(Method::PUT, &at.endpoint, at.container.as_deref(), None);
        match self.call(&ask.query("restype", "container")).await {
            Err(error) if error.code == "ContainerAlreadyExists" => Ok(()),
            made => made.map(drop),
        }
    }

    /// A page of List Blobs.
    pub(super) async fn list_blobs(
        &self,
        at: &Remote,
        prefix: &str,
        one_level: bool,
        marker: Option<&str>,
    ) -> Result<Page<Listed>, CallError> {
        let ask = Ask::new(Method::GET, &at.endpoint, at.container.as_deref(), None);
        let mut ask = ask.query("restype", "container").query("comp", "list");
        if !prefix.is_empty() {
            ask = ask.query("prefix", prefix);
        }
        if one_level {
            ask = ask.query("delimiter", "/");
        }
        let answer = self.call(&page(ask, marker)).await?;
        answers::blobs(&answer.body).map_err(|_| unreadable(&at.url()))
    }

    /// A page of List Containers.
    pub(super) async fn list_containers(
        &self,
        to: &Endpoint,
        marker: Option<&str>,
    ) -> Result<Page<ListedContainer>, CallError> {
        let ask = Ask::new(Method::GET, to, None, None).query("comp", "list");
        let answer = self.call(&page(ask, marker)).await?;
        answers::containers(&answer.body).map_err(|_| unreadable(&to.url(None, None)))
    }

    /// Get Blob Tags.
    pub(super) async fn tags(&self, at: &Remote) -> Result<Vec<(String, String)>, CallError> {
        let ask = self.of_blob(Method::GET, at).query("comp", "tags");
        let answer = self.call(&ask).await?;
        answers::tags(&answer.body).map_err(|_| unreadable(&at.url()))
    }
}

/// The source of a copy, as it is requested from its server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The URL, with a signature.
    pub(super) url: &'a str,
    pub(super) etag: &'a str,
}

fn with_content<'a>(mut ask: Ask<'a>, content: &Content) -> Ask<'a> {
    if !content.content_type.is_empty() {
        ask = ask.header("x-ms-blob-content-type", content.content_type.as_str());
    }
    if let Some(md5) = content.md5 {
        ask = ask.header("x-ms-blob-content-md5", md5.to_base64());
    }
    ask
}

fn page<'a>(ask: Ask<'a>, marker: Option<&str>) -> Ask<'a> {
    let ask = ask.query("maxresults", PAGE_NAMES);
    match marker {
        Some(marker) => ask.query("marker", marker),
        None => ask,
    }
}

/// An answer that is not a list.
fn unreadable(url: &str) -> CallError {
    let message = "the answer is no list: is this the URL of a blob service?".to_owned();
    CallError { what: format!("GET {url}"), status: None, code: String::new(), message }
}

/// The headers of metadata, without their prefix.
pub(super) fn metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix("x-ms-meta-")?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_etags_are_written_as_headers() {
        assert_eq!(Piece { start: 8, len: 4 }.header(), "bytes=8-11");
        assert_eq!(
            (quoted("0x8D").as_str(), quoted("\"0x8D\"").as_str()),
            ("\"0x8D\"", "\"0x8D\"")
        );
    }
}
