//! The configuration of sources on other servers.

use std::sync::Arc;

use crate::frontend::client::Client;
use crate::frontend::source::rules::Rules;

/// How other servers are reached, and which are permitted.
#[derive(Clone, Debug)]
pub struct Outside {
    pub(super) client: Client,
    pub(super) rules: Arc<Rules>,
    /// The minimum rate in bytes per second; 0 means none.
    pub(super) least: u64,
}

impl Outside {
    /// Servers that the rules permit.
    #[must_use]
    pub fn new(rules: Rules, client: Client) -> Self {
        Self { client, rules: Arc::new(rules), least: 0 }
    }

    /// Fails copies whose source sends fewer bytes per second than this for a minute; 0 for none.
    #[must_use]
    pub fn at_least(self, bytes_per_second: u64) -> Self {
        Self { least: bytes_per_second, ..self }
    }
}
