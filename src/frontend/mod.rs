//! The front end: stateless; parses, authenticates, routes, streams. Holds nothing a request needs
//! to survive.
//!
//! The main path, PUT of a block:
//! 1. `server.rs` accepts, within the limits of `connections/`; `opening.rs` tells TLS and HTTP
//!    versions apart (`sniff.rs`, `tls.rs`); `connection.rs` drives HTTP, and `linger.rs` ends a
//!    connection so that its client can read the end of an answer.
//! 2. `pipeline.rs` has the request admitted (`admission/`: room for it; `access/`: account,
//!    signature, parse, permission), reads a document, dispatches, renders, measures. `batch.rs`
//!    does so for each part of a batch.
//! 3. `dispatch.rs` is one exhaustive match; `ops/` has a file per family of operations. They find
//!    rows with `lookup.rs`, change them with `commit.rs`, and describe them with `facts.rs`.
//! 4. `body.rs` takes the body in pieces, from a client that must not be too slow, `ingest.rs`
//!    hashes it on the way, `encrypt.rs` encrypts it when it comes with a key.
//! 5. `write/` appends it: small bodies of all requests share appends, large ones stream into an
//!    extent of their own. **Here bytes become durable.**
//! 6. The index's client sends the row change to the partition that owns the name. **Here the name
//!    becomes visible.**
//! 7. `read.rs` streams a blob's pieces back, a step of at most 1 MiB at a time. `answers/` bounds
//!    what all of them hold, and cuts those that a client does not take, and uploads that it does
//!    not send.
//!
//! A body may come from a URL instead: `source/` finds and authorizes it, `ops/copies/` shares or
//! stores it. `client.rs` asks other servers, for those bodies and for the keys of issuers of
//! bearer tokens, which `tokens/` keeps.
//!
//! The web endpoint is not a dialect of its own: `website.rs` reads documents of `$web` as Get Blob
//! does.
//!
//! `last_access.rs` notes reads, when they are tracked, and writes them to rows later, many at a
//! time.
//!
//! `state.rs` is what all of them use: routes, stores of bytes, budgets, limits (`config.rs`). It
//! imports neither the pipeline nor operations. `copies.rs` holds the pending copies that this
//! process carries out.
//!
//! Beside it: `audit_log.rs` tells the audit log, `trace.rs` tells watchers of live requests,
//! `faults.rs` is the fault dial, `observe.rs` joins both to the path.
//!
//! Invariants: bytes before pointers (5 before 6, always); a body that ends early makes nothing
//! visible; a short response body never looks complete (the connection is cut); a write runs on
//! when its client leaves.
//!
//! Not here: which partition owns a name and what rows mean (`index`), where bytes lie
//! (`capacity`), what headers are called (`protocol`).

mod access;
pub mod accounts;
mod admission;
pub(crate) mod answers;
mod audit_log;
mod batch;
pub mod body;
pub mod client;
mod commit;
mod config;
mod connection;
pub(crate) mod connections;
mod copies;
mod cors;
mod dispatch;
mod encrypt;
mod errors;
mod facts;
pub mod faults;
pub mod filter;
mod ingest;
mod last_access;
mod layered;
mod linger;
mod lookup;
pub mod metrics;
pub mod observe;
pub(crate) mod opening;
mod ops;
mod pipeline;
mod read;
mod refusals;
pub mod secrets;
pub mod server;
mod sniff;
pub mod source;
pub mod state;
pub mod tls;
pub mod tokens;
pub mod trace;
mod website;
pub mod write;

pub use accounts::{Accounts, Unread};
pub use answers::run as watch_answers;
pub use client::Client;
pub use config::FrontEndConfig;
pub use last_access::run::run as write_last_access;
#[cfg(test)]
pub(crate) use ops::containers::create_in as create_container;
pub use ops::copies::pending::run as carry_out_copies;
pub use secrets::Secrets;
pub use server::serve;
pub use state::{FrontEnd, Parts};
pub use tls::Tls;
pub use tokens::{KeysAt, KeysUrl, KeysUrlError, TokenSource, Tokens};
