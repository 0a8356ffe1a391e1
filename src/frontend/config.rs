//! The settings of a front end.

use std::time::Duration;

use crate::auth::TrustedIssuer;
use crate::frontend::answers::StallLimits;
use crate::frontend::dialect::Dialects;
use crate::frontend::source::Listening;
use crate::frontend::source::Outside;
use crate::protocol::KnownHosts;

/// An upload that sends less in some seconds makes no progress, while others need its resources. At
/// this rate a body that is held in memory is complete within a minute or so.
const UPLOAD_NOTE_BYTES: u64 = 64 << 10;

/// Limits of requests.
#[derive(Clone, Debug)]
pub struct FrontEndConfig {
    /// Host names under which accounts with the well-known development key are served.
    pub known_hosts: KnownHosts,
    /// The issuer of unsigned bearer tokens, with the accounts for development in which they are
    /// accepted. Default none.
    pub unsigned_tokens: Option<TrustedIssuer>,
    /// Whether requests over plain http are refused.
    pub https_only: bool,
    /// The dialects served, and how hosts name accounts in them.
    pub dialects: Dialects,
    /// Requests answered at a time, shared by the accounts; as many wait for a moment, and more get
    /// 503. Default 4,096.
    pub requests_max: usize,
    /// Requests a second of one account beyond which it gets 503; a burst may have a second's worth
    /// of them. 0, the default, is no limit.
    pub account_requests_per_second: u32,
    /// The time that rehydration from the archive tier takes. Default 1 s; the service takes hours.
    pub rehydration: Duration,
    /// Whether last-access times are written to the blobs' rows and shown. Default no.
    pub last_access: bool,
    /// The length of a day of retention. After the retention in days a soft-deleted row cannot be
    /// restored. Default 24 hours. Tests shorten it.
    pub retention_day: Duration,
    /// A client that sends nothing of its body for this long is cut off. Default 60 s.
    pub body_idle: Duration,
    /// The least bytes a second of a body that a client must send, over the time above; 0 is no
    /// limit. Default 1 KiB.
    pub request_rate_min: u64,
    /// A client that takes nothing of an answer for this long is cut off. Default 60 s.
    pub response_stall: Duration,
    /// The least bytes a second of an answer that a client must take, over the time above; 0 is no
    /// limit. Default 1 KiB.
    pub response_rate_min: u64,
    /// Bytes that all answers that are being sent may hold together. Default 128 MiB.
    pub answer_bytes_max: u64,
    /// The addresses that this process listens on: copy sources there are read without HTTP.
    pub listening: Listening,
    /// How copy sources on other servers are fetched, and which servers are permitted.
    pub outside: Outside,
}

impl FrontEndConfig {
    /// The limits of clients that receive an answer.
    pub(super) const fn stall_limits(&self) -> StallLimits {
        let Self { response_stall: stall, response_rate_min: rate_min, .. } = *self;
        StallLimits { stall, rate_min, note: 1 }
    }

    /// The limits of clients that send a body.
    pub(super) const fn upload_limits(&self) -> StallLimits {
        let Self { body_idle: stall, request_rate_min: rate_min, .. } = *self;
        StallLimits { stall, rate_min, note: UPLOAD_NOTE_BYTES }
    }
}
