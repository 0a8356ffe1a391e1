//! Finds a source, inside or outside.

use std::time::Duration;

use crate::frontend::body::RequestBody;
use crate::frontend::source::facts::Facts;
use crate::frontend::source::inside;
use crate::frontend::source::inside::Inside;
use crate::frontend::source::local;
use crate::frontend::source::outside;
use crate::frontend::source::outside::FetchAccount;
use crate::frontend::source::outside::Fetched;
use crate::frontend::source::refusal;
use crate::frontend::source::requester::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::named_copy::NamedSource;

/// A source that was found and may be taken.
#[derive(Debug)]
pub(crate) enum Source {
    /// A blob of this store.
    Inside(Box<Inside>),
    /// An answer of another server.
    Outside(Box<Fetched>),
}

impl Source {
    /// The number of wanted bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Inside(inside) => inside.len(),
            Self::Outside(fetched) => fetched.len,
        }
    }

    /// Its properties, metadata and tags.
    pub(crate) fn facts(&self) -> Facts {
        match self {
            Self::Inside(inside) => inside.facts(),
            Self::Outside(fetched) => fetched.facts.clone(),
        }
    }

    /// The wanted bytes.
    pub(crate) async fn body(self, front: &FrontEnd) -> Result<RequestBody, Refusal> {
        match self {
            Self::Inside(inside) => inside.body(front).await,
            Self::Outside(fetched) => Ok(fetched.body(front)),
        }
    }
}

/// Requests a source on another server. All its bytes must arrive within `time`.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_outside(
    front: &FrontEnd,
    by: FetchAccount,
    source: &CopySource,
    time: Duration,
) -> Result<Fetched, Refusal> {
    let fetched = outside::open(front, by, source, time).await;
    fetched.map_err(|refused| refusal::of_operation(refused, source))
}

/// Finds a blob of the requester's account, which the sender is permitted to read.
///
/// # Errors
/// `SourceConditionNotMet`; `InvalidRange` unless all wanted bytes exist; those of a read.
pub(crate) async fn open_named(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &NamedSource,
) -> Result<Inside, Refusal> {
    inside::open_named(front, requester, source).await
}

/// Finds a source.
///
/// # Errors
/// `CannotVerifyCopySource` with the status the source gives; `SourceConditionNotMet`, or what the
/// operation answers in its place; `InvalidRange`.
pub(crate) async fn open(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &CopySource,
) -> Result<Source, Refusal> {
    let found = find(front, requester, source).await;
    found.map_err(|refused| refusal::of_operation(refused, source))
}

/// Finds a source in this store; `None` for one on another server, which is not asked.
///
/// # Errors
/// As [`open`].
pub(crate) async fn open_inside(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &CopySource,
) -> Result<Option<Inside>, Refusal> {
    if !local::is_here(&front.config, requester, &source.url) {
        return Ok(None);
    }
    let found = inside::open(front, requester, source).await;
    found.map(Some).map_err(|refused| refusal::of_operation(refused, source))
}

async fn find(
    front: &FrontEnd,
    requester: Requester<'_>,
    source: &CopySource,
) -> Result<Source, Refusal> {
    if local::is_here(&front.config, requester, &source.url) {
        let inside = inside::open(front, requester, source).await?;
        return Ok(Source::Inside(Box::new(inside)));
    }
    let by = FetchAccount { payer: requester.account.id, admitted: requester.admitted };
    let fetched = outside::open(front, by, source, outside::TOTAL_TIME_MAX).await?;
    Ok(Source::Outside(Box::new(fetched)))
}
