//! Reads PFX (PKCS#12) files, RFC 7292: those of Windows, of Azurite's users, and of
//! `openssl pkcs12 -export`, with and without `-legacy`.

use p12_keystore::Certificate;
use p12_keystore::CertificateBag;
use p12_keystore::Pkcs12Archive;
use p12_keystore::PrivateKeyBag;
use p12_keystore::error::Error;

use crate::frontend::Tls;
use crate::node::config::PfxFile;

use super::error::CertificateError;
use super::error::PfxError;

/// The longest file, bytes. Each key in it costs the derivation of another.
const BYTES_MAX: usize = 256 << 10;

/// The certificate chain and the key in a file.
///
/// # Errors
/// [`CertificateError`].
pub(super) fn read(file: &PfxFile) -> Result<Tls, CertificateError> {
    let path = || file.path.clone();
    let bytes = bytes(file).map_err(|error| CertificateError::File { path: path(), error })?;
    opened(&bytes, &file.password).map_err(|error| CertificateError::Pfx { path: path(), error })
}

#[expect(clippy::disallowed_methods, reason = "not data: a file of the operator, read at a start")]
fn bytes(file: &PfxFile) -> std::io::Result<Vec<u8>> {
    std::fs::read(&file.path)
}

fn opened(bytes: &[u8], password: &str) -> Result<Tls, PfxError> {
    if bytes.len() > BYTES_MAX {
        return Err(PfxError::Damaged);
    }
    let Pkcs12Archive { keys, certs, .. } =
        Pkcs12Archive::from_pkcs12(bytes, password).map_err(|error| reason(&error))?;
    let mut last = PfxError::NoKey;
    for key in &keys {
        match served(key, &certs) {
            Ok(tls) => return Ok(tls),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn served(key: &PrivateKeyBag, certs: &[CertificateBag]) -> Result<Tls, PfxError> {
    let mut last = PfxError::NoCertificate;
    for own in candidates(key, certs) {
        match Tls::from_der(chain(own, certs), key.key.as_der()) {
            Ok(tls) => return Ok(tls),
            Err(error) => last = PfxError::Refused(error),
        }
    }
    Err(last)
}

/// The certificates that may be the key's own. The file says which, if its writer did.
fn candidates<'a>(key: &PrivateKeyBag, certs: &'a [CertificateBag]) -> Vec<&'a Certificate> {
    let id = key.local_key_id.as_ref().map(|id| id.0.as_slice());
    let is_named = |bag: &&CertificateBag| id.is_some() && bag.local_key_id.as_deref() == id;
    match certs.iter().find(is_named) {
        Some(own) => vec![&own.cert],
        None => certs.iter().map(|bag| &bag.cert).collect(),
    }
}

/// A certificate, and those of its issuers that the file has.
fn chain(own: &Certificate, certs: &[CertificateBag]) -> Vec<Vec<u8>> {
    let mut chain = vec![own];
    let mut last = own;
    while last.issuer() != last.subject()
        && let Some(next) = certs
            .iter()
            .map(|bag| &bag.cert)
            .find(|cert| cert.subject() == last.issuer() && !chain.contains(cert))
    {
        chain.push(next);
        last = next;
    }
    chain.into_iter().map(|cert| cert.as_der().to_vec()).collect()
}

/// Why a file cannot be opened. The crate's texts may show bytes of the file, so they are not used.
const fn reason(error: &Error) -> PfxError {
    match error {
        Error::MacError(_) | Error::UnpadError | Error::Pkcs5Error(_) => PfxError::Password,
        Error::UnsupportedEncryptionScheme
        | Error::UnsupportedMacAlgorithm
        | Error::InvalidParameters => PfxError::Algorithm,
        Error::IoError(_)
        | Error::DerError(_)
        | Error::InvalidVersion
        | Error::UnsupportedContentType
        | Error::UnsupportedCertificateType
        | Error::X509Error(_)
        | Error::InvalidLength
        | Error::InvalidData
        | Error::InvalidPrivateKey => PfxError::Damaged,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use p12_keystore::EncryptionAlgorithm;
    use p12_keystore::KeyStore;
    use p12_keystore::KeyStoreEntry;
    use p12_keystore::MacAlgorithm;
    use p12_keystore::PrivateKey;
    use p12_keystore::PrivateKeyChain;
    use rcgen::BasicConstraints;
    use rcgen::CertificateParams;
    use rcgen::CertifiedIssuer;
    use rcgen::IsCa;
    use rcgen::KeyPair;
    use zeroize::Zeroizing;

    use super::*;

    fn named(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    }

    /// A key, its certificate and that of the issuer, in DER.
    fn pair() -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut of_issuer = named("issuer");
        of_issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(of_issuer, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = named("own").signed_by(&key, &issuer).unwrap();
        (key.serialize_der(), vec![own.der().to_vec(), issuer.der().to_vec()])
    }

    fn certificates(certs: &[Vec<u8>]) -> Vec<Certificate> {
        certs.iter().map(|cert| Certificate::from_der(cert).unwrap()).collect()
    }

    fn file_of(key: &[u8], certs: &[Vec<u8>], how: (EncryptionAlgorithm, MacAlgorithm)) -> Vec<u8> {
        let key = PrivateKey::from_der(key).unwrap();
        let chain = PrivateKeyChain::new("own", key, certificates(certs));
        let mut store = KeyStore::new();
        store.add_entry("own", KeyStoreEntry::PrivateKeyChain(chain));
        let writer = store.writer("secret").encryption_algorithm(how.0).mac_algorithm(how.1);
        writer.encryption_iterations(100).mac_iterations(100).write().unwrap()
    }

    fn new() -> (EncryptionAlgorithm, MacAlgorithm) {
        (EncryptionAlgorithm::PbeWithHmacSha256AndAes256, MacAlgorithm::HmacSha256)
    }

    /// A file of a new key, with the password `secret`.
    pub(in crate::node::tls) fn new_file() -> Vec<u8> {
        let (key, certs) = pair();
        file_of(&key, &certs, new())
    }

    #[test]
    fn files_of_old_and_new_encryption_are_read() {
        let (key, certs) = pair();
        for how in [
            new(),
            (EncryptionAlgorithm::PbeWithShaAnd3KeyTripleDesCbc, MacAlgorithm::HmacSha1),
            (EncryptionAlgorithm::PbeWithShaAnd40BitRc4Cbc, MacAlgorithm::HmacSha1),
        ] {
            let file = file_of(&key, &certs, how);
            let archive = Pkcs12Archive::from_pkcs12(&file, "secret").unwrap();
            let own = candidates(&archive.keys[0], &archive.certs);
            assert_eq!(own.len(), 1, "the file says which");
            assert_eq!(chain(own[0], &archive.certs), certs, "{how:?}");
            opened(&file, "secret").unwrap();
        }
    }

    #[test]
    fn own_certificate_is_found_where_the_file_does_not_say_which() {
        let (key, mut certs) = pair();
        certs.reverse();
        let as_bag =
            |cert| CertificateBag { friendly_name: None, local_key_id: None, trusted: false, cert };
        let bags: Vec<_> = certificates(&certs).into_iter().map(as_bag).collect();
        let key = PrivateKey::from_der(&key).unwrap();
        let key = PrivateKeyBag { friendly_name: None, local_key_id: None, key };
        served(&key, &bags).unwrap();
        let (other, _) = pair();
        let key = PrivateKeyBag { key: PrivateKey::from_der(&other).unwrap(), ..key };
        let error = served(&key, &bags).unwrap_err().to_string();
        assert!(error.contains("the key that belongs to the certificate"), "{error}");
    }

    #[test]
    fn useless_files_say_what_to_do() {
        let (key, certs) = pair();
        let good = file_of(&key, &certs, new());
        let mut trusted = KeyStore::new();
        let [cert, _] = certificates(&certs).try_into().unwrap();
        trusted.add_entry("only", KeyStoreEntry::Certificate(cert));
        let without_key = trusted.writer("secret").write().unwrap();
        let cut = &good[..good.len() / 2];
        for (bytes, password, expected) in [
            (&good[..], "another", "give its password with --pwd"),
            (&without_key[..], "secret", "it has no private key"),
            (cut, "secret", "it is not a PFX file, or is damaged"),
            (&[][..], "secret", "it is not a PFX file"),
            (&[good.as_slice(), &[0; BYTES_MAX]].concat(), "secret", "it is not a PFX file"),
            (b"-----BEGIN CERTIFICATE-----", "secret", "PEM files with --cert and --key"),
        ] {
            let error = opened(bytes, password).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret") && !error.contains("another"), "{error}");
        }
        let file = PfxFile { path: "none.pfx".into(), password: Zeroizing::default() };
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains("none.pfx"), "{error}");
    }

    #[test]
    fn damaged_bytes_are_refused_without_a_panic() {
        let good = new_file();
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            drop(opened(&bad, "secret"));
        }
    }
}
