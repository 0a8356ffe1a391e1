//! Addresses of admin listeners, as users write them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use super::listen_address::ListenAddress;

/// The prefix of a socket's path.
const UNIX: &str = "unix:";

/// An address of an admin listener.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum AdminAddress {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Not an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an address: write 127.0.0.1:10080, localhost:10080, [::1]:10080, :10080 for all IPv4 \
     addresses of this machine, or unix:/path/of/a/socket"
)]
pub struct AdminAddressError(String);

impl AdminAddress {
    /// Whether only programs of this machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for AdminAddress {
    type Err = AdminAddressError;

    fn from_str(text: &str) -> Result<Self, AdminAddressError> {
        match text.strip_prefix(UNIX) {
            Some("") => Err(AdminAddressError(text.to_owned())),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => {
                let ListenAddress(address) =
                    text.parse().map_err(|_| AdminAddressError(text.to_owned()))?;
                Ok(Self::Tcp(address))
            }
        }
    }
}

impl TryFrom<String> for AdminAddress {
    type Error = AdminAddressError;

    fn try_from(text: String) -> Result<Self, AdminAddressError> {
        text.parse()
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        for (text, local) in [
            ("127.0.0.1:10080", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("192.0.2.1:1", false),
            ("unix:/run/blockyard.sock", true),
            ("unix:here", true),
        ] {
            let address: AdminAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_local()), (text, local));
        }
        for wrong in ["", "unix:", "127.0.0.1", "/run/blockyard.sock", "host.example:1"] {
            let text = wrong.parse::<AdminAddress>().unwrap_err().to_string();
            assert!(text.contains("unix:/path"), "{text}");
        }
    }
}
