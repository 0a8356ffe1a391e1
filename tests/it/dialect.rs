//! A dialect of ten operations, served beside Azure's by the same node. It is made of what the
//! library shows to everybody: `frontend/ops` and the index serve it without knowing it.
//!
//! Paths are `/plain/ACCOUNT/CONTAINER/BLOB`. Who has the password may do everything; without it,
//! what is open to the public may be read. Permission comes before validation. Metadata are headers
//! `note-NAME`. A body may come without a length. Errors are one line of text, with words of their
//! own.

mod content;
mod unlike;

use std::net::SocketAddr;
use std::sync::Arc;

use blockyard::auth::Action;
use blockyard::env::Env;
use blockyard::env::OsClock;
use blockyard::env::OsRand;
use blockyard::env::Tasks;
use blockyard::frontend::dialect::Foreign;
use blockyard::frontend::dialect::ForeignEcho;
use blockyard::frontend::dialect::HeaderNames;
use blockyard::frontend::dialect::Sender;
use blockyard::node::config::Config;
use blockyard::node::config::Settings;
use blockyard::node::config::Switch;
use blockyard::node::listeners::Listeners;
use blockyard::node::running::Node;
use blockyard::protocol::model::Address;
use blockyard::protocol::model::Operation;
use blockyard::protocol::model::Precondition;
use blockyard::protocol::model::Reason;
use blockyard::protocol::model::Refusal;
use blockyard::protocol::model::Reply;
use blockyard::protocol::model::checksum::BodyChecksum;
use blockyard::protocol::model::list_reply::BlobItem;
use blockyard::protocol::model::operation::BlobOperation;
use blockyard::protocol::model::operation::BlobPath;
use blockyard::protocol::model::operation::ClaimedChecksums;
use blockyard::protocol::model::operation::ContainerOperation;
use blockyard::protocol::model::operation::ContainerSettings;
use blockyard::protocol::model::operation::ContentOperation;
use blockyard::protocol::model::operation::Document;
use blockyard::protocol::model::operation::DocumentBody;
use blockyard::protocol::model::operation::Framing;
use blockyard::protocol::model::operation::ListBlobs;
use blockyard::protocol::model::operation::Parsed;
use blockyard::protocol::model::operation::RequestEncryption;
use blockyard::protocol::model::operation::Upload;
use blockyard::protocol::model::reply::BlobFacts;
use blockyard::types::AccountName;
use blockyard::types::BlobName;
use blockyard::types::BlobProperties;
use blockyard::types::BlockId;
use blockyard::types::BlockListEntry;
use blockyard::types::BlockSource;
use blockyard::types::ByteRange;
use blockyard::types::ContainerName;
use blockyard::types::Crc64;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::PublicAccess;
use blockyard::types::Revision;
use blockyard::types::Tags;
use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Response;
use http::request::Parts;
use tokio::runtime::Runtime;

use crate::folder::Data;
use crate::server::ACCOUNT;
use crate::server::KEY;
use crate::wire::Answer;
use crate::wire::Ending;
use crate::wire::Message;
use crate::wire::exchange;
use crate::wire::send;

const PASSWORD: &str = "swordfish";
/// Bytes of a body without a length.
const OPEN_BYTES_MAX: u64 = 4 << 20;

/// What refusals are called; all others are trouble.
const ERRORS: [(Reason, u16, &str); 9] = [
    (Reason::ConditionNotMet, 412, "too-late"),
    (Reason::NothingToMatch, 404, "nothing-there"),
    (Reason::ChecksumMismatch, 400, "other-bytes"),
    (Reason::BlobNotFound, 404, "gone-fishing"),
    (Reason::ContainerNotFound, 404, "gone-fishing"),
    (Reason::NoAuthenticationInformation, 401, "who-are-you"),
    (Reason::AuthenticationFailed, 403, "liar"),
    (Reason::InvalidInput, 422, "nonsense"),
    (Reason::RequestBodyTooLarge, 413, "whale"),
];

