//! A refusal: why a request is not carried out, and what only this request knows of it. Each
//! dialect renders it.

use crate::protocol::model::reason::Reason;
use crate::types::VersionId;

/// Why a request is refused, and what only this request knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why. It decides the dialect's code, status and text.
    pub reason: Reason,
    /// Replaces the HTTP status that the dialect has for the reason: a copy answers with the status
    /// of its source, a refused token is 401.
    pub status: Option<u16>,
    /// Replaces the text that the dialect has for the reason; says what to do next.
    pub message: Option<String>,
    /// Narrows the reason: each dialect has words of its own for it.
    pub hint: Option<Hint>,
    /// The refusal of a copy source that this refusal passes on.
    pub source: Option<SourceRefusal>,
    /// The delete marker because of which there is no content.
    pub marker: Option<VersionId>,
    /// Further facts for the client, in order.
    pub details: Vec<(Detail, String)>,
    /// For the operator, in metrics and logs. Clients do not see it.
    pub cause: Option<Cause>,
}

/// The refusal of a copy source in this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRefusal {
    /// Why.
    pub reason: Reason,
    /// As [`Refusal::status`].
    pub status: Option<u16>,
}

/// A detail beyond the reason, if the advice to the client differs between dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The signature names the encryption scope of its writes; the request brings another one, or a
    /// key.
    OtherScope,
    /// The answer of the copy would wait for more bytes than it may.
    SourceTooLongToWait,
    /// The source of a block or of pages refused the copy.
    SourceOfPart,
    /// The MD5 of a range is wanted that is too long for it.
    LongForMd5,
    /// The CRC-64 of a range is wanted that is too long for it.
    LongForCrc64,
}

/// The subject of a refusal's detail. Each dialect decides whether and how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Why the request could not be authenticated.
    AuthenticationFailure,
    /// HTTP status of the answer of a copy source.
    SourceStatus,
    /// Error code of the answer of a copy source, in the words of its server.
    SourceCode,
    /// Message of the answer of a copy source.
    SourceMessage,
    /// Name of the header that is wrong or missing.
    HeaderName,
    /// Its value.
    HeaderValue,
    /// The longest body, bytes.
    Limit,
    /// The highest value allowed.
    Maximum,
    /// The lowest value allowed.
    Minimum,
    /// Name of the query parameter that is wrong or missing.
    ParameterName,
    /// Its value.
    ParameterValue,
    /// A description of the problem.
    Explanation,
    /// CRC-64 of the content that arrived, base64.
    ComputedCrc64,
    /// CRC-64 that the client sent, base64.
    ClaimedCrc64,
    /// MD5 of the content that arrived, base64.
    ComputedMd5,
    /// MD5 that the client sent, base64.
    ClaimedMd5,
    /// Name of the element of the document that is wrong or missing.
    ElementName,
    /// Its text.
    ElementValue,
    /// The ranges that exist: `bytes */LENGTH` (RFC 9110, Content-Range).
    SatisfiableRange,
    /// After how many seconds to try again.
    RetryAfter,
    /// How to authenticate (RFC 9110, WWW-Authenticate).
    Challenge,
    /// The string to sign of the server, for a signature that does not match.
    StringToSign,
    /// The form of the request that the string to sign has the hash of.
    CanonicalRequest,
    /// The access key that a request names.
    AccessKeyId,
    /// The tag of the content that was not modified.
    ContentEtag,
    /// The storage class of a blob in the archive tier.
    StorageClass,
    /// The condition that the request does not meet.
    Condition,
}

/// Why a request was refused, in one word of metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The server had no room: the exhausted resource.
    Busy(&'static str),
    /// The sender is not authenticated: the reason.
    Authentication(&'static str),
    /// The sender may not do this: what did not allow it.
    Authorization(&'static str),
}

impl Refusal {
    /// The reason alone.
    #[must_use]
    pub const fn new(reason: Reason) -> Self {
        let (status, message, hint, source, cause) = (None, None, None, None, None);
        let marker = None;
        Self { reason, status, message, hint, source, marker, details: Vec::new(), cause }
    }

    /// With a detail for the client.
    #[must_use]
    pub fn detail(mut self, detail: Detail, value: impl Into<String>) -> Self {
        self.details.push((detail, value.into()));
        self
    }

    /// With the delete marker because of which there is no content.
    #[must_use]
    pub const fn marker(mut self, marker: VersionId) -> Self {
        self.marker = Some(marker);
        self
    }

    /// With another status.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// With another message.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// With a detail beyond the reason.
    #[must_use]
    pub const fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// With the text that an operator sees.
    #[must_use]
    pub const fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The ranges that exist, of content of `len` bytes.
    #[must_use]
    pub fn satisfiable(self, len: u64) -> Self {
        self.detail(Detail::SatisfiableRange, format!("bytes */{len}"))
    }

    /// Whether the client did not authenticate, or not sufficiently. The answer then says how to.
    #[must_use]
    pub fn asks_for_authentication(&self) -> bool {
        self.status == Some(401)
            || (self.status.is_none() && self.reason == Reason::NoAuthenticationInformation)
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}
