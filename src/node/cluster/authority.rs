//! The authority of a cluster. Its key lies in the coordinator, sealed under the master key. So a
//! node that has the master key issues its own certificate, anew at each start.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rand::TryRng;
use rand::rngs::SysRng;
use rcgen::BasicConstraints;
use rcgen::CertificateParams;
use rcgen::CertifiedIssuer;
use rcgen::DistinguishedName;
use rcgen::DnType;
use rcgen::ExtendedKeyUsagePurpose;
use rcgen::IsCa;
use rcgen::Issuer;
use rcgen::KeyPair;
use rcgen::KeyUsagePurpose;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::auth::KeyRing;
use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::coordinator::Coordinator;
use crate::coordinator::cluster::ClusterRecord;
use crate::coordinator::trust::AuthorityRecord;
use crate::coordinator::trust::TrustError;
use crate::env::Clock;
use crate::rpc::ClusterIdentity;
use crate::rpc::NodeCertificate;
use crate::rpc::NodeTls;
use crate::rpc::TlsError;
use crate::rpc::certificate_name;
use crate::types::NodeId;
use crate::types::Secret;
use crate::types::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long the authority lasts.
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(365 * 30);
/// How long the certificate of a node lasts.
const NODE_LIFE: Duration = DAY.saturating_mul(90);
/// A node issues itself a new one when its present one is as old as this, by wall time.
const RENEWED_AFTER: Duration = DAY.saturating_mul(30);
/// How often it looks. The clock of a machine may be set.
const LOOKS_EVERY: Duration = Duration::from_secs(300);
/// Clocks of nodes may be so far apart.
const BACKDATED: Duration = DAY;

/// Why nodes get no certificates.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// Its record cannot be read or made.
    #[error("the authority of the cluster: {0}")]
    Record(#[from] TrustError),
    /// The master key does not open its key.
    #[error("the key of the cluster's authority: {0}")]
    Sealed(#[from] UnsealError),
    /// The key is not a text in PEM.
    #[error("the key of the cluster's authority is not in PEM")]
    NoPem,
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(String),
}

/// The authority of a cluster.
pub(super) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    cluster: ClusterIdentity,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

/// The subject of certificates that `name` describes.
fn subject(name: String) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

impl Authority {
    /// Opens the authority of a cluster, and makes one if it has none.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub(super) async fn open(
        coordinator: &dyn Coordinator,
        ring: &KeyRing,
        cluster: &ClusterRecord,
        now: Timestamp,
    ) -> Result<Self, AuthorityError> {
        let ClusterRecord { number, id, generation, .. } = *cluster;
        let identity = ClusterIdentity { number, id, generation };
        let record = match AuthorityRecord::read(coordinator).await? {
            Some(record) => record,
            None => {
                tracing::warn!("the cluster has no authority for certificates: it gets one");
                new_authority(ring, &identity)?.make(coordinator).await?
            }
        };
        let AuthorityRecord { sealed_key } = record;
        let key = ring.open(&SecretContext::authority(id), &Secret::Sealed(sealed_key))?;
        let key = std::str::from_utf8(&key).map_err(|_| AuthorityError::NoPem)?;
        let key = KeyPair::from_pem(key)?;
        // Those of other nodes have other dates, which nobody looks at: name and key count.
        let certificate = CertifiedIssuer::self_signed(authority(&identity, now), &key)?.pem();
        let issuer = Issuer::new(authority(&identity, now), key);
        Ok(Self { certificate, issuer, cluster: identity })
    }

    /// A new certificate of a node, in PEM, and its key.
    fn issue(
        &self,
        node: NodeId,
        now: Timestamp,
    ) -> Result<(String, Zeroizing<String>), AuthorityError> {
        let name = certificate_name(node, &self.cluster);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![name])?;
        params.distinguished_name = subject(format!("Blockyard node {node}"));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        params.not_before = now.minus(BACKDATED).unwrap_or(now).to_system_time().into();
        params.not_after = now.plus(NODE_LIFE).to_system_time().into();
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok((certificate, Zeroizing::new(key.serialize_pem())))
    }

    /// How a node proves who it is, with a new certificate.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub(super) fn tls_of(&self, node: NodeId, now: Timestamp) -> Result<NodeTls, AuthorityError> {
        let (chain, key) = self.issue(node, now)?;
        Ok(NodeTls::new(self.given(&chain, &key))?)
    }

    /// Renews the certificate of a node that was issued at this time, for ever.
    pub(super) async fn renew(
        &self,
        node: NodeId,
        (tls, mut issued): (NodeTls, Timestamp),
        clock: Arc<dyn Clock>,
    ) {
        loop {
            clock.sleep(LOOKS_EVERY).await;
            let now = clock.now();
            if !is_due(issued, now) {
                continue;
            }
            let renewed = self
                .issue(node, now)
                .and_then(|(chain, key)| Ok(tls.replace(self.given(&chain, &key))?));
            match renewed {
                Ok(()) => {
                    issued = now;
                    tracing::info!("this node has a new certificate");
                }
                Err(error) => tracing::error!(%error, "this node keeps its old certificate"),
            }
        }
    }

    fn given<'a>(&'a self, chain: &'a str, key: &'a str) -> NodeCertificate<'a> {
        let authorities = self.certificate.as_bytes();
        NodeCertificate { authorities, chain: chain.as_bytes(), key: key.as_bytes() }
    }
}