#[derive(Debug)]
struct Plain;

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn malformed(what: &str) -> Refusal {
    Refusal::new(Reason::InvalidInput).message(format!("{what} makes no sense"))
}

fn notes(head: &Parts) -> Result<Metadata, Refusal> {
    let notes = head.headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix("note-")?;
        Some((name.to_owned(), value.as_bytes().to_vec()))
    });
    Metadata::new(notes).map_err(|_| malformed("a note"))
}

fn upload(head: &Parts) -> Result<Upload, Refusal> {
    let framing = match text(&head.headers, "content-length") {
        Some(len) => Framing::Known { len: len.parse().map_err(|_| malformed("the length"))? },
        None => Framing::Open { len_max: OPEN_BYTES_MAX },
    };
    Ok(Upload { framing, md5: None, crc64: None, checksums: content::sum(head)? })
}

/// `bytes: FIRST LAST`.
fn range(head: &Parts) -> Result<Option<ByteRange>, Refusal> {
    let Some(given) = text(&head.headers, "bytes") else { return Ok(None) };
    let pair = given.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let range = pair.and_then(|(first, last)| ByteRange::new(first, Some(last)));
    range.map(Some).ok_or_else(|| malformed("the range"))
}

fn block(id: &str) -> Result<BlockId, Refusal> {
    BlockId::from_bytes(id.as_bytes()).ok_or_else(|| malformed("the piece"))
}

/// The body of a join: a line with the id of each piece.
fn joined(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    let Operation::Content(ContentOperation::PutBlockList { list, checksum, .. }) = operation
    else {
        return Err(Reason::InternalError.into());
    };
    let lines = std::str::from_utf8(document.bytes).map_err(|_| malformed("the list"))?.lines();
    let entry = |id| Ok(BlockListEntry { source: BlockSource::Latest, id: block(id)? });
    *list = lines.map(entry).collect::<Result<_, Refusal>>()?;
    *checksum = document.checksum;
    Ok(())
}

fn without_condition() -> Precondition {
    Precondition { encryption: RequestEncryption::Plain, ..Precondition::default() }
}

fn of_container(head: &Parts, container: ContainerName) -> Result<Operation, Refusal> {
    let precondition = Precondition::default();
    match head.method {
        Method::PUT => Ok(ContainerOperation::CreateContainer {
            container,
            metadata: notes(head)?,
            public_access: match text(&head.headers, "open") {
                Some("yes") => PublicAccess::Blob,
                Some(_) => return Err(malformed("what is open")),
                None => PublicAccess::Private,
            },
            encryption_scope: None,
            settings: ContainerSettings::default(),
        }
        .into()),
        Method::DELETE => {
            Ok(ContainerOperation::DeleteContainer { container, precondition }.into())
        }
        Method::GET => Ok(ContainerOperation::ListBlobs(ListBlobs {
            retention: false,
            legal_hold: false,
            container,
            prefix: None,
            delimiter: None,
            marker: None,
            start_from: None,
            end_before: None,
            after: None,
            exact: false,
            max_results: None,
            metadata: false,
            uncommitted: false,
            snapshots: false,
            versions: None,
            deleted: false,
            versions_only: false,
            tags: false,
            copy: false,
            content_etag: false,
            columns: false,
        })
        .into()),
        _ => Err(malformed("the method")),
    }
}

