//! The settings of S3.

use std::net::SocketAddr;

use crate::types::AccountName;

use super::error::ConfigError;
use super::listen_address::ListenAddress;

/// The location of buckets that S3 gives those without one.
const REGION: &str = "us-east-1";
/// The longest region, bytes.
const REGION_BYTES_MAX: usize = 64;

/// The settings of S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// The address of the listener that serves S3 alone. Default none; port 0 picks a free port.
    pub listen: Option<SocketAddr>,
    /// The account whose buckets an unsigned request means. Default: the first of the
    /// configuration.
    pub account: Option<AccountName>,
    /// The location of buckets that are made without one: 1 to 64 lower-case letters, digits and
    /// hyphens. Default us-east-1.
    pub region: String,
}

impl S3Config {
    /// Fills in defaults and checks.
    ///
    /// # Errors
    /// [`ConfigError`] for a name or a region that breaks the rules.
    pub(super) fn new(
        listen: Option<ListenAddress>,
        account: Option<String>,
        region: Option<String>,
    ) -> Result<Self, ConfigError> {
        let listen = listen.map(|ListenAddress(address)| address);
        let account = match account {
            Some(name) => Some(AccountName::new(&name).map_err(|_| ConfigError::S3Account(name))?),
            None => None,
        };
        let region = region.unwrap_or_else(|| REGION.to_owned());
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !(1..=REGION_BYTES_MAX).contains(&region.len()) || !region.bytes().all(is_plain) {
            return Err(ConfigError::S3Region(region));
        }
        Ok(Self { listen, account, region })
    }
}
