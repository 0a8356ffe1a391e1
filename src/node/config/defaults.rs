//! Default addresses and paths of a node.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use crate::node::paths::absolute;

use super::admin_address::AdminAddress;
use super::error::ConfigError;

/// The default address of the blob listener, with the port of the well-known development account.
pub(super) const BLOB_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10_000);
/// The default address of the admin listener.
pub const ADMIN_LISTEN: AdminAddress =
    AdminAddress::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10_080));
/// The default file of the admin token, in the first data directory.
pub const ADMIN_TOKEN: &str = "admin-token";
/// The default data directory.
pub const DATA: &str = "./blockyard-data";

/// The default master key file of a store with this first data directory.
///
/// # Errors
/// [`ConfigError::MasterKeyPlace`] when the directory has no name.
pub fn master_key_beside(data: &Path) -> Result<PathBuf, ConfigError> {
    let data = absolute(data);
    let none = || ConfigError::MasterKeyPlace(data.clone());
    let mut name = data.file_name().ok_or_else(none)?.to_owned();
    name.push(".key");
    Ok(data.with_file_name(name))
}
