//! How other servers are reached, and which may be.

use std::sync::Arc;

use crate::frontend::client::Client;
use crate::frontend::source::rules::Rules;

/// How other servers are reached, and which may be.
#[derive(Clone, Debug)]
pub struct Outside {
    pub(super) client: Client,
    pub(super) rules: Arc<Rules>,
    /// Bytes a second below which a source is given up; 0 for none.
    pub(super) least: u64,
}

impl Outside {
    /// Those that the rules permit.
    #[must_use]
    pub fn new(rules: Rules, client: Client) -> Self {
        Self { client, rules: Arc::new(rules), least: 0 }
    }

    /// Gives sources up that send fewer bytes a second than this for a minute; 0 gives none up.
    #[must_use]
    pub fn at_least(self, bytes_per_second: u64) -> Self {
        Self { least: bytes_per_second, ..self }
    }
}
