//! Calls between the nodes of a cluster, over TCP. `api-spec/rpc.md` has the bytes, ADR 0053 the
//! reasons.
//!
//! - `packet.rs`: what a connection carries; `wire.rs`: reads and writes it; `message.rs`: the part
//!   of a packet that postcard encodes;
//! - `hello.rs`: how two nodes introduce themselves; `tls.rs`: how they prove it;
//! - `remote_node.rs`: another node, as its callers see it; `caller.rs`: one connection to it;
//! - `server.rs`: accepts the connections of other nodes; `serving.rs`: one of them; `service.rs`:
//!   what a node serves.
//!
//! Invariants: a call is carried out at most once · a call that ends as
//! [`CallError::NotDone`] was not carried out and never will be · a caller never has more calls or
//! bytes under way than the server granted, and a server takes memory for no others ·
//! when a server lets a new connection of a caller in, no packet of the earlier one is read any
//! more; a later life of the caller ends all connections of its earlier ones.
//!
//! A change that an earlier connection has begun goes on. What must not happen after that carries
//! an epoch. Payloads have no checksum here: whoever stores or reads them verifies their own. A
//! caller that has to open a new connection begins with full credit, whatever its earlier calls
//! still hold.

mod caller;
mod error;
mod hello;
mod message;
mod packet;
mod remote_node;
mod server;
mod service;
mod serving;
#[cfg(test)]
mod tests;
mod tls;
mod untrusted;
mod wire;

pub use error::CallError;
pub use error::Reason;
pub use error::Refusal;
pub use hello::ClusterIdentity;
pub use hello::Credit;
pub use hello::Hello;
pub use hello::Lane;
pub use hello::NodeIdentity;
pub use hello::Unwelcome;
pub use hello::Welcome;
pub use message::MESSAGE_VERSION;
pub use message::NoSuchMessage;
pub use message::decode;
pub use message::encode;
pub use remote_node::Bounds;
pub use remote_node::CallerConfig;
pub use remote_node::RemoteNode;
pub use server::Server;
pub use server::ServerConfig;
pub use service::Incoming;
pub use service::Method;
pub use service::Reply;
pub use service::Service;
pub use service::messages_in;
pub use serving::Services;
pub use tls::NodeCertificate;
pub use tls::NodeTls;
pub use tls::Security;
pub use tls::TlsError;
pub use tls::certificate_name;
pub use untrusted::decode_untrusted;
