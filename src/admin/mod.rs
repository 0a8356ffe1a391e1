//! The admin listener: health and metrics, for machines. Read-only and without authentication: listen on an address
//! that only those can reach who may know.
//!
//! | path | answers |
//! |---|---|
//! | `/healthz` | 200 as long as the process runs |
//! | `/readyz` | 200 while requests are served, 503 with the reason while starting and draining |
//! | `/metrics` | every role's metrics in the text form Prometheus scrapes |
//!
//! 1. `readiness.rs`: what `node` tells;
//! 2. `server.rs`: the routes and the connections.
//!
//! Invariants: no path changes anything; no answer holds a key or a name of a blob.

mod readiness;
mod server;

pub use readiness::{Phase, Readiness};
pub use server::{AdminServer, AdminState};
