//! The lines. `docs/audit-log.md` shows each kind; a test holds the two against each other.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::types::Timestamp;

/// Who did it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// Nobody is known: the request proved nothing.
    #[default]
    Unknown,
    /// Anybody: the container or the site is open to all.
    Anonymous,
    /// Whoever has a key of the account.
    SharedKey,
    /// The holder of a shared access signature.
    Sas {
        /// The stored access policy that it names.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// Whose user delegation key signed it; none when a key of the account did.
        #[serde(skip_serializing_if = "Option::is_none")]
        delegator: Option<Subject>,
    },
    /// Whoever a bearer token speaks of.
    Bearer(Subject),
    /// Whoever has the admin token.
    AdminToken,
    /// The node itself.
    Node {
        /// Why it acts.
        task: &'static str,
    },
}

/// A name that an issuer of bearer tokens gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The issuer.
    pub issuer: String,
    /// Its name for the subject: `oid`, or `sub` where there is none.
    pub subject: String,
}

/// What kind of thing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Thing {
    /// A container: made, deleted, its metadata or lease changed.
    Container,
    /// An account, or its service properties.
    Account,
    /// Who may use a container without a role: its public access and stored access policies.
    Policy,
    /// A key: rotated, issued to a user, or revoked.
    Key,
    /// A role assigned to a subject or group.
    Grant,
    /// A rule of the fault dial.
    Fault,
    /// The partition map.
    PartitionMap,
    /// A disk of the store.
    Disk,
}

/// A change, beside who made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Of what kind of thing.
    pub of: Thing,
    /// What is to be known of it; never a secret.
    pub detail: Value,
}

/// What all lines tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// The account it is about.
    pub account: Option<String>,
    /// Who did it.
    pub principal: Principal,
    /// The client's address and port.
    pub address: Option<String>,
    /// The operation's REST name; of an admin command its own.
    pub operation: Cow<'static, str>,
    /// On what: `CONTAINER` or `CONTAINER/BLOB`; of an admin command what its name says.
    pub resource: Option<String>,
    /// The HTTP status; none when the client left before it was known.
    pub status: Option<u16>,
    /// The error code.
    pub code: Option<String>,
    /// `x-ms-request-id`, as in the log.
    pub request_id: Option<String>,
    /// Bytes of the request's body that were read.
    pub bytes_in: u64,
    /// Bytes of the answer's body that were sent.
    pub bytes_out: u64,
    /// From the request's head to this line, milliseconds.
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

/// The line that tells how many were dropped.
pub(super) fn lost(time: Timestamp, changes: u64, requests: u64) -> Vec<u8> {
    text(&Lost { time: time.to_iso_millis(), kind: "lost", changes, requests })
}

fn text(line: &impl Serialize) -> Vec<u8> {
    // Of these types nothing can fail to be written; an empty line would be the least harm.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}
