//! The console in the browser: its files, its login, its sessions. ADR 0045 has the decisions.
//!
//! 1. `assets.rs`: the pages and the modules that they load, all in `web/` and built into the
//!    program. `web/vendor/` has third-party code.
//! 2. `sessions.rs`: codes that work once, and the sessions that they open.
//! 3. `login.rs`: the paths that make a code, exchange it for a session and end the session.
//! 4. `turns.rs`: how many log-ins run at a time, in all and of one address.
//! 5. `access.rs`: which requests a session may make: to read what the console shows, from its own
//!    pages.
//!
//! Invariants: a session changes nothing and sees no secret. A code works once, within a minute.
//! Codes and sessions are in memory only, as digests. No page has a script or a style in its own
//! text, or loads anything from elsewhere.

pub(super) mod access;
pub(super) mod assets;
pub(super) mod login;
mod sessions;
pub(super) mod turns;

use std::sync::Arc;
use std::time::Duration;

use crate::env::Clock;

pub(super) use sessions::Sessions;

/// The state that the paths of the console use; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Console {
    pub(super) sessions: Sessions,
    pub(super) clock: Arc<dyn Clock>,
    /// Whether the listener serves https.
    pub(super) secure: bool,
}

impl Console {
    fn now(&self) -> Duration {
        self.clock.monotonic()
    }
}
