//! Who a node may say it is.

use rcgen::BasicConstraints;
use rcgen::CertificateParams;
use rcgen::CertifiedIssuer;
use rcgen::IsCa;
use rcgen::KeyPair;

use super::*;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn files(&self, node: u64, cluster: &ClusterIdentity) -> Files {
        let name = certificate_name(NodeId::new(node), cluster);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name]).unwrap();
        let chain = params.signed_by(&key, &self.0).unwrap().pem();
        Files { authority: self.0.pem(), chain, key: key.serialize_pem() }
    }

    /// What a node of a cluster gets from this authority.
    fn tls_of(&self, node: u64, cluster: &ClusterIdentity) -> Security {
        Security::Tls(NodeTls::new(self.files(node, cluster).given()).unwrap())
    }

    fn tls(&self, node: u64) -> Security {
        self.tls_of(node, &cluster())
    }
}

struct Files {
    authority: String,
    chain: String,
    key: String,
}

impl Files {
    fn given(&self) -> NodeCertificate<'_> {
        NodeCertificate {
            authorities: self.authority.as_bytes(),
            chain: self.chain.as_bytes(),
            key: self.key.as_bytes(),
        }
    }
}

async fn asks(world: &World, security: Security) -> Result<String, CallError> {
    let us = CallerConfig { security, ..world.us.clone() };
    echo(&peer(&us), "secret").await
}

/// Why the node was not let in.
async fn refused(world: &World, security: Security) -> String {
    let error = asks(world, security).await.unwrap_err();
    let CallError::NotDone(Reason::Unreachable(why)) = error else { panic!("{error:?}") };
    why
}

#[tokio::test(start_paused = true)]
async fn nodes_prove_who_they_are() {
    let world = World::new(40);
    let authority = Authority::new();
    let own = authority.tls(2);
    world.serve_with(|config| config.security = own);
    assert_eq!(asks(&world, authority.tls(1)).await.unwrap(), "secret");
    // With the certificate of another node: it is cut off after its hello.
    let why = refused(&world, authority.tls(3)).await;
    assert!(why.contains("closed"), "{why}");
    let why = refused(&world, Authority::new().tls(1)).await;
    assert!(why.contains("invalid peer certificate"), "{why}");
    refused(&world, Security::TrustedNetwork).await;
    // Large payloads, both ways.
    let peer = peer(&CallerConfig { security: authority.tls(1), ..world.us.clone() });
    let bounds = Bounds { answer_bytes_max: 4 << 20, ..within(5000) };
    let text = "large".to_owned();
    let call = peer.call::<Echo>(&text, vec![piece(3 << 20)], bounds);
    assert_eq!(call.await.unwrap().1, piece(3 << 20));
    assert_eq!(world.book.callers.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn server_with_the_certificate_of_another_node_or_cluster_is_left() {
    let world = World::new(41);
    let authority = Authority::new();
    let elsewhere = ClusterIdentity { id: 1, ..cluster() };
    for (node, of) in [(3, cluster()), (2, elsewhere)] {
        let other = authority.tls_of(node, &of);
        let serving = world.serve_with(|config| config.security = other);
        let why = refused(&world, authority.tls(1)).await;
        assert!(why.contains("not valid for name"), "{why}");
        serving.shutdown().await;
    }
    let own = authority.tls(2);
    world.serve_with(|config| config.security = own);
    assert_eq!(asks(&world, authority.tls(1)).await.unwrap(), "secret");
}

#[tokio::test(start_paused = true)]
async fn certificates_are_replaced_for_new_connections() {
    let world = World::new(42);
    let (old, new) = (Authority::new(), Authority::new());
    let Security::Tls(own) = old.tls(2) else { panic!() };
    let shared = own.clone();
    world.serve_with(|config| config.security = Security::Tls(shared));
    let first = peer(&CallerConfig { security: old.tls(1), ..world.us.clone() });
    assert_eq!(echo(&first, "first").await.unwrap(), "first");
    own.replace(new.files(2, &cluster()).given()).unwrap();
    // The connection that is there goes on.
    assert_eq!(echo(&first, "second").await.unwrap(), "second");
    refused(&world, old.tls(1)).await;
    assert_eq!(asks(&world, new.tls(1)).await.unwrap(), "secret");
}

#[tokio::test(start_paused = true)]
async fn without_certificates_only_this_machine_is_called_and_listened_to() {
    let world = World::new(43);
    world.serve();
    let why = refused(&world, Security::Loopback).await;
    assert!(why.contains("nodes need certificates"), "{why}");
    let config = ServerConfig::new(identity(2, 1), cluster(), Services::new());
    let listener = world.net.host(address(2)).listen(PORT + 1).unwrap();
    let error = Server::new(&world.env, config).run(Box::new(listener)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}
