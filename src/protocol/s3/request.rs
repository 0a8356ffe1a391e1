//! A request, as the parsers of operations see it.

use http::HeaderMap;

use crate::protocol::model::Address;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::wire::query::Query;
use crate::types::ContainerName;
use crate::types::PartNumber;

/// A request, as the parsers of operations see it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    /// The query; names are case-sensitive.
    pub(super) query: &'a Query,
    /// All headers.
    pub(super) headers: &'a HeaderMap,
    /// What the URL names.
    pub(super) address: &'a Address,
}

impl Request<'_> {
    /// The bucket that the URL names.
    ///
    /// # Errors
    /// `InvalidUri`: the table of operations takes only requests that name one.
    pub(super) fn bucket(&self) -> Result<ContainerName, Refusal> {
        self.address.container.clone().ok_or_else(|| Reason::InvalidUri.into())
    }

    /// The object that the URL names.
    ///
    /// # Errors
    /// As [`Self::bucket`].
    pub(super) fn object(&self) -> Result<BlobPath, Refusal> {
        let blob = self.address.blob.clone().ok_or(Reason::InvalidUri)?;
        Ok(BlobPath { container: self.bucket()?, blob, snapshot: None })
    }

    /// `partNumber`.
    ///
    /// # Errors
    /// `InvalidQueryParameterValue` for what is no number of a part.
    pub(super) fn part_number(&self) -> Result<PartNumber, Refusal> {
        let text = self.query.get("partNumber")?.unwrap_or_default();
        let number = text.parse().ok().and_then(PartNumber::new);
        number.ok_or_else(|| {
            Refusal::new(Reason::InvalidQueryParameterValue)
                .message("Part number must be an integer between 1 and 10000, inclusive")
                .detail(Detail::ParameterName, "partNumber")
                .detail(Detail::ParameterValue, text)
        })
    }
}
