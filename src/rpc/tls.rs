//! Mutual TLS between the nodes of a cluster. Certificates come from the authority of the cluster
//! and name a node, so that no node speaks for another one.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use thiserror::Error as ThisError;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::server::VerifierBuilderError;
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use super::hello::ClusterIdentity;
use crate::env::net::Stream;
use crate::types::NodeId;

/// Why certificates of a cluster cannot be used.
#[derive(Debug, ThisError)]
pub enum TlsError {
    /// A text is not PEM of the expected kind.
    #[error("the {what} is not in PEM: {error}")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What is wrong with it.
        error: pem::Error,
    },
    /// The authority has no certificate that can verify others.
    #[error("the authority of the cluster cannot be used: {0}")]
    Authority(#[from] VerifierBuilderError),
    /// Certificate and key are of an unknown kind, or do not belong together.
    #[error("the certificate of the node is refused: {0}")]
    Refused(#[from] rustls::Error),
}

/// The files of a node, in PEM.
#[derive(Clone, Copy)]
pub struct NodeCertificate<'a> {
    /// The certificates of the cluster's authority: more than one while it is replaced.
    pub authorities: &'a [u8],
    /// The node's certificate, and what leads from it to the authority.
    pub chain: &'a [u8],
    /// The key of the node's certificate.
    pub key: &'a [u8],
}

impl fmt::Debug for NodeCertificate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeCertificate")
    }
}

/// How nodes prove to each other who they are.
#[derive(Clone, Debug)]
pub enum Security {
    /// By certificates of the cluster's authority.
    Tls(NodeTls),
    /// Not at all: everybody who reaches the address is believed. Only addresses of this machine
    /// are listened on and called.
    Loopback,
    /// Not at all, on a network that only nodes of the cluster reach: that of a simulation.
    TrustedNetwork,
}

impl Security {
    /// Whether an address may be listened on or called.
    ///
    /// # Errors
    /// What is wrong, for the operator.
    pub(super) fn check(&self, address: IpAddr) -> io::Result<()> {
        match self {
            Self::Loopback if !address.is_loopback() => {
                let why = format!("nodes need certificates to talk over {address}");
                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
            }
            Self::Loopback | Self::Tls(_) | Self::TrustedNetwork => Ok(()),
        }
    }
}

/// TLS of a node, in both directions. Clones share the certificates.
#[derive(Clone)]
pub struct NodeTls {
    current: Arc<RwLock<Configs>>,
}

#[derive(Clone)]
struct Configs {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeTls")
    }
}

impl NodeTls {
    /// Reads the certificates of a node.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(given: NodeCertificate<'_>) -> Result<Self, TlsError> {
        Ok(Self { current: Arc::new(RwLock::new(Configs::new(given)?)) })
    }

    /// Takes other certificates for new connections, in all clones. The present ones go on.
    ///
    /// # Errors
    /// [`TlsError`]; the certificates stay as they are.
    pub fn replace(&self, given: NodeCertificate<'_>) -> Result<(), TlsError> {
        let configs = Configs::new(given)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = configs;
        Ok(())
    }

    fn current(&self) -> Configs {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Secures a connection to a node, which must prove that it is that node.
    ///
    /// # Errors
    /// The handshake's.
    pub(super) async fn connect(
        &self,
        stream: Box<dyn Stream>,
        name: ServerName<'static>,
    ) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(self.current().connector.connect(name, stream).await?))
    }

    /// Secures a connection from a node. Returns its certificate, which the authority issued.
    ///
    /// # Errors
    /// The handshake's.
    pub(super) async fn accept(
        &self,
        stream: Box<dyn Stream>,
    ) -> io::Result<(Box<dyn Stream>, CertificateDer<'static>)> {
        let secured = self.current().acceptor.accept(stream).await?;
        let (_, session) = secured.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.ok_or(io::ErrorKind::PermissionDenied)?.clone().into_owned();
        Ok((Box::new(secured), certificate))
    }
}

impl Configs {
    fn new(given: NodeCertificate<'_>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for authority in certificates(given.authorities, "authority of the cluster")? {
            roots.add(authority)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(given.chain, "certificate of the node")?;
        let key = PrivateKeyDer::from_pem_slice(given.key)
            .map_err(|error| TlsError::Pem { what: "key of the node", error })?;
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier.build()?)
            .with_single_cert(chain.clone(), key.clone_key())?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        // A resumed session would not verify the certificates again.
        server.send_tls13_tickets = 0;
        client.resumption = Resumption::disabled();
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
        })
    }
}

fn certificates(text: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem { what, error })
}

/// The name in a node's certificate: `node-7.` and the id of its cluster, 32 hexadecimal digits,
/// then `.blockyard.internal`.
#[must_use]
pub fn certificate_name(node: NodeId, cluster: &ClusterIdentity) -> String {
    format!("node-{node}.{:032x}.blockyard.internal", cluster.id)
}

/// As [`certificate_name`].
///
/// # Errors
/// None: every such name is a name of DNS.
pub(super) fn server_name(
    node: NodeId,
    cluster: &ClusterIdentity,
) -> io::Result<ServerName<'static>> {
    let name = ServerName::try_from(certificate_name(node, cluster));
    name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// Whether a certificate is that of a node.
pub(super) fn is_of(
    certificate: &CertificateDer<'_>,
    node: NodeId,
    cluster: &ClusterIdentity,
) -> bool {
    let Ok(name) = server_name(node, cluster) else { return false };
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}
