//! Certificates for the blob listener: from files, or from a certificate authority of the node's
//! own.
//!
//! With `--tls auto` the first start makes an authority under the first data directory
//! (`tls/ca.pem`, `tls/ca-key.pem`) that later starts use again, so that it needs to be trusted
//! once. The server's certificate is signed at each start, and its key never leaves memory. So it
//! always names the served hosts, and does not expire unnoticed.

use std::net::IpAddr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use rcgen::BasicConstraints;
use rcgen::CertificateParams;
use rcgen::CertifiedIssuer;
use rcgen::DnType;
use rcgen::ExtendedKeyUsagePurpose;
use rcgen::IsCa;
use rcgen::Issuer;
use rcgen::KeyPair;
use rcgen::KeyUsagePurpose;
use rcgen::PublicKeyData;
use sha2::Digest;
use sha2::Sha256;

use crate::env::make_folder;
use crate::frontend::Tls;
use crate::node::config::AccountConfig;
use crate::node::config::AdminAddress;
use crate::node::config::Config;
use crate::node::config::TlsSource;
use crate::node::files;
use crate::types::Timestamp;

use super::error::CertificateError;
use super::files::CertificateFiles;
use super::files::Loaded;

/// Folder below the first data directory.
const FOLDER: &str = "tls";
/// The authority's certificate: what clients trust.
const CA_FILE: &str = "ca.pem";
/// The authority's key.
const CA_KEY_FILE: &str = "ca-key.pem";
/// Certificates are valid from a day ago on, because clocks differ.
const BACKDATED: Duration = Duration::from_secs(86_400);
/// How long the authority is valid.
const CA_LIFE: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How long a server certificate is valid. Apple's clients accept no longer ones.
const SERVER_LIFE: Duration = Duration::from_secs(820 * 86_400);

/// A certificate, and the file that a client needs to trust it.
#[derive(Debug)]
pub struct Certificate {
    /// For handshakes.
    pub tls: Tls,
    /// The file of the node's own authority, if that signed the certificate.
    pub authority: Option<PathBuf>,
    /// The files that it was read from, which may be replaced.
    pub files: Option<CertificateFiles>,
}

/// The path of the node's own authority, if it has one.
#[must_use]
pub fn authority_file(data: &Path) -> PathBuf {
    data.join(FOLDER).join(CA_FILE)
}

/// Loads or makes the configured certificate.
///
/// # Errors
/// [`CertificateError`].
pub fn certificate(
    config: &Config,
    now: Timestamp,
) -> Result<Option<Certificate>, CertificateError> {
    match &config.tls {
        TlsSource::Off => Ok(None),
        TlsSource::Files { cert, key } => {
            let Loaded { tls, files } = CertificateFiles::load(cert, key)?;
            Ok(Some(Certificate { tls, authority: None, files: Some(files) }))
        }
        TlsSource::Pfx(file) => {
            let Loaded { tls, files } = CertificateFiles::load_pfx(file)?;
            Ok(Some(Certificate { tls, authority: None, files: Some(files) }))
        }
        TlsSource::Auto => {
            let folder = config.data.first().expect("checked: a data directory").join(FOLDER);
            own(&folder, names(config), now).map(Some)
        }
    }
}

/// The names that clients on this machine and in the configured domains use for the server.
fn names(config: &Config) -> Vec<String> {
    let mut names: Vec<String> =
        ["localhost", "*.localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    for domain in &config.blob_domains {
        names.extend([domain.clone(), format!("*.blob.{domain}")]);
        names.extend([format!("s3.{domain}"), format!("*.s3.{domain}")]);
        for account in config.accounts.iter().map(AccountConfig::name) {
            names.extend([format!("s3.{account}.{domain}"), format!("*.s3.{account}.{domain}")]);
        }
    }
    let mut ips = vec![config.blob_listen.ip()];
    ips.extend(config.s3.listen.map(|address| address.ip()));
    if let AdminAddress::Tcp(address) = config.admin_listen {
        ips.push(address.ip());
    }
    names.extend(ips.iter().filter(|ip| !ip.is_unspecified()).map(IpAddr::to_string));
    names.sort_unstable();
    names.dedup();
    names
}

