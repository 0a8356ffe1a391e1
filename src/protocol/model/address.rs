//! The account, container and blob that the URL of a request names.

use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ContainerName;

/// The account, container and blob that the URL of a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The account.
    pub account: AccountName,
    /// Whether the read-only copy of the account was addressed.
    pub secondary: bool,
    /// The container; the root container when a blob stands directly below the account.
    pub container: Option<ContainerName>,
    /// The blob.
    pub blob: Option<BlobName>,
    /// The blob's name as it was sent, where the dialect reads the name otherwise.
    pub blob_as_sent: Option<BlobName>,
    /// Where the account is served, without scheme: `HOST:PORT/` or `HOST:PORT/ACCOUNT/`.
    pub endpoint: String,
}
