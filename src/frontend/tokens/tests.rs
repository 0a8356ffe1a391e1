//! An issuer that rotates its keys, dies, dawdles, and answers what it should not, under simulated
//! time; once over TCP.

mod answers;
mod outages;
mod panics;
mod sockets;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http::Response;
use http::StatusCode;
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::rand::SystemRandom;
use ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
use ring::signature::EcdsaKeyPair;
use ring::signature::KeyPair;
use serde_json::Value;
use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::auth;
use crate::auth::Issuer;
use crate::auth::KeySet;
use crate::auth::RoleMap;
use crate::auth::TrustedIssuer;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::env::net::Dial;
use crate::env::net::Listener;
use crate::env::net::PipeConnect;
use crate::env::net::PipeListen;
use crate::env::net::Stream;
use crate::env::net::TcpListen;
use crate::frontend::client::Client;
use crate::frontend::client::ClientError;
use crate::frontend::tokens::KeysAt;
use crate::frontend::tokens::TokenSource;
use crate::frontend::tokens::Tokens;
use crate::frontend::tokens::URL_AGE_MIN;
use crate::frontend::tokens::fetch;
use crate::frontend::tokens::fetch::FetchError;
use crate::frontend::tokens::keyring::FETCH_TIME_MAX;
use crate::telemetry;
use crate::telemetry::Exposition;
use crate::telemetry::Registry;
use crate::types::Role;

const ISSUER: &str = "http://127.0.0.1:7/tenant";
const CONFIGURATION: &str = "/tenant/.well-known/openid-configuration";
const KEYS: &str = "http://127.0.0.1:7/keys";
const HOUR: Duration = Duration::from_secs(60 * 60);

/// A key of an issuer.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self { id, pair: EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap() }
    }

    fn token(&self, env: &Env) -> String {
        let now = env.clock.now().since_unix().as_secs();
        let head = json!({"alg": "ES256", "kid": self.id});
        let claims = json!({"iss": ISSUER, "aud": "https://storage.azure.com", "exp": now + 36_000,
            "sub": "somebody", "roles": ["Reader"]});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&head), part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn key_set(signers: &[&Signer]) -> Answer {
    let key = |signer: &&Signer| {
        let (_, point) = signer.pair.public_key().as_ref().split_first().unwrap();
        let (x, y) = point.split_at(32);
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": signer.id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
    };
    let keys: Vec<Value> = signers.iter().map(key).collect();
    says(&json!({ "keys": keys }).to_string())
}

fn configuration(issuer: &str, keys: &str) -> Answer {
    says(&json!({"issuer": issuer, "jwks_uri": keys}).to_string())
}

#[derive(Clone, Debug)]
enum Answer {
    Says(StatusCode, Bytes),
    /// To the key set.
    Leads,
    After(Duration, Bytes),
    Never,
    /// Without end and without a length.
    Endless,
}

fn says(text: &str) -> Answer {
    Answer::Says(StatusCode::OK, Bytes::copy_from_slice(text.as_bytes()))
}

/// The answer of each path, and the paths that were requested.
#[derive(Debug, Default)]
struct Site {
    answers: Mutex<BTreeMap<&'static str, Answer>>,
    requested: Mutex<Vec<String>>,
    /// Refuses connections.
    dead: AtomicBool,
}

impl Site {
    fn put(&self, path: &'static str, answer: Answer) {
        self.answers.lock().unwrap().insert(path, answer);
    }

    /// Paths requested since the last call.
    fn requested(&self) -> Vec<String> {
        std::mem::take(&mut self.requested.lock().unwrap())
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
        let path = request.uri().path().to_owned();
        let answer = self.answers.lock().unwrap().get(path.as_str()).cloned();
        self.requested.lock().unwrap().push(path);
        let full = |bytes: Bytes| Full::new(bytes).boxed_unsync();
        let missing = Answer::Says(StatusCode::NOT_FOUND, Bytes::new());
        let (status, body) = match answer.unwrap_or(missing) {
            Answer::Says(status, bytes) => (status, full(bytes)),
            Answer::Leads => (StatusCode::FOUND, full(Bytes::new())),
            Answer::After(time, bytes) => {
                tokio::time::sleep(time).await;
                (StatusCode::OK, full(bytes))
            }
            Answer::Never => std::future::pending().await,
            Answer::Endless => {
                let frame = || Ok(Frame::data(Bytes::from_static(&[b' '; 16 << 10])));
                (StatusCode::OK, StreamBody::new(stream::repeat_with(frame)).boxed_unsync())
            }
        };
        let response = Response::builder().status(status).header("location", "/keys");
        Ok(response.body(body).unwrap())
    }

    fn serve(self: &Arc<Self>, listener: Box<dyn Listener>, env: &Env) {
        let (site, tasks, stop) = (Arc::clone(self), env.tasks.clone(), env.tasks.stopping());
        drop(env.tasks.spawn(
            "issuer",
            stop.run_until_cancelled_owned(async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let site = Arc::clone(&site);
                    let service = service_fn(move |request| Arc::clone(&site).answer(request));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    drop(tasks.spawn(
                        "connection",
                        tasks.stopping().run_until_cancelled_owned(connection),
                    ));
                }
            }),
        ));
    }
}

/// Leads to a site, whatever the name; as if that had this address.
#[derive(Debug)]
struct PipeDial {
    site: Arc<Site>,
    connect: PipeConnect,
    address: SocketAddr,
}

