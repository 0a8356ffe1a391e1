//! Connections to the admin listener of a running node.

use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::env::net::Stream;
use crate::env::net::connect_unix;
use crate::node::config::AdminAddress;
use crate::node::config::DATA;
use crate::node::config::Switch;
use crate::node::config::reachable;
use crate::node::tls;

use super::args::AdminPlaceArgs;
use crate::cli::trust;

/// The admin listener of a running node.
#[derive(Clone)]
pub(crate) struct AdminPlace {
    address: AdminAddress,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for AdminPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdminPlace({})", self.address)
    }
}

impl AdminPlace {
    /// Reads the settings of the connection.
    ///
    /// # Errors
    /// The authority's file cannot be read, or holds no certificate.
    pub(crate) fn new(args: &AdminPlaceArgs) -> io::Result<Self> {
        let address = match &args.admin_listen {
            AdminAddress::Tcp(address) => AdminAddress::Tcp(reachable(*address)),
            AdminAddress::Unix(path) => AdminAddress::Unix(path.clone()),
        };
        let secure =
            args.admin_tls.is_some_and(Switch::is_on) && matches!(address, AdminAddress::Tcp(_));
        let tls = if secure { Some(connector(args)?) } else { None };
        Ok(Self { address, tls })
    }

    /// The address.
    #[must_use]
    pub(crate) const fn address(&self) -> &AdminAddress {
        &self.address
    }

    /// The value of the header `Host`.
    #[must_use]
    pub(crate) fn host(&self) -> String {
        match &self.address {
            AdminAddress::Tcp(address) => address.to_string(),
            AdminAddress::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Nothing listens there, or its certificate is not trusted.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match &self.address {
            AdminAddress::Unix(path) => connect_unix(path).await,
            AdminAddress::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                match &self.tls {
                    None => Ok(Box::new(stream)),
                    Some(tls) => {
                        let name = ServerName::from(address.ip());
                        Ok(Box::new(tls.connect(name, stream).await?))
                    }
                }
            }
        }
    }
}

/// Trusts the authorities of the machine, and the node's own authority or the given one.
fn connector(args: &AdminPlaceArgs) -> io::Result<TlsConnector> {
    let data = args.data.first().map_or(Path::new(DATA), PathBuf::as_path);
    let own = tls::authority_file(data);
    let authority = args.admin_ca.clone().or_else(|| own.exists().then_some(own));
    trust::connector(authority.as_deref())
}
