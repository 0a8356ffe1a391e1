//! The messages of etcd's API that the coordinator sends and receives, with the field numbers of
//! `rpc.proto` and `kv.proto` (etcd.io, "API reference"). Fields that are not used are left out:
//! a decoder skips what it does not know.

use bytes::Bytes;
use prost::Message;
use prost::Oneof;

/// A call: its request, the path of its method, its answer.
pub(super) trait Rpc: Message {
    /// The path of the method, as gRPC writes it.
    const PATH: &'static str;
    /// The message that answers it.
    type Answer: Message + Default;
}

/// The head of each answer.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Header {
    /// The revision of the store when the request was carried out.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// The first key after the range. Empty: the one key.
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    /// The most keys of the answer. 0: no limit.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// The revision at which to read. 0: the newest.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    /// In byte order of their keys.
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    /// Whether the limit left keys out.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

impl Rpc for RangeRequest {
    const PATH: &'static str = "/etcdserverpb.KV/Range";
    type Answer = RangeResponse;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    /// 0: none.
    #[prost(int64, tag = "3")]
    pub lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
}

/// A condition: the key's field `target` equals `expected`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Compare {
    /// One of the constants below.
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub key: Bytes,
    #[prost(oneof = "Expected", tags = "4, 6, 7")]
    pub expected: Option<Expected>,
}

/// The number of changes of a key since it was created; 0 if it does not exist.
pub(super) const TARGET_VERSION: i32 = 0;
/// The revision of its last change; 0 if it does not exist.
pub(super) const TARGET_MOD: i32 = 2;
/// Its value. A key that does not exist equals no value.
pub(super) const TARGET_VALUE: i32 = 3;

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Expected {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes = "bytes", tag = "7")]
    Value(Bytes),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Request", tags = "1, 2, 3")]
    pub request: Option<Request>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// What is done if all conditions hold.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// The answer to one operation. Those to changes say nothing that is needed.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub range: Option<RangeResponse>,
}

impl Rpc for TxnRequest {
    const PATH: &'static str = "/etcdserverpb.KV/Txn";
    type Answer = TxnResponse;
}

/// Begins a watch. It is the one kind of `WatchRequest` that is sent.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreate>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchCreate {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    /// The first revision whose changes are wanted.
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
    /// Whether a watch without changes reports every ten minutes how far it is.
    #[prost(bool, tag = "4")]
    pub progress_notify: bool,
    /// Whether a large answer may come in parts.
    #[prost(bool, tag = "8")]
    pub fragment: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(bool, tag = "3")]
    pub created: bool,
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// If the watch was ended by a compaction: its revision.
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    /// Whether more parts of this answer follow.
    #[prost(bool, tag = "7")]
    pub fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

impl Rpc for WatchRequest {
    const PATH: &'static str = "/etcdserverpb.Watch/Watch";
    type Answer = WatchResponse;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Event {
    /// [`EVENT_PUT`] or [`EVENT_DELETE`].
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
}

/// The key was written.
pub(super) const EVENT_PUT: i32 = 0;
/// The key was removed.
pub(super) const EVENT_DELETE: i32 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantRequest {
    /// Seconds.
    #[prost(int64, tag = "1")]
    pub ttl: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub id: i64,
    #[prost(string, tag = "4")]
    pub error: String,
}

impl Rpc for LeaseGrantRequest {
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseGrant";
    type Answer = LeaseGrantResponse;
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseRevokeRequest {
    #[prost(int64, tag = "1")]
    pub id: i64,
}

impl Rpc for LeaseRevokeRequest {
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseRevoke";
    type Answer = Empty;
}

/// The method takes a stream of these; the coordinator sends one.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseKeepAliveRequest {
    #[prost(int64, tag = "1")]
    pub id: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseKeepAliveResponse {
    /// Seconds. 0: there is no such lease.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
}

impl Rpc for LeaseKeepAliveRequest {
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseKeepAlive";
    type Answer = LeaseKeepAliveResponse;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub token: String,
}

impl Rpc for AuthenticateRequest {
    const PATH: &'static str = "/etcdserverpb.Auth/Authenticate";
    type Answer = AuthenticateResponse;
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusResponse {
    /// Such as `3.4.23`.
    #[prost(string, tag = "2")]
    pub version: String,
}

impl Rpc for StatusRequest {
    const PATH: &'static str = "/etcdserverpb.Maintenance/Status";
    type Answer = StatusResponse;
}

/// An answer of which nothing is needed.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Empty {}
