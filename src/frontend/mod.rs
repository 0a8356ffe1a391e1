//! The front end parses, authenticates, routes and streams. It is stateless: all durable state is
//! in the index and the capacity nodes.
//!
//! The path of a Put Block:
//! 1. `server.rs` accepts connections within the limits of `connections/`. `opening.rs` detects TLS
//!    and the HTTP version (`sniff.rs`, `tls.rs`). `connection.rs` drives HTTP, and `linger.rs`
//!    closes a connection so that its client can read the end of an answer.
//! 2. `pipeline.rs` answers the request. It asks `dialect/` which protocol the request speaks, and
//!    has `access/admit.rs` admit it: after admission control (`admission/`), `dialect/admit.rs`
//!    identifies the sender, parses the request and checks permission. Then the pipeline reads a
//!    document, if there is one, dispatches the operation, renders the reply and counts.
//! 3. `dispatch.rs` matches the operation, with a file for each group of operations (`dispatch/`).
//!    `ops/` carries it out, with a file for each kind of operations. It finds rows with
//!    `lookup.rs`, changes them with `commit.rs`, and shows them to clients with `facts.rs`.
//! 4. `body.rs` reads the body in pieces and enforces a minimum rate, `ingest.rs` hashes it
//!    (MD5 together with other bodies, `md5_queue.rs`), and `encrypt.rs` encrypts it if the request
//!    has a key.
//! 5. `write/` appends it: small bodies of several requests share an append, a large one is
//!    streamed into an extent of its own. **Here bytes become durable.** A very small body is not
//!    appended: it becomes part of the row.
//! 6. `commit.rs` sends the row change through the index's client to the partition that owns the
//!    name. **Here the name becomes visible.**
//!
//! The path of a Get Blob is the same up to `ops/content.rs`, which looks up the blob. `read.rs`
//! streams its pieces, in steps of at most 1 MiB. `answers/` bounds the memory of all answers, and
//! cuts off answers that a client does not take and uploads that it does not send.
//!
//! A body may come from a URL instead: `source/` finds and authorizes it, `ops/copies/` shares or
//! stores it. `client.rs` requests it from other servers, and also the keys of the issuers of
//! bearer tokens (`tokens/`).
//!
//! Only `dialect/` names a protocol: it addresses, identifies, parses and renders. Azure's batches
//! and web endpoint are there too.
//!
//! `last_access.rs` notes reads, if they are tracked, and writes them to rows later, in batches.
//!
//! `state.rs` is used by all of them: access to rows (`rows.rs`), storage, limits of the load
//! (`load.rs`), configuration (`config.rs`). It imports neither the pipeline nor operations.
//! `copies.rs` holds the state of running pending copies, `copy_failure.rs` has the form in which
//! rows keep their failures.
//!
//! `audit_log.rs` writes the audit log, `trace.rs` shows live requests to watchers, `faults.rs` is
//! the fault dial; `observe.rs` connects the last two to the pipeline.
//!
//! Invariants: bytes before pointers (5 always precedes 6). A body that ends early makes nothing
//! visible. A response body that ends early never looks complete: the connection is cut. A commit
//! continues when its client disconnects.
//!
//! Not here: the owners of names and the meaning of rows (`index`), the places of bytes
//! (`capacity`), the names of headers (`protocol`).

mod access;
pub mod accounts;
mod admission;
pub(crate) mod answers;
mod audit_log;
pub mod body;
pub mod client;
mod commit;
mod config;
mod connection;
pub(crate) mod connections;
mod copies;
mod copy_failure;
mod cors;
pub mod dialect;
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
mod load;
mod lookup;
mod md5_queue;
pub mod metrics;
pub mod observe;
pub(crate) mod opening;
mod ops;
mod pipeline;
mod read;
mod refusals;
mod rows;
pub mod secrets;
pub mod server;
mod sniff;
pub mod source;
pub mod spans;
pub mod state;
pub mod tls;
pub mod tokens;
pub mod trace;
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
pub use server::{Listeners, serve};
pub use state::{Dependencies, FrontEnd};
pub use tls::Tls;
pub use tokens::{KeysAt, KeysUrl, KeysUrlError, TokenSource, Tokens};
