//! Over real connections.

use super::*;

#[tokio::test]
async fn keys_are_had_over_tcp() {
    let rand = Arc::new(SeededRand::new(1));
    let env = Env { clock: Arc::new(OsClock::new()), rand, tasks: Tasks::new() };
    let (site, first, second) = (Arc::new(Site::default()), Signer::new("a"), Signer::new("b"));
    let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    site.serve(Box::new(listener), &env);
    let issuer = format!("http://{address}/tenant");
    site.put(CONFIGURATION, configuration(&issuer, &format!("http://{address}/keys")));
    let (client, place) = (Client::new(), KeysAt::said_by(&issuer).unwrap());
    for key in [first, second] {
        site.put("/keys", key_set(&[&key]));
        let keys = fetch::keys(&client, &env.tasks, &place, &issuer).await.unwrap();
        assert!(keys.knows(key.id));
    }
    // No server answers TLS there.
    let secure = KeysAt::Url(format!("https://{address}/keys").parse().unwrap());
    let refused = fetch::keys(&client, &env.tasks, &secure, &issuer).await;
    assert!(matches!(refused, Err(FetchError::Client(_))));
    env.tasks.shutdown().await;
}

/// A certificate for `localhost` and a listener that shows it.
#[derive(Debug)]
struct TlsListen(TcpListen, Arc<rustls::ServerConfig>);

impl TlsListen {
    async fn bind() -> (Self, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let shown = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![shown.clone()], key)
            .unwrap();
        let listener = TcpListen::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        (Self(listener, Arc::new(config)), shown)
    }
}

#[async_trait]
impl Listener for TlsListen {
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        loop {
            let (stream, peer) = self.0.accept().await?;
            // Who does not trust it breaks off.
            if let Ok(secured) = TlsAcceptor::from(Arc::clone(&self.1)).accept(stream).await {
                return Ok((Box::new(secured), peer));
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[tokio::test]
async fn keys_are_had_over_tls_of_whom_the_machine_trusts() {
    let rand = Arc::new(SeededRand::new(1));
    let env = Env { clock: Arc::new(OsClock::new()), rand, tasks: Tasks::new() };
    let (site, key) = (Arc::new(Site::default()), Signer::new("a"));
    let (listener, shown) = TlsListen::bind().await;
    let port = listener.local_addr().unwrap().port();
    site.serve(Box::new(listener), &env);
    site.put("/keys", key_set(&[&key]));
    let (_, other) = TlsListen::bind().await;
    let named = |host: &str| KeysAt::Url(format!("https://{host}:{port}/keys").parse().unwrap());
    let fetch = async |root, host| {
        let client = Client::trusting(root);
        fetch::keys(&client, &env.tasks, &named(host), ISSUER).await
    };
    assert!(fetch(shown.clone(), "localhost").await.unwrap().knows("a"));
    for (root, host) in [(other, "localhost"), (shown, "127.0.0.1")] {
        let refused = fetch(root, host).await;
        assert!(matches!(refused, Err(FetchError::Client(ClientError::Unreachable(_)))), "{host}");
    }
    assert_eq!(site.requested(), ["/keys"]);
    env.tasks.shutdown().await;
}
