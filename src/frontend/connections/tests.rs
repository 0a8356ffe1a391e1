use super::*;
use crate::env::SimClock;

const LIMITS: Limits = Limits {
    open_max: 2,
    peer_max: 2,
    loopback_max: 2,
    reserved: 0,
    leaving_max: 1,
    refused_max: 1,
    refused_peer_max: 1,
};

fn serve(connections: &Arc<Connections>) -> Arc<Slot> {
    match connections.enter(IpAddr::from([192, 0, 2, 1])) {
        Entry::Serve(slot) => slot,
        other @ (Entry::Refuse(_) | Entry::Close) => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn slots_and_refusals_are_given_back() {
    let connections =
        Connections::new(LIMITS, Arc::new(SimClock::new()), ConnectionMetrics::default());
    let slots = [serve(&connections), serve(&connections)];
    let Entry::Refuse(refusal) = connections.enter(IpAddr::from([192, 0, 2, 1])) else {
        panic!("over the cap of one peer")
    };
    assert!(matches!(connections.enter(IpAddr::from([192, 0, 2, 1])), Entry::Close));
    drop(refusal);
    let [one, other] = slots;
    drop(one);
    let request = serve(&connections).begin();
    let waits = connections.closed();
    tokio::pin!(waits);
    drop(other);
    assert!(futures_util::poll!(waits.as_mut()).is_pending(), "a request is in progress");
    drop(request);
    waits.await;
}

#[tokio::test(start_paused = true)]
async fn a_body_on_its_way_is_a_request_in_progress() {
    let clock = Arc::new(SimClock::new());
    let connections = Connections::new(
        LIMITS,
        Arc::clone(&clock) as Arc<dyn Clock>,
        ConnectionMetrics::default(),
    );
    let slot = serve(&connections);
    let long = Duration::from_secs(30);
    let body = slot.begin().until_sent(http_body_util::Full::new(bytes::Bytes::from("answer")));
    let idle = slot.idle_for(long);
    tokio::pin!(idle);
    assert!(tokio::time::timeout(long * 5, idle.as_mut()).await.is_err());
    let begun = clock.monotonic();
    drop(body);
    idle.await;
    let took = clock.monotonic() - begun;
    assert!(took >= long && took < long * 2, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_must_leave_before_it_waits_gets_the_signal() {
    let connections = Connections::new(
        Limits { peer_max: 3, ..LIMITS },
        Arc::new(SimClock::new()),
        ConnectionMetrics::default(),
    );
    let slots = [serve(&connections), serve(&connections)];
    let _newer = serve(&connections);
    slots[0].leave_requested().await;
    let request = slots[1].begin();
    let goodbye = slots[1].goodbye(GOODBYE, Duration::from_secs(60), || false);
    tokio::pin!(goodbye);
    assert!(tokio::time::timeout(GOODBYE * 9, goodbye.as_mut()).await.is_err());
    drop(request);
    goodbye.await;
}

#[tokio::test(start_paused = true)]
async fn goodbye_waits_for_what_is_buffered_but_not_for_ever() {
    let clock = Arc::new(SimClock::new());
    let connections = Connections::new(
        LIMITS,
        Arc::clone(&clock) as Arc<dyn Clock>,
        ConnectionMetrics::default(),
    );
    let slot = serve(&connections);
    let most = Duration::from_secs(60);
    let taken = clock.monotonic() + GOODBYE * 20;
    slot.goodbye(GOODBYE, most, || clock.monotonic() < taken).await;
    assert_eq!(clock.monotonic(), taken, "the client took what was buffered");
    let begun = clock.monotonic();
    slot.goodbye(GOODBYE, most, || true).await;
    assert_eq!(clock.monotonic() - begun, most, "the client takes nothing");
    let (_request, begun) = (slot.begin(), clock.monotonic());
    slot.goodbye(GOODBYE, most, || false).await;
    assert_eq!(clock.monotonic() - begun, most, "a request does not end");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_leaves_says_so_to_new_streams() {
    let connections = Connections::new(
        Limits { peer_max: 3, ..LIMITS },
        Arc::new(SimClock::new()),
        ConnectionMetrics::default(),
    );
    let slots = [serve(&connections), serve(&connections)];
    assert!(slots.iter().all(|slot| !slot.is_leaving()));
    let newer = serve(&connections);
    assert!(slots[0].is_leaving() && !slots[1].is_leaving() && !newer.is_leaving());
}