#[async_trait]
impl Dial for PipeDial {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![self.address])
    }

    async fn connect(&self, _address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        if self.site.dead.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(Box::new(self.connect.connect().await?))
    }
}

struct World {
    env: Env,
    site: Arc<Site>,
    client: Client,
    registry: Registry,
}

impl World {
    fn at(address: &str) -> Self {
        let rand = Arc::new(SeededRand::new(1));
        let env = Env { clock: Arc::new(SimClock::new()), rand, tasks: Tasks::new() };
        let site = Arc::new(Site::default());
        let (listener, connect) = PipeListen::new();
        site.serve(Box::new(listener), &env);
        let address = address.parse().unwrap();
        let client = Client::over(Arc::new(PipeDial { site: Arc::clone(&site), connect, address }));
        Self { env, site, client, registry: Registry::with_prefix("blockyard") }
    }

    fn new() -> Self {
        Self::at("127.0.0.1:7")
    }

    fn start(&mut self, keys_at: KeysAt) -> Tokens {
        let issuer = Issuer {
            trusted: TrustedIssuer { name: ISSUER.to_owned(), accounts: Vec::new() },
            audiences: vec!["https://storage.azure.com".to_owned()],
            keys: KeySet::default(),
            roles: RoleMap::default(),
            groups: "groups".to_owned(),
        };
        let sources = vec![TokenSource { issuer, keys_at }];
        Tokens::start(sources, &self.client, &self.env, &mut self.registry)
    }

    async fn accepts(&self, tokens: &Tokens, signer: &Signer) -> bool {
        match tokens.verify(&signer.token(&self.env), &self.env).await {
            Ok(principal) => {
                assert_eq!(principal.claimed, Some(Role::Reader));
                true
            }
            Err(auth::Error::Token { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    async fn sleep(&self, time: Duration) {
        self.env.clock.sleep(time).await;
    }

    async fn fetch(&self, place: &KeysAt) -> Result<KeySet, FetchError> {
        fetch::keys(&self.client, &self.env.tasks, place, ISSUER).await
    }

    /// The value of a metric of the issuer.
    fn metric(&self, name: &str) -> Option<f64> {
        let text = telemetry::render(&self.registry, Exposition::OpenMetrics).unwrap();
        let start = format!("blockyard_{name}{{issuer=\"{ISSUER}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
    }
}

fn by_url() -> KeysAt {
    KeysAt::Url(KEYS.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn keys_are_had_by_url_once() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    world.site.put("/keys", key_set(&[&key]));
    let tokens = world.start(by_url());
    for _ in 0..3 {
        assert!(world.accepts(&tokens, &key).await);
    }
    assert!(!world.accepts(&tokens, &Signer::new("a")).await, "a forgery");
    assert_eq!(world.site.requested(), ["/keys"]);
    assert_eq!(world.metric("issuer_key_fetches_total"), Some(1.0));
    assert_eq!(world.metric("issuer_key_fetch_failures_total"), Some(0.0));
    world.sleep(Duration::from_secs(90)).await;
    assert_eq!(world.metric("issuer_keys_age_seconds"), Some(90.0));
}

#[tokio::test(start_paused = true)]
async fn keys_are_found_where_the_issuer_says() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    world.site.put(CONFIGURATION, configuration(ISSUER, KEYS));
    world.site.put("/keys", key_set(&[&key]));
    let tokens = world.start(KeysAt::said_by(ISSUER).unwrap());
    assert!(world.accepts(&tokens, &key).await);
    assert_eq!(world.site.requested(), [CONFIGURATION, "/keys"]);
}

#[tokio::test(start_paused = true)]
async fn new_key_is_looked_for_and_old_one_ends() {
    let (mut world, old, new) = (World::new(), Signer::new("a"), Signer::new("b"));
    world.site.put("/keys", key_set(&[&old]));
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &old).await);
    world.site.put("/keys", key_set(&[&new]));
    assert!(!world.accepts(&tokens, &new).await, "asked only just now");
    assert!(world.accepts(&tokens, &old).await);
    assert_eq!(world.site.requested().len(), 1);
    world.sleep(URL_AGE_MIN).await;
    assert!(world.accepts(&tokens, &old).await, "no token made it ask");
    assert!(world.accepts(&tokens, &new).await);
    assert!(!world.accepts(&tokens, &old).await);
    assert_eq!(world.site.requested().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_tokens_make_it_hammer_the_issuer() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    let answer = key_set(&[&key]);
    world.site.put("/keys", answer.clone());
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &key).await);
    world.site.requested();
    let strangers: Vec<Signer> = ["x", "y", "z"].map(Signer::new).into_iter().collect();
    for failing in [false, true] {
        world.site.put("/keys", if failing { says("?") } else { answer.clone() });
        world.sleep(URL_AGE_MIN).await;
        for _ in 0..20 {
            let asking = strangers.iter().map(|stranger| world.accepts(&tokens, stranger));
            assert_eq!(futures_util::future::join_all(asking).await, [false; 3]);
            world.sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(world.site.requested().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_asked_for_every_hour_without_any_token() {
    let (mut world, old, new) = (World::new(), Signer::new("a"), Signer::new("b"));
    world.site.put("/keys", key_set(&[&old]));
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &old).await);
    world.site.put("/keys", key_set(&[&new]));
    world.sleep(HOUR + Duration::from_secs(1)).await;
    assert!(!world.accepts(&tokens, &old).await, "it left the set");
    assert!(world.accepts(&tokens, &new).await);
    assert_eq!(world.site.requested().len(), 2);
}