fn own(folder: &Path, names: Vec<String>, now: Timestamp) -> Result<Certificate, CertificateError> {
    let failed = |error| CertificateError::Make { path: folder.to_owned(), error };
    let file = |path: &Path| {
        let path = path.to_owned();
        move |error| CertificateError::File { path, error }
    };
    make_folder(folder).map_err(file(folder))?;
    let (ca_path, key_path) = (folder.join(CA_FILE), folder.join(CA_KEY_FILE));
    let ca = files::read(&ca_path).map_err(file(&ca_path))?;
    let key = files::read(&key_path).map_err(file(&key_path))?;
    let (ca, issuer) = match (ca, key) {
        (Some(ca), Some(key)) => {
            let key = KeyPair::from_pem(&key).map_err(failed)?;
            (ca, Issuer::new(authority(&key, now), key))
        }
        (None, None) => {
            let key = KeyPair::generate().map_err(failed)?;
            let made = CertifiedIssuer::self_signed(authority(&key, now), &key).map_err(failed)?;
            // The key first: if only the key is there, the next start reports it instead of making
            // a new authority that no client trusts.
            files::write(&key_path, &key.serialize_pem()).map_err(file(&key_path))?;
            let ca = made.pem();
            files::write(&ca_path, &ca).map_err(file(&ca_path))?;
            (ca, Issuer::new(authority(&key, now), key))
        }
        (Some(_), None) => {
            return Err(CertificateError::HalfAuthority { missing: key_path, present: ca_path });
        }
        (None, Some(_)) => {
            return Err(CertificateError::HalfAuthority { missing: ca_path, present: key_path });
        }
    };
    let PemPair { cert, key } = server(names, now, &issuer).map_err(failed)?;
    let tls = Tls::from_pem(&(cert + &ca), &key)
        .map_err(|error| CertificateError::Tls { path: ca_path.clone(), error })?;
    let authority = std::path::absolute(&ca_path).unwrap_or(ca_path);
    Ok(Certificate { tls, authority: Some(authority), files: None })
}

/// The authority's parameters. They depend on its key only, except for the dates, so its
/// certificate is not read to sign.
fn authority(key: &KeyPair, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    let digest = Sha256::digest(key.subject_public_key_info());
    let id: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = rcgen::DistinguishedName::new();
    // Clients distinguish authorities by name, and may trust those of several nodes.
    params.distinguished_name.push(DnType::CommonName, format!("Blockyard local authority {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = now.minus(BACKDATED).unwrap_or(now).to_system_time().into();
    params.not_after = now.plus(CA_LIFE).to_system_time().into();
    params
}

/// A certificate and its key in PEM.
struct PemPair {
    cert: String,
    key: String,
}

/// A new server certificate.
fn server(
    names: Vec<String>,
    now: Timestamp,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<PemPair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let (ips, hosts): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.parse::<IpAddr>().is_ok());
    // `new` recognizes addresses.
    let mut params = CertificateParams::new([hosts, ips].concat())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Blockyard");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = now.minus(BACKDATED).unwrap_or(now).to_system_time().into();
    params.not_after = now.plus(SERVER_LIFE).to_system_time().into();
    Ok(PemPair { cert: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use super::*;

    fn config(data: &Path) -> Config {
        let settings = crate::node::config::Settings {
            data: Some(vec![data.to_owned()]),
            blob_domain: Some(vec!["store.example".to_owned()]),
            tls: Some(crate::node::config::TlsMode::Auto),
            ..Default::default()
        };
        Config::from_settings(settings).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_unix(Duration::from_secs(1_790_000_000))
    }

    #[test]
    fn authority_is_made_once_and_kept() {
        let data = tempfile::tempdir().unwrap();
        let config = config(data.path());
        let first = certificate(&config, now()).unwrap().unwrap();
        let ca = std::fs::read_to_string(first.authority.as_ref().unwrap()).unwrap();
        let second = certificate(&config, now().plus(Duration::from_secs(99))).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(second.authority.unwrap()).unwrap(), ca);
        assert!(ca.contains("BEGIN CERTIFICATE") && !ca.contains("PRIVATE"));
    }

    #[test]
    fn names_cover_this_machine_and_the_domains() {
        let names = names(&config(Path::new("d")));
        let hosts = ["localhost", "127.0.0.1", "::1", "store.example", "*.blob.store.example"];
        for expected in hosts {
            assert!(names.iter().any(|name| name == expected), "{expected} in {names:?}");
        }
    }

    #[test]
    fn half_an_authority_is_named() {
        for lost in [CA_FILE, CA_KEY_FILE] {
            let data = tempfile::tempdir().unwrap();
            let config = config(data.path());
            certificate(&config, now()).unwrap();
            std::fs::remove_file(data.path().join(FOLDER).join(lost)).unwrap();
            let error = certificate(&config, now()).unwrap_err().to_string();
            assert!(error.contains(&format!("{lost} is missing")), "{error}");
        }
    }

    #[test]
    fn useless_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let source = TlsSource::Files { cert: cert.clone(), key: key.clone() };
        let config = Config { tls: source, ..config(folder.path()) };
        let error = certificate(&config, now()).unwrap_err().to_string();
        assert!(error.contains("c.pem"), "{error}");
        std::fs::write(&cert, "nothing").unwrap();
        std::fs::write(&key, "nothing").unwrap();
        let error = certificate(&config, now()).unwrap_err().to_string();
        assert!(error.contains("BEGIN CERTIFICATE"), "{error}");
    }
}
