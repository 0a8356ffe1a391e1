//! The lines. `docs/audit-log.md` shows each kind; a test compares it with the code.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::types::Timestamp;

/// The sender of a request, or the author of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// Unknown: the request was not authenticated.
    #[default]
    Unknown,
    /// An anonymous caller of a public container.
    Anonymous,
    /// The holder of a key of the account.
    SharedKey,
    /// The holder of a key of another account of the store.
    OtherAccount,
    /// The holder of an access key of a user of the account, or of keys that were made for it.
    User {
        /// The user's name.
        user: String,
    },
    /// The holder of a shared access signature.
    Sas {
        /// The stored access policy that it names.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// The holder of the user delegation key that signed it; `None` for a key of the account.
        #[serde(skip_serializing_if = "Option::is_none")]
        delegator: Option<Subject>,
    },
    /// The subject of a bearer token.
    Bearer(Subject),
    /// The holder of the admin token.
    AdminToken,
    /// A browser that was logged in to the console.
    Console,
    /// The node itself.
    Node {
        /// The task that acts, such as `index balancer`.
        task: &'static str,
    },
}

/// The subject of a bearer token, with the issuer that named it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The issuer.
    pub issuer: String,
    /// The issuer's name for the subject: the claim `oid`, or `sub` if there is no `oid`.
    pub subject: String,
}

/// The kind of thing that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thing {
    /// A container: made, deleted, its metadata or lease changed.
    Container,
    /// An account, or its service properties.
    Account,
    /// Access to a container without a role: its public access and stored access policies.
    Policy,
    /// A key: rotated, issued to a user, or revoked.
    Key,
    /// A user of an account: made, its keys rotated, deleted.
    User,
    /// An encryption scope of an account: made, disabled, enabled.
    Scope,
    /// A role assigned to a subject, group or user.
    Grant,
    /// A rule of the fault dial.
    Fault,
    /// The partition map.
    PartitionMap,
    /// A disk of the store.
    Disk,
    /// A backup: begun.
    Backup,
    /// A session of the console: a login link made, a session begun or ended.
    Session,
}

/// The changed resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The kind of thing.
    pub of: Thing,
    /// More about the change; never a secret.
    pub detail: Value,
}

/// The fields that all lines of requests and changes have.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// The account it is about.
    pub account: Option<String>,
    /// The sender or author.
    pub principal: Principal,
    /// The client's address and port.
    pub address: Option<String>,
    /// The operation's REST name, or the name of the admin command.
    pub operation: Cow<'static, str>,
    /// `CONTAINER` or `CONTAINER/BLOB`; for an admin command the rule, partition or disk.
    pub resource: Option<String>,
    /// The HTTP status; `None` when the client disconnected before it was known.
    pub status: Option<u16>,
    /// The error code.
    pub code: Option<String>,
    /// `x-ms-request-id`, as in the log.
    pub request_id: Option<String>,
    /// The id of the trace that the request is part of, as in its `traceparent` and its span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Bytes of the request's body that were read.
    pub bytes_in: u64,
    /// Bytes of the answer's body that were sent.
    pub bytes_out: u64,
    /// Milliseconds from the request's head to this line.
    pub ms: f64,
    /// Whether the client did not get the whole answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    time: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<Thing>,
    #[serde(flatten)]
    entry: &'a Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a Value>,
}

#[derive(Serialize)]
struct Lost {
    time: String,
    kind: &'static str,
    changes: u64,
    requests: u64,
}

/// A change's line.
pub(super) fn change(time: Timestamp, entry: &Entry, change: &Change) -> Vec<u8> {
    let detail = (!change.detail.is_null()).then_some(&change.detail);
    let (time, of) = (time.to_iso_millis(), Some(change.of));
    text(&Shown { time, kind: "change", of, entry, detail })
}

/// A request's line.
pub(super) fn request(time: Timestamp, entry: &Entry) -> Vec<u8> {
    text(&Shown { time: time.to_iso_millis(), kind: "request", of: None, entry, detail: None })
}

/// The line that says how many lines were dropped.
pub(super) fn lost(time: Timestamp, changes: u64, requests: u64) -> Vec<u8> {
    text(&Lost { time: time.to_iso_millis(), kind: "lost", changes, requests })
}

fn text(line: &impl Serialize) -> Vec<u8> {
    // Serializing these types cannot fail. An empty line would do the least harm.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}