/// Whether a certificate is to be renewed: it is old, or the clock was set back.
fn is_due(issued: Timestamp, now: Timestamp) -> bool {
    now < issued || now.since(issued) >= RENEWED_AFTER
}

/// What a certificate of the authority says.
fn authority(cluster: &ClusterIdentity, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(format!("Blockyard cluster {:032x}", cluster.id));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = now.minus(BACKDATED).unwrap_or(now).to_system_time().into();
    params.not_after = now.plus(AUTHORITY_LIFE).to_system_time().into();
    params
}

fn new_authority(
    ring: &KeyRing,
    cluster: &ClusterIdentity,
) -> Result<AuthorityRecord, AuthorityError> {
    let key = KeyPair::generate()?;
    let text = Zeroizing::new(key.serialize_pem());
    let context = SecretContext::authority(cluster.id);
    let sealed = ring.seal(&context, text.as_bytes(), random()?);
    Ok(AuthorityRecord { sealed_key: sealed_bytes(sealed) })
}

/// The bytes of a secret that was just sealed.
pub(super) fn sealed_bytes(sealed: Secret) -> Bytes {
    match sealed {
        Secret::Sealed(bytes) | Secret::Plain(bytes) => bytes,
    }
}

/// Random bytes of the operating system.
///
/// # Errors
/// [`AuthorityError::Random`].
pub(super) fn random<const N: usize>() -> Result<[u8; N], AuthorityError> {
    let mut bytes = [0; N];
    let filled = SysRng.try_fill_bytes(&mut bytes);
    filled.map_err(|error| AuthorityError::Random(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::types::ClusterNumber;

    const RECORD: ClusterRecord =
        ClusterRecord { number: ClusterNumber::new(7), id: 300, generation: 1, copies: 3 };

    fn ring(key: u8) -> KeyRing {
        KeyRing::new(Uuid::from_u128(1), Zeroizing::new([key; 32]), Timestamp::ZERO)
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_with_the_master_key_issue_certificates_of_one_authority() {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock: clock.clone(), rand, tasks: Tasks::new() };
        let now = Timestamp::from_unix(Duration::from_secs(1_900_000_000));
        let coordinator = SimulatedStore::new().open(&env);
        let open = async |ring: KeyRing| Authority::open(&coordinator, &ring, &RECORD, now).await;
        let first = open(ring(1)).await.unwrap();
        let second = open(ring(1)).await.unwrap();
        let key = |authority: &Authority| authority.issuer.key().public_key_pem();
        assert_eq!(key(&first), key(&second));
        let tls = second.tls_of(NodeId::new(9), now).unwrap();
        let (chain, key) = first.issue(NodeId::new(9), now).unwrap();
        tls.replace(first.given(&chain, &key)).unwrap();
        let refused = open(ring(2)).await.unwrap_err();
        assert!(matches!(refused, AuthorityError::Sealed(UnsealError::Damaged)), "{refused}");
    }

    #[test]
    fn certificate_is_renewed_when_it_is_old_or_the_clock_was_set() {
        let issued = Timestamp::from_unix(Duration::from_secs(1_900_000_000));
        assert!(!is_due(issued, issued) && !is_due(issued, issued.plus(DAY)));
        assert!(is_due(issued, issued.plus(RENEWED_AFTER)));
        assert!(is_due(issued, issued.minus(DAY).unwrap()));
    }
}
