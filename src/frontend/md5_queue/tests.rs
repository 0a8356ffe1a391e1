//! Digests of bodies that are hashed together.

use futures_util::future::join_all;

use super::*;
use crate::types::MD5_BATCH_MAX;

fn content(number: usize) -> Bytes {
    let len = 20_000 * (number + 1) + number;
    (0..len).map(|at| u8::try_from((at * 7 + number) % 253).unwrap()).collect()
}

/// The MD5 of content that comes in pieces of `step` bytes.
async fn digest(queue: &Md5Queue, content: &Bytes, step: usize) -> Md5 {
    let mut md5 = queue.begin(Some(content.len() as u64));
    for piece in content.chunks(step) {
        md5.add(&content.slice_ref(piece)).await.unwrap();
        tokio::task::yield_now().await;
    }
    md5.finish().await.unwrap()
}

#[tokio::test]
async fn bodies_of_one_time_keep_their_own_digests() {
    let queue = Md5Queue::new();
    assert!(queue.batch.is_some(), "the library is right on this processor");
    for bodies in [1, 2, 7, 8, MD5_BATCH_MAX, 40] {
        let contents: Vec<_> = (0..bodies).map(content).collect();
        let steps = (0..bodies).map(|number| 5_000 + number * 4_999);
        let digests = join_all(contents.iter().zip(steps).map(|(c, step)| digest(&queue, c, step)));
        let right: Vec<_> = contents.iter().map(|content| Md5::of(content)).collect();
        assert_eq!(digests.await, right, "{bodies} bodies");
        assert_eq!(queue.lock().bytes(), 0);
    }
}

#[test]
fn threads_hash_bodies_of_each_other() {
    let queue = Md5Queue::new();
    let run = |thread: usize| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let numbers = (0..20).map(|number| thread * 10 + number);
        runtime.block_on(join_all(numbers.map(async |number| {
            let content = content(number);
            assert_eq!(digest(&queue, &content, 3_000 + number * 997).await, Md5::of(&content));
        })));
    };
    std::thread::scope(|threads| {
        (0..4).for_each(|thread| {
            threads.spawn(move || run(thread));
        });
    });
    assert_eq!(queue.lock().bytes(), 0);
}

#[tokio::test]
async fn the_body_that_catches_up_takes_the_others_along() {
    let queue = Md5Queue::new();
    let piece = Bytes::from(vec![7; 64 << 10]);
    let mut bodies: Vec<_> = (0..5).map(|_| queue.begin(None)).collect();
    for body in &mut bodies {
        body.add(&piece).await.unwrap();
    }
    assert!(queue.lock().bytes() >= 5 * piece.len(), "all lag behind");
    let last = bodies.pop().unwrap();
    assert_eq!(last.finish().await.unwrap(), Md5::of(&piece));
    assert_eq!(queue.lock().bytes(), 0, "the others were hashed with it");
    for body in bodies {
        assert_eq!(body.finish().await.unwrap(), Md5::of(&piece));
    }
}

#[tokio::test]
async fn a_body_lags_behind_by_so_much_and_all_together_by_so_much() {
    let queue = Md5Queue::new();
    let piece = Bytes::from(vec![7; 100 << 10]);
    let mut one = queue.begin(None);
    for _ in 0..20 {
        one.add(&piece).await.unwrap();
        assert!(queue.lock().bytes() <= LAG_BYTES_MAX);
    }
    let mut many: Vec<_> = (0..200).map(|_| queue.begin(None)).collect();
    for body in &mut many {
        body.add(&piece).await.unwrap();
        assert!(queue.lock().bytes() <= BACKLOG_BYTES_MAX);
    }
}

/// Each piece counts more than its byte, so few of them wait.
#[tokio::test]
async fn tiny_pieces_take_little_memory() {
    let queue = Md5Queue::new();
    let mut body = queue.begin(None);
    for _ in 0..3_000 {
        body.add(&Bytes::from_static(b"x")).await.unwrap();
        assert!(queue.lock().bytes() <= LAG_BYTES_MAX);
    }
    assert_eq!(body.finish().await.unwrap(), Md5::of(&[b'x'; 3_000]));
}

/// A thread has the streams of others while it hashes. They may be given up meanwhile, and others
/// wait for theirs.
#[tokio::test]
async fn streams_that_are_out_come_back_or_are_dropped() {
    let queue = Md5Queue::new();
    let piece = content(3);
    let mut bodies: Vec<_> = (0..3).map(|_| queue.begin(None)).collect();
    for body in &mut bodies {
        body.add(&piece).await.unwrap();
    }
    let Step::Hash(lanes) = queue.lock().step(0, 0) else { panic!("there is something to hash") };
    assert_eq!(lanes.len(), 3);
    let hashing = Hashing { queue: &queue, lanes };
    drop(bodies.remove(2));
    let mut waiting = Box::pin(bodies.remove(1).finish());
    assert!(futures_util::poll!(&mut waiting).is_pending(), "its stream is out");
    hashing.run(queue.batch.unwrap());
    assert_eq!(waiting.await.unwrap(), Md5::of(&piece));
    assert_eq!(bodies.remove(0).finish().await.unwrap(), Md5::of(&piece));
    assert_eq!(queue.lock().bytes(), 0);
}

#[tokio::test]
async fn a_panic_while_hashing_refuses_the_bodies_of_its_batch() {
    let queue = Md5Queue::new();
    let (mut lost, other) = (queue.begin(None), queue.begin(None));
    lost.add(&content(3)).await.unwrap();
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let Step::Hash(lanes) = queue.lock().step(0, 0) else { panic!("nothing to hash") };
        let _hashing = Hashing { queue: &queue, lanes };
        panic!("as a bug of the library would");
    }));
    assert!(broken.is_err());
    assert_eq!(lost.finish().await.unwrap_err().reason, Reason::InternalError);
    assert_eq!(other.finish().await.unwrap(), Md5::of(b""));
}

#[tokio::test]
async fn short_bodies_and_processors_that_fail_the_test_hash_alone() {
    let queue = Md5Queue::new();
    assert!(matches!(queue.begin(Some(4096)), BodyMd5::Alone(_)));
    let queue = Md5Queue { batch: None, backlog: Mutex::default() };
    assert!(matches!(queue.begin(None), BodyMd5::Alone(_)));
    assert_eq!(digest(&queue, &content(9), 70_000).await, Md5::of(&content(9)));
}
