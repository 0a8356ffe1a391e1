//! One connection: answers, refusals, cancels, credits.

use futures_util::future::join;
use futures_util::future::join_all;
use uuid::Uuid;

use super::service::Fill;
use super::service::Panic;
use super::service::Unknown;
use super::service::Wait;
use super::service::Write;
use super::*;
use crate::env::identified;

#[tokio::test(start_paused = true)]
async fn call_is_answered_with_message_and_payload() {
    let world = World::new(1);
    world.serve();
    let peer = world.peer();
    let request = Uuid::from_u128(77);
    for bytes in [0, 5, 30_000, 70_000, 3 << 20] {
        let (text, payload) = ("a".repeat(bytes % 1000), vec![piece(bytes), piece(1)]);
        let bounds = Bounds { answer_bytes_max: 4 << 20, ..within(1000) };
        let call = peer.call::<Echo>(&text, payload.clone(), bounds);
        let (answer, echoed) = identified(Some(request), call).await.unwrap();
        assert!(answer == text && echoed == payload.concat(), "{bytes}");
    }
    let callers = world.book.callers.lock().unwrap().clone();
    assert_eq!(callers, [(identity(1, 1), Some(request)); 5]);
    // Both lanes are connected, each once.
    assert_eq!(world.net.connections(), 1);
    assert_eq!(echo(&peer, "small").await.unwrap(), "small");
    assert_eq!(world.net.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn slow_call_does_not_hold_up_others() {
    let world = World::new(2);
    world.serve();
    let peer = world.peer();
    let slow = peer.call::<Wait>(&500, Vec::new(), within(1000));
    let quick = async {
        let begun = world.env.clock.monotonic();
        for _ in 0..100 {
            echo(&peer, "quick").await.unwrap();
        }
        world.env.clock.monotonic() - begun
    };
    let (slow, quick) = join(slow, quick).await;
    slow.unwrap();
    assert!(quick < Duration::from_millis(300), "{quick:?}");
}

#[tokio::test(start_paused = true)]
async fn read_is_dropped_when_its_caller_goes() {
    let world = World::new(3);
    world.serve();
    let peer = world.peer();
    let gone = tokio::time::timeout(
        Duration::from_millis(50),
        peer.call::<Wait>(&500, Vec::new(), within(1000)),
    );
    gone.await.unwrap_err();
    pause(10).await;
    assert_eq!(*world.book.waits.lock().unwrap(), (0, 1));
    // A caller's own time limit has the same effect.
    let late = peer.call::<Wait>(&500, Vec::new(), within(50)).await.unwrap_err();
    assert_eq!(late, CallError::Unknown(Reason::OutOfTime));
    pause(10).await;
    assert_eq!(*world.book.waits.lock().unwrap(), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn change_goes_on_when_its_caller_goes() {
    let world = World::new(4);
    world.serve();
    let peer = world.peer();
    let late = peer.call::<Write>(&(500, 7), Vec::new(), within(50)).await.unwrap_err();
    assert_eq!(late, CallError::Unknown(Reason::OutOfTime));
    assert!(world.book.written.lock().unwrap().is_empty());
    world.book.wrote.notified().await;
    assert_eq!(*world.book.written.lock().unwrap(), [7]);
}

#[tokio::test(start_paused = true)]
async fn call_that_no_method_takes_is_refused() {
    let world = World::new(5);
    world.serve();
    let peer = world.peer();
    let unknown = peer.call::<Unknown>(&(), Vec::new(), within(1000)).await.unwrap_err();
    assert_eq!(unknown, CallError::NotDone(Reason::Refused(Refusal::UnknownMethod)));
    /// A text that is too short for its length.
    struct Other;
    impl Method for Other {
        const NUMBER: u16 = Echo::NUMBER;
        type Call = u64;
        type Answer = String;
    }
    let malformed = peer.call::<Other>(&9, Vec::new(), within(1000)).await.unwrap_err();
    assert_eq!(malformed, CallError::NotDone(Reason::Refused(Refusal::Malformed)));
    assert_eq!(echo(&peer, "still there").await.unwrap(), "still there");
}

#[tokio::test(start_paused = true)]
async fn panic_and_large_answer_have_an_unknown_outcome_and_give_their_credit_back() {
    let world = World::new(6);
    world.serve_with(|config| config.small_credit = Credit { calls: 1, bytes: 8192 });
    let peer = world.peer();
    for _ in 0..3 {
        let failed = peer.call::<Panic>(&(), Vec::new(), within(1000)).await.unwrap_err();
        assert_eq!(failed, CallError::Unknown(Reason::Failed));
        // The message has two bytes: a version, and nothing for the answer.
        let exact = peer.call::<Fill>(&4095, Vec::new(), within(1000)).await.unwrap();
        assert_eq!(exact.1, piece(4095));
        let large = peer.call::<Fill>(&4096, Vec::new(), within(1000)).await.unwrap_err();
        assert_eq!(large, CallError::Unknown(Reason::Failed));
    }
    assert_eq!(world.net.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_credit_wait_for_others_to_end() {
    let world = World::new(7);
    world.serve_with(|config| config.small_credit = Credit { calls: 2, bytes: 32_768 });
    let peer = world.peer();
    let begun = world.env.clock.monotonic();
    let waits = (0..6).map(|_| peer.call::<Wait>(&100, Vec::new(), within(1000)));
    for wait in join_all(waits).await {
        wait.unwrap();
    }
    let took = world.env.clock.monotonic() - begun;
    assert!((300..400).contains(&took.as_millis()), "{took:?}");
    // A call that waits for credit until its time is over was not carried out.
    let bounds = within(50);
    let busy = join_all((0..2).map(|_| peer.call::<Wait>(&100, Vec::new(), within(1000))));
    let late = async {
        pause(10).await;
        peer.call::<Write>(&(0, 1), Vec::new(), bounds).await.unwrap_err()
    };
    let (_, late) = join(busy, late).await;
    assert_eq!(late, CallError::NotDone(Reason::OutOfTime));
    pause(1000).await;
    assert!(world.book.written.lock().unwrap().is_empty());
    // Nor can one be that is larger than all the credit.
    let bounds = Bounds { answer_bytes_max: 32_768, ..within(1000) };
    let large = peer.call::<Wait>(&1, Vec::new(), bounds).await.unwrap_err();
    assert_eq!(large, CallError::NotDone(Reason::TooLarge));
}

#[tokio::test(start_paused = true)]
async fn cancelled_change_holds_its_credit_until_it_ends() {
    let world = World::new(8);
    world.serve_with(|config| config.small_credit = Credit { calls: 1, bytes: 32_768 });
    let peer = world.peer();
    peer.call::<Write>(&(200, 1), Vec::new(), within(50)).await.unwrap_err();
    let begun = world.env.clock.monotonic();
    echo(&peer, "after").await.unwrap();
    let waited = world.env.clock.monotonic() - begun;
    assert!((140..160).contains(&waited.as_millis()), "{waited:?}");
}
