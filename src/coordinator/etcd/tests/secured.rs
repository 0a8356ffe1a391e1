//! TLS and users.

#![expect(clippy::disallowed_methods, reason = "writes the files of another program")]

use rcgen::BasicConstraints;
use rcgen::CertificateParams;
use rcgen::ExtendedKeyUsagePurpose;
use rcgen::IsCa;
use rcgen::Issuer;
use rcgen::KeyPair;

use super::*;

/// An authority: its certificate in PEM, and what signs with it.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for 127.0.0.1, and its key.
    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn tls(&self, identity: Option<(String, String)>) -> EtcdTls {
        let identity = identity.map(|(certificates, key)| EtcdIdentity {
            certificates: certificates.into_bytes(),
            key: Zeroizing::new(key.into_bytes()),
        });
        EtcdTls { authorities: Some(self.pem.clone().into_bytes()), identity }
    }
}

#[tokio::test]
async fn etcd_that_wants_certificates_of_clients_gets_them() {
    let authority = Authority::new();
    let (certificate, key_pem) = authority.sign();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let arguments = [
        format!("--cert-file={}", file("server.pem", &certificate)),
        format!("--key-file={}", file("server.key", &key_pem)),
        format!("--trusted-ca-file={}", file("ca.pem", &authority.pem)),
        "--client-cert-auth".to_owned(),
    ];
    let etcd = Etcd::start(folder, &arguments.each_ref().map(String::as_str));
    let connect = |tls, call_timeout| {
        let config = EtcdConfig { tls: Some(tls), call_timeout, ..patient(&etcd) };
        async { EtcdCoordinator::connect(config, &env()).await }
    };
    let ours = authority.tls(Some(authority.sign()));
    let store = connect(ours, Duration::from_secs(30)).await.unwrap();
    let at = commit(&store, &[], &[put("a", "1")]).await;
    let mut watch = store.watch(b"", at).await.unwrap();
    commit(&store, &[], &[put("a", "2")]).await;
    assert_eq!(next(&mut watch).await.value, Some(key("2")));

    let stranger = Authority::new();
    let refused = [
        ("no certificate", authority.tls(None)),
        ("one of another authority", authority.tls(Some(stranger.sign()))),
        ("another authority is trusted", stranger.tls(Some(authority.sign()))),
    ];
    for (what, tls) in refused {
        let error = connect(tls, Duration::from_millis(500)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{what}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_gets_a_new_token_when_etcd_has_forgotten_it() {
    const PASSWORD: &str = "correct horse";
    let mut etcd = Etcd::new();
    let config = |password: &str, prefix: &str| {
        let (name, password) = ("blockyard".to_owned(), Zeroizing::new(password.to_owned()));
        let user = Some(EtcdUser { name, password });
        EtcdConfig { user, prefix: prefix.into(), ..patient(&etcd) }
    };
    // Connected as a user before etcd asks for one.
    let (before, refused) = (config(PASSWORD, "/blockyard/"), config("wrong", "/blockyard/"));
    let elsewhere = config(PASSWORD, "/other/");
    let early = EtcdCoordinator::connect(before.clone(), &env()).await.unwrap();
    connect(&etcd).await.enable_users("blockyard", PASSWORD, "/blockyard/").await;
    commit(&early, &[], &[put("a", "1")]).await;

    let store = EtcdCoordinator::connect(before, &env()).await.unwrap();
    let start = commit(&store, &[], &[put("a", "2")]).await;
    let mut watch = store.watch(b"", start).await.unwrap();
    let error = EtcdCoordinator::connect(refused, &env()).await.unwrap_err();
    assert!(error.to_string().contains("authentication failed"), "{error}");
    let error = EtcdCoordinator::connect(elsewhere, &env()).await.unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");

    // Its tokens are in memory.
    tokio::task::block_in_place(|| {
        etcd.kill();
        etcd.restart();
    });
    assert_eq!(value(&store, "a").await, Some(key("2")));
    commit(&store, &[], &[put("a", "3")]).await;
    assert_eq!(next(&mut watch).await.value, Some(key("3")));
    assert!(!format!("{store:?}").contains(PASSWORD));
}