fn of_blob(head: &Parts, path: BlobPath) -> Result<Operation, Refusal> {
    let conditions = content::conditions(head);
    let precondition = Precondition { conditions, ..without_condition() };
    let (properties, tags, tier) = (BlobProperties::default(), Tags::default(), None);
    let query = head.uri.query().unwrap_or("");
    match (&head.method, query.split_once('=').unwrap_or((query, ""))) {
        (&Method::PUT, ("", "")) => {
            let (kind, metadata, upload) = (NewKind::Block, notes(head)?, upload(head)?);
            Ok(ContentOperation::PutBlob {
                path,
                precondition,
                properties,
                metadata,
                tags,
                kind,
                tier,
                object: None,
                upload,
            }
            .into())
        }
        (&Method::PUT, ("piece", id)) => {
            let precondition = Precondition::default();
            Ok(ContentOperation::PutBlock {
                path,
                id: block(id)?,
                precondition,
                upload: upload(head)?,
            }
            .into())
        }
        (&Method::POST, ("join", "")) => Ok(ContentOperation::PutBlockList {
            path,
            precondition,
            properties,
            metadata: notes(head)?,
            tags,
            tier,
            list: Vec::new(),
            checksum: BodyChecksum::Crc64(Crc64::EMPTY),
        }
        .into()),
        (&Method::POST, ("notes", "")) => {
            Ok(BlobOperation::SetBlobMetadata { path, precondition, metadata: notes(head)? }.into())
        }
        (&Method::GET, ("", "")) => {
            Ok(BlobOperation::GetBlob { path, precondition, range: range(head)?, checksum: None }
                .into())
        }
        (&Method::HEAD, ("", "")) => {
            Ok(BlobOperation::GetBlobProperties { path, precondition }.into())
        }
        (&Method::DELETE, ("", "")) => {
            let scope = blockyard::types::DeleteScope::default();
            Ok(BlobOperation::DeleteBlob { path, precondition, scope }.into())
        }
        _ => Err(malformed("the request")),
    }
}

fn described(facts: &BlobFacts, len: u64) -> Response<Bytes> {
    let mut response = Response::builder().header("content-length", len);
    for (name, value) in facts.metadata.iter() {
        response = response.header(format!("note-{name}"), value);
    }
    for (name, value) in content::of_content(facts) {
        response = response.header(name, value);
    }
    response.body(Bytes::new()).unwrap()
}

fn answer(status: u16, body: String) -> Response<Bytes> {
    let response = Response::builder().status(status).header("content-length", body.len());
    response.body(body.into()).unwrap()
}

impl Foreign for Plain {
    fn recognises(&self, head: &Parts) -> bool {
        head.uri.path().starts_with("/plain/")
    }

    fn headers(&self) -> HeaderNames {
        HeaderNames {
            client_request_id: "my-name",
            request_id: "your-name",
            error_code: "plain-error",
        }
    }

    fn address(&self, head: &Parts) -> Result<Address, Refusal> {
        let mut names = head.uri.path().splitn(5, '/').skip(2);
        let mut next = || names.next().filter(|name| !name.is_empty());
        let nothing = |_| Refusal::from(Reason::InvalidUri);
        let account = AccountName::new(next().unwrap_or("")).map_err(nothing)?;
        let container = next().map(ContainerName::new).transpose().map_err(nothing)?;
        let blob = next().map(BlobName::new).transpose().map_err(nothing)?;
        Ok(Address {
            account,
            secondary: false,
            container,
            blob,
            blob_as_sent: None,
            endpoint: String::new(),
        })
    }

    fn identify(&self, head: &Parts, _: &Address) -> Result<Sender, Refusal> {
        match text(&head.headers, "password") {
            None => Ok(Sender::Anyone),
            Some(PASSWORD) => Ok(Sender::Owner),
            Some(_) => Err(Reason::AuthenticationFailed.into()),
        }
    }

    fn action(&self, head: &Parts, address: &Address) -> Result<Action, Refusal> {
        Ok(match (&head.method, &address.blob) {
            (&Method::GET | &Method::HEAD, Some(_)) => Action::ReadBlob,
            (&Method::DELETE, Some(_)) => Action::DeleteBlob,
            (_, Some(_)) => Action::WriteBlob,
            (&Method::GET, None) => Action::ListBlobs { tagged: false },
            (&Method::DELETE, None) => Action::DeleteContainer,
            (_, None) => Action::CreateContainer,
        })
    }

