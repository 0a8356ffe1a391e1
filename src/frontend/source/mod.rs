//! Where the bytes of "from URL" operations come from.
//!
//! 1. `local.rs` tells URLs of this same store from others.
//! 2. `inside.rs` reads the store's own blobs, without HTTP: a source is authorized by the same
//!    code as a request for it, then looked up, and shared or streamed.
//! 3. `outside.rs` asks other servers, those that `rules.rs` permits; `rate.rs` holds them to a
//!    minimum rate.
//! 4. `refusal.rs` says why a source cannot be taken, in the words of the service.
//!
//! Invariants: nothing of a source is read before it was authorized; what is shared was noted in
//! `index::InFlight` before it was looked up, and is held until the commit that names it was
//! answered; the address that was permitted is the one that is asked, and no answer leads to
//! another server.

mod inside;
mod local;
mod outside;
mod rate;
mod refusal;
mod rules;

pub use local::Listening;
pub use outside::Outside;
pub use rules::{Pattern, PatternError, Rules};

pub(crate) use inside::{Inside, SharedPart};
pub(crate) use outside::By;
pub(crate) use outside::Fetched;
pub(crate) use rate::MinimumRate;

use std::time::Duration;

use http::request::Parts;

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::frontend::body::RequestBody;
use crate::frontend::service::FrontEnd;
use crate::protocol::Error;
use crate::protocol::copy::CopySource;
use crate::types::AccountId;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::Metadata;
use crate::types::Peer;
use crate::types::Tags;

/// Who asks for a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The head of the request, which was admitted.
    pub(crate) head: &'a Parts,
    /// Where it came from.
    pub(crate) peer: Peer,
    /// Whether the sender proved who they are.
    pub(crate) authenticated: bool,
    /// For whom the request has a place among the requests.
    pub(crate) admitted: Option<AccountId>,
}

impl Requester<'_> {
    /// Whose share of memory an answer takes.
    pub(crate) const fn payer(&self, account: &Account) -> Payer {
        Payer { account: account.id, peer: self.peer.address.ip(), known: self.authenticated }
    }
}

/// What a copy may take over from its source.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// What it is.
    pub(crate) kind: BlobKind,
    /// System properties.
    pub(crate) properties: BlobProperties,
    /// User metadata.
    pub(crate) metadata: Metadata,
    /// Index tags; none of a source elsewhere.
    pub(crate) tags: Tags,
}

/// A source that was found and may be taken.
#[derive(Debug)]
pub(crate) enum Source {
    /// A blob of this store.
    Inside(Box<Inside>),
    /// An answer of another server.
    Outside(Box<Fetched>),
}

impl Source {
    /// Bytes that are wanted of it.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Inside(inside) => inside.len(),
            Self::Outside(fetched) => fetched.len,
        }
    }

    /// What is known of it.
    pub(crate) fn facts(&self) -> Facts {
        match self {
            Self::Inside(inside) => inside.facts(),
            Self::Outside(fetched) => fetched.facts.clone(),
        }
    }

    /// The bytes.
    pub(crate) async fn body(self, front: &FrontEnd) -> Result<RequestBody, Error> {
        match self {
            Self::Inside(inside) => inside.body(front).await,
            Self::Outside(fetched) => Ok(fetched.body(front)),
        }
    }
}

/// Asks a source on another server, whose bytes are to be there within `time`.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_outside(
    front: &FrontEnd,
    by: By,
    source: &CopySource,
    time: Duration,
) -> Result<Fetched, Error> {
    outside::open(front, by, source, time).await
}

/// Looks a source up.
///
/// # Errors
/// `CannotVerifyCopySource` with the status the source gives; `SourceConditionNotMet`;
/// `InvalidRange`.
pub(crate) async fn open(
    front: &FrontEnd,
    (requester, account): (Requester<'_>, &Account),
    source: &CopySource,
) -> Result<Source, Error> {
    if local::is_here(&front.config, requester, &source.url) {
        let inside = inside::open(front, (requester, account), source).await?;
        return Ok(Source::Inside(Box::new(inside)));
    }
    let by = By { payer: account.id, admitted: requester.admitted };
    let fetched = outside::open(front, by, source, outside::TOTAL_TIME_MAX).await?;
    Ok(Source::Outside(Box::new(fetched)))
}
