//! Which account, container and blob a URL names.

use http::Method;
use http::Uri;

use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ContainerName;

/// How host names are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// Domains `D` for which `ACCOUNT.blob.D` names an account; lower case, no port.
    pub domains: Vec<String>,
}

impl Default for Addressing {
    fn default() -> Self {
        Self { domains: vec!["localhost".to_owned()] }
    }
}

/// What a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The account.
    pub account: AccountName,
    /// Whether the account was addressed as `ACCOUNT-secondary`.
    pub secondary: bool,
    /// The container; `$root` when a blob stands directly below the account.
    pub container: Option<ContainerName>,
    /// The blob.
    pub blob: Option<BlobName>,
    /// Where the account is served, with scheme-less authority: `HOST:PORT/` or `HOST:PORT/ACCOUNT/`.
    pub endpoint: String,
}

/// Reads method, URL and `Host` header.
///
/// # Errors
/// `InvalidUri`, `InvalidResourceName`, `OutOfRangeInput`, `RequestUrlFailedToParse`.
pub fn address(
    _method: &Method,
    _uri: &Uri,
    _host: Option<&str>,
    _addressing: &Addressing,
) -> Result<Address, Error> {
    Err(ErrorCode::NotImplemented.into())
}