    fn parse(&self, head: &Parts, address: &Address) -> Result<Parsed, Refusal> {
        let container = address.container.clone().ok_or(Reason::InvalidUri)?;
        let Some(blob) = address.blob.clone() else {
            return of_container(head, container).map(Parsed::ready);
        };
        let operation = of_blob(head, BlobPath { container, blob, revision: Revision::Current })?;
        if let Operation::Content(ContentOperation::PutBlockList { .. }) = operation {
            let body = DocumentBody { upload: upload(head)?, decode: joined };
            return Ok(Parsed::NeedsBody { operation: Box::new(operation), body });
        }
        Ok(Parsed::ready(operation))
    }

    fn render(&self, reply: &Reply, echo: &ForeignEcho) -> Response<Bytes> {
        let mut response = if let Reply::Blobs(listing) = reply {
            let lines = listing.items.iter().filter_map(|item| match item {
                BlobItem::Blob { name, facts, .. } => Some(format!("{} {name}\n", facts.len)),
                BlobItem::VersionsOnly { .. }
                | BlobItem::Uncommitted { .. }
                | BlobItem::Prefix { .. } => None,
            });
            answer(200, lines.collect())
        } else if let Reply::Blob { facts, range, .. } = reply {
            described(facts, range.as_ref().map_or(facts.len, |range| range.end - range.start))
        } else if let Reply::BlobProperties(facts) = reply {
            described(facts, facts.len)
        } else {
            answer(200, "done\n".to_owned())
        };
        response.headers_mut().insert("your-name", echo.id.parse().unwrap());
        response
    }

    fn render_refusal(&self, refusal: &Refusal, _: &ForeignEcho) -> Response<Bytes> {
        let known = ERRORS.iter().find(|(reason, ..)| *reason == refusal.reason);
        let (status, code) = known.map_or((500, "trouble"), |(_, status, code)| (*status, *code));
        let mut response = answer(status, format!("{code}\n"));
        response.headers_mut().insert("plain-error", code.parse().unwrap());
        response
    }
}

/// A node that speaks both dialects.
struct Both {
    runtime: Runtime,
    node: Option<Node>,
    _data: Data,
}

impl Both {
    fn start() -> Self {
        let data = Data::new();
        let settings = Settings {
            data: Some(vec![data.path().to_owned()]),
            blob_listen: Some("127.0.0.1:0".parse().unwrap()),
            admin_listen: Some("127.0.0.1:0".parse().unwrap()),
            account: Some(vec![format!("{ACCOUNT}:{KEY}").parse().unwrap()]),
            public_access: Some(Switch::On),
            ..Settings::default()
        };
        let config = Config::from_settings(settings).unwrap();
        let env =
            Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
        let runtime = Runtime::new().unwrap();
        let node = runtime.block_on(async {
            let listeners = Listeners::bind(&config).await.unwrap();
            let listeners = Listeners { dialect: Some(Arc::new(Plain)), ..listeners };
            Node::start(&config, env, listeners).await.unwrap()
        });
        Self { runtime, node: Some(node), _data: data }
    }

    /// An answer to `METHOD /CONTAINER/BLOB` of the plain dialect.
    fn plain(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let mut head = format!("{method} /plain/{ACCOUNT}{path} HTTP/1.1\r\nhost: here\r\n");
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let bytes = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        exchange(self.address(), bytes.as_bytes(), Ending::Wait, method == "HEAD").unwrap()
    }

    /// As [`Self::plain`], of the holder of the password.
    fn owner(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let password = format!("password: {PASSWORD}");
        self.plain(line, &[&[password.as_str()], headers].concat(), body)
    }

    /// An answer of Azure's dialect.
    fn azure(&self, message: &Message) -> Answer {
        send(self.address(), message).unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.node.as_ref().unwrap().serving.blob
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        if let Some(node) = self.node.take() {
            self.runtime.block_on(node.stop());
        }
    }
}

fn of_azure(method: &str, path: &str) -> Message {
    Message::new(&format!("{method} /{ACCOUNT}/{path}")).header("x-ms-version: 2024-11-04")
}

