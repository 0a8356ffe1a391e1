//! Tasks that ask for keys and panic: they ask again.

use super::*;
use crate::env::clock::TrapClock;

/// A world whose sleeps may panic.
fn world() -> (World, Arc<TrapClock>) {
    let mut world = World::new();
    let clock = Arc::new(TrapClock::new(Arc::clone(&world.env.clock)));
    world.env.clock = Arc::clone(&clock) as _;
    (world, clock)
}

#[tokio::test(start_paused = true)]
async fn keys_are_renewed_although_the_task_that_waits_for_that_panicked() {
    let ((mut world, clock), key) = (world(), Signer::new("a"));
    world.site.put("/keys", key_set(&[&key]));
    clock.trap(HOUR);
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &key).await);
    assert_eq!(world.site.requested(), ["/keys"]);
    for _ in 0..3 {
        world.sleep(HOUR + URL_AGE_MIN).await;
        assert_eq!(world.site.requested(), ["/keys"]);
    }
    let health = world.env.tasks.health();
    assert_eq!((health.panics("keys of an issuer"), health.stopped()), (1, Vec::new()));
    assert!(world.accepts(&tokens, &key).await);
}

/// As after any other failure: no token needs to make it ask.
#[tokio::test(start_paused = true)]
async fn keys_are_asked_for_soon_after_the_asking_panicked() {
    let ((mut world, clock), key) = (world(), Signer::new("a"));
    world.site.put("/keys", Answer::Never);
    clock.trap(FETCH_TIME_MAX);
    let tokens = world.start(by_url());
    world.sleep(FETCH_TIME_MAX * 2).await;
    assert_eq!(world.env.tasks.health().panics("issuer keys"), 1);
    assert_eq!(world.site.requested(), ["/keys"]);
    world.site.put("/keys", key_set(&[&key]));
    world.sleep(URL_AGE_MIN).await;
    assert_eq!(world.site.requested(), ["/keys"]);
    assert!(world.accepts(&tokens, &key).await);
}
