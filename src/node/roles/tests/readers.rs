//! Clients that take their answers slowly or not at all, on a node in simulated time.

use tokio::io::DuplexStream;

use super::*;
use crate::capacity::CatalogPlace;
use crate::capacity::SimulatedCatalog;
use crate::coordinator::SimulatedStore;
use crate::env::SeededRand;
use crate::env::SimDisk;
use crate::env::clock::SimClock;
use crate::node::testing::SimulatedPlace;
use crate::telemetry;
use crate::telemetry::Exposition;

const SECOND: Duration = Duration::from_secs(1);
const KIB: usize = 1 << 10;
/// Of the blob that is read: more than a connection buffers.
const BYTES: usize = 2 << 20;

/// A node with one blob of [`BYTES`], whose time is simulated.
struct Simulated {
    env: Env,
    storage: Storage,
    roles: Roles,
    registry: Registry,
    blob: PipeConnect,
    signature: String,
}

impl Simulated {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let data = [PathBuf::from("/disk")];
        let mut config = testing::config(&data[0]);
        change(&mut config);
        let start = Start {
            given: Given { data: &data, add: &[], without: &[] },
            disks: vec![SimDisk::new(1, 64 << 20).disk()],
            env: env.clone(),
            config: CapacityConfig {
                catalog: CatalogPlace::Simulated(vec![SimulatedCatalog::default()]),
                ..CapacityConfig::small()
            },
            metrics: CapacityMetrics::default(),
        };
        let place = SimulatedPlace(SimulatedStore::new(), env.clone());
        let storage = start.open(&place).await.unwrap();
        let secrets = Secrets::known(&env.rand);
        let (listener, blob) = PipeListen::new();
        let address = "127.0.0.1:10000".parse().unwrap();
        let bound = Bound { listener: Box::new(listener), address };
        let mut registry = Registry::default();
        let with = (&secrets, &mut registry, &AuditLog::default());
        let roles = Roles::start(&config, &env, &storage, (bound, None), with).await.unwrap();
        let node = Self { env, storage, roles, registry, blob, signature: signature() };
        let body = "x".repeat(BYTES);
        for (path, body) in [("photos?restype=container", ""), ("photos/large", &body)] {
            let (status, text) = node.ask("PUT", path, body).await;
            assert_eq!(status, 201, "{text}");
        }
        // Not before: what a node does at its start takes threads of its own.
        tokio::time::pause();
        node
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        ask(&self.blob, &signed(method, path, &self.signature), BLOCK_BLOB, body).await
    }

    /// Asks for the blob, and reads the first byte of the answer.
    async fn reader(&self) -> DuplexStream {
        let mut stream = self.blob.connect().await.unwrap();
        let line = signed("GET", "photos/large", &self.signature);
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        stream
    }

    /// How many answers were cut for this reason.
    fn cut(&self, reason: &str) -> usize {
        let text = telemetry::render(&self.registry, Exposition::Classic).unwrap();
        let label = format!("responses_cut_total{{reason=\"{reason}\"}} ");
        let value = text.lines().find_map(|line| line.split_once(&label)).unwrap().1;
        value.parse().unwrap()
    }

    async fn stop(self) {
        self.roles.stop().await;
        self.storage.capacity.shutdown().await;
        self.env.tasks.shutdown().await;
    }
}

/// What there is to read until the server closes the connection.
async fn rest(stream: &mut DuplexStream) -> usize {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    rest.len()
}

#[tokio::test]
async fn reader_that_takes_nothing_is_cut_after_the_stall_time() {
    let node = Simulated::start(|config| {
        config.response_stall = SECOND * 10;
        config.response_rate_min = 0;
    })
    .await;
    for (pause, is_cut) in [(8, false), (12, true)] {
        let mut reader = node.reader().await;
        node.env.clock.sleep(SECOND * pause).await;
        assert_eq!(rest(&mut reader).await < BYTES, is_cut, "after {pause} s");
        assert_eq!(node.cut("stalled"), usize::from(is_cut), "after {pause} s");
    }
    node.stop().await;
}

#[tokio::test]
async fn reader_below_the_minimum_rate_is_cut_and_one_at_twice_the_rate_is_not() {
    let node = Simulated::start(|config| {
        config.response_stall = SECOND * 10;
        config.response_rate_min = 16 << 10;
    })
    .await;
    for (each_second, is_cut) in [(32 * KIB, false), (8 * KIB, true)] {
        let (mut reader, mut piece) = (node.reader().await, vec![0; each_second]);
        let mut taken = 0;
        while reader.read_exact(&mut piece).await.is_ok() {
            taken += each_second;
            node.env.clock.sleep(SECOND).await;
        }
        assert_eq!(taken + each_second < BYTES, is_cut, "{each_second} a second: {taken}");
        assert_eq!(node.cut("slow"), usize::from(is_cut), "{each_second} a second");
    }
    assert_eq!(node.cut("stalled"), 0, "they took bytes each second");
    node.stop().await;
}

#[tokio::test]
async fn request_is_in_progress_until_its_body_has_ended() {
    let node = Simulated::start(|config| config.requests_max = 1).await;
    let mut reader = node.reader().await;
    let (status, text) = node.ask("GET", "photos/large", "").await;
    assert_eq!((status, text.contains("ServerBusy")), (503, true), "{text}");
    assert!(rest(&mut reader).await > BYTES, "it was not cut for the other");
    let (status, text) = node.ask("GET", "photos/large", "").await;
    assert_eq!((status, text.len()), (200, BYTES));
    node.stop().await;
}