#[test]
fn what_one_dialect_writes_the_other_reads() {
    let both = Both::start();
    assert_eq!(both.owner("PUT /box", &[], "").status, 200);
    assert_eq!(both.owner("PUT /box/a", &["note-mood: good"], "one").status, 200);
    let read = both.azure(&of_azure("GET", "box/a"));
    assert_eq!((read.status, read.text().as_str()), (200, "one"));
    assert_eq!(read.header("x-ms-meta-mood"), "good");

    let put = of_azure("PUT", "box/b").header("x-ms-blob-type: BlockBlob");
    let put = put.header("x-ms-meta-mood: fair").body("from azure");
    assert_eq!(both.azure(&put).status, 201);
    let read = both.owner("GET /box/b", &["bytes: 5 9"], "");
    assert_eq!((read.status, read.text().as_str()), (200, "azure"));
    assert_eq!(read.header("note-mood"), "fair");
    assert!(!read.header("your-name").is_empty() && read.header("x-ms-request-id").is_empty());

    for (piece, body) in [("p1", "first "), ("p2", "second")] {
        assert_eq!(both.owner(&format!("PUT /box/c?piece={piece}"), &[], body).status, 200);
    }
    assert_eq!(both.owner("POST /box/c?join", &[], "p2\np1\n").status, 200);
    assert_eq!(both.azure(&of_azure("GET", "box/c")).text(), "secondfirst ");
    assert_eq!(both.owner("POST /box/c?notes", &["note-mood: new"], "").status, 200);
    assert_eq!(both.azure(&of_azure("HEAD", "box/c")).header("x-ms-meta-mood"), "new");
    let head = both.owner("HEAD /box/c", &[], "");
    assert_eq!((head.header("content-length"), head.header("note-mood")), ("12", "new"));
    assert_eq!(both.owner("GET /box", &[], "").text(), "3 a\n10 b\n12 c\n");

    assert_eq!(both.owner("DELETE /box/c", &[], "").status, 200);
    assert_eq!(both.azure(&of_azure("GET", "box/c")).header("x-ms-error-code"), "BlobNotFound");
    assert_eq!(both.azure(&of_azure("DELETE", "box/b")).status, 202);
    let gone = both.owner("GET /box/b", &[], "");
    assert_eq!((gone.status, gone.text().as_str()), (404, "gone-fishing\n"));
    assert_eq!(both.owner("DELETE /box", &[], "").status, 200);
    assert_eq!(both.azure(&of_azure("GET", "box?restype=container")).status, 404);
}

#[test]
fn dialect_has_its_own_proofs_order_of_checks_and_error_codes() {
    let both = Both::start();
    let code = |answer: &Answer| (answer.status, answer.text().trim().to_owned());
    let expected = |status: u16, code: &str| (status, code.to_owned());
    for (name, headers) in [("shut", &[][..]), ("ajar", &["open: yes"])] {
        assert_eq!(both.owner(&format!("PUT /{name}"), headers, "").status, 200);
        assert_eq!(both.owner(&format!("PUT /{name}/a"), &[], "text").status, 200);
    }
    let wrong = both.plain("GET /shut/a", &["password: guess"], "");
    assert_eq!(code(&wrong), expected(403, "liar"));
    // Permission comes before validation.
    let bad = &["bytes: all of them"];
    assert_eq!(code(&both.plain("GET /shut/a", bad, "")), expected(401, "who-are-you"));
    assert_eq!(code(&both.plain("GET /ajar/a", bad, "")), expected(422, "nonsense"));
    assert_eq!(code(&both.owner("GET /shut/a", bad, "")), expected(422, "nonsense"));
    assert_eq!(both.plain("GET /ajar/a", &[], "").text(), "text");
    // What is open to the public may not be written or listed.
    assert_eq!(code(&both.plain("PUT /ajar/a", &[], "mine")), expected(401, "who-are-you"));
    assert_eq!(code(&both.plain("GET /ajar", &[], "")), expected(401, "who-are-you"));
    // A sender of one dialect proves nothing in the other.
    let password = Message { sign: crate::wire::Sign::Not, ..of_azure("GET", "shut/a") };
    let password = password.header(&format!("password: {PASSWORD}"));
    assert_eq!(both.azure(&password).status, 401);
}
