use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;

use super::*;
use crate::frontend::answers::CutOffReason;
use crate::frontend::answers::Flow;
use crate::frontend::answers::StallLimits;
use crate::index::client::testing;
use crate::protocol::model::Reason;

const SECOND: Duration = Duration::from_secs(1);
const ACCOUNT: AccountId = AccountId::new(9);
const LIMITS: StallLimits = StallLimits { stall: Duration::from_secs(60), rate_min: 1024, note: 1 };

/// A body of 1,000 bytes, and where to write it.
async fn body(uploads: &Arc<Flows>) -> (RequestBody, DuplexStream) {
    let env = testing::env();
    let (incoming, far) = incoming(&env).await;
    (RequestBody::new(incoming, uploads, env), far)
}

async fn incoming(env: &Env) -> (Incoming, DuplexStream) {
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
    drop(env.tasks.spawn("connection", async { drop(connection.await) }));
    let head = async {
        assert!(far.read(&mut [0; 4096]).await.unwrap() > 0);
        far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await.unwrap();
        far
    };
    let request = http::Request::new(Empty::<Bytes>::new());
    let (answer, far) = tokio::join!(sender.send_request(request), head);
    (answer.unwrap().into_body(), far)
}

/// What is wrong with the uploads that are watched.
fn faults(uploads: &Flows, now: Duration) -> Vec<Option<CutOffReason>> {
    uploads.find(|flow| Some(flow.judge(LIMITS, now))).into_iter().map(|found| found.1).collect()
}

#[tokio::test(start_paused = true)]
async fn only_the_time_counts_in_which_the_client_is_waited_for() {
    let uploads = Arc::<Flows>::default();
    let (mut body, mut client) = body(&uploads).await;
    let clock = Arc::clone(&body.env.clock);
    client.write_all(&[7; 100]).await.unwrap();
    clock.sleep(SECOND).await;
    assert_eq!(body.next().await.unwrap().unwrap().len(), 100);
    assert!(faults(&uploads, clock.monotonic()).is_empty(), "nobody waited: it is not watched");
    assert!(tokio::time::timeout(SECOND * 59, body.next()).await.is_err());
    client.write_all(&[7; 100]).await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap().len(), 100);
    clock.sleep(SECOND * 1_000).await;
    assert_eq!(faults(&uploads, clock.monotonic()), [None], "it is not asked for more");
    assert!(tokio::time::timeout(SECOND, body.next()).await.is_err());
    assert_eq!(faults(&uploads, clock.monotonic()), [Some(CutOffReason::Slow)]);
    client.write_all(&[7; 800]).await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap().len(), 800);
    assert!(body.next().await.unwrap().is_none());
    assert!(faults(&uploads, clock.monotonic()).is_empty(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn body_that_is_cut_gets_an_error_and_is_watched_no_more() {
    let uploads = Arc::<Flows>::default();
    let (mut body, _client) = body(&uploads).await;
    let clock = Arc::clone(&body.env.clock);
    let cuts = async {
        clock.sleep(SECOND * 60).await;
        for (flow, fault) in uploads.find(|flow| flow.judge(LIMITS, clock.monotonic())) {
            assert_eq!(fault, CutOffReason::Stalled);
            assert!(flow.cut_off(fault, clock.monotonic()));
        }
    };
    let (cut, ()) = tokio::join!(body.next(), cuts);
    assert_eq!(cut.unwrap_err().reason, Reason::RequestTimeout);
    assert!(faults(&uploads, clock.monotonic()).is_empty());
    let began = clock.monotonic();
    body.drain().await;
    assert_eq!(clock.monotonic() - began, DRAIN_TIME_MAX);
}

/// A copy whose source sends nothing more.
async fn copy(
    uploads: &Arc<Flows>,
    idle: Duration,
    total: Duration,
) -> (RequestBody, DuplexStream) {
    let env = testing::env();
    let (incoming, far) = incoming(&env).await;
    let time = SourceTime { idle, deadline: env.clock.monotonic() + total };
    let mut body = RequestBody::of_outside(incoming, uploads, time, env);
    body.pay(ACCOUNT);
    body.admitted(ACCOUNT);
    (body, far)
}

#[tokio::test(start_paused = true)]
async fn copy_gives_way_to_others_as_an_upload_does() {
    let uploads = Arc::<Flows>::default();
    let (mut body, _source) = copy(&uploads, SECOND * 60, SECOND * 3_600).await;
    let clock = Arc::clone(&body.env.clock);
    let cuts = async {
        clock.sleep(SECOND * 59).await;
        assert_eq!(faults(&uploads, clock.monotonic() + SECOND * 60), [None], "others judge it");
        let holds = |flow: &Flow| {
            let upload = flow.upload()?;
            Some((upload.admitted, upload.memory.account()))
        };
        let found = uploads.find(holds);
        assert_eq!(found.len(), 1, "it is watched");
        for (flow, holds) in found {
            assert_eq!(holds, (Some(ACCOUNT), ACCOUNT));
            assert!(flow.stood(clock.monotonic()).is_some_and(|stood| stood >= SECOND * 59));
            assert!(flow.cut_off(CutOffReason::Contention, clock.monotonic()));
        }
    };
    let (cut, ()) = tokio::join!(body.next(), cuts);
    assert_eq!(cut.unwrap_err().reason, Reason::ServerBusy);
    assert!(faults(&uploads, clock.monotonic()).is_empty(), "it is watched no more");
}

#[tokio::test(start_paused = true)]
async fn copy_source_has_its_own_limits_while_it_is_watched() {
    for (idle, total, took) in [(60, 3_600, 60), (60, 30, 30)] {
        let uploads = Arc::<Flows>::default();
        let (mut body, _source) = copy(&uploads, SECOND * idle, SECOND * total).await;
        let began = body.env.clock.monotonic();
        let late = body.next().await.unwrap_err();
        assert_eq!(late.reason, Reason::CannotVerifyCopySource);
        assert_eq!(body.env.clock.monotonic() - began, SECOND * took);
        assert!(faults(&uploads, began).is_empty());
    }
}
