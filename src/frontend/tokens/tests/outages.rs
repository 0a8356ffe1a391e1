//! An issuer that is down, slow or silent.

use super::*;
use crate::frontend::tokens::keyring::WAITING_MAX;

#[tokio::test(start_paused = true)]
async fn issuer_that_is_down_at_the_start_is_asked_again() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    world.site.dead.store(true, Ordering::SeqCst);
    world.site.put("/keys", key_set(&[&key]));
    let tokens = world.start(by_url());
    let refused = tokens.verify(&key.token(&world.env), &world.env).await.unwrap_err();
    assert!(matches!(&refused, auth::Error::Token { detail } if detail.contains("not known yet")));
    assert!(tokens.challenge().is_some());
    assert_eq!(world.metric("issuer_key_fetch_failures_total"), Some(1.0));
    assert_eq!(world.metric("issuer_keys_age_seconds"), None);
    world.site.dead.store(false, Ordering::SeqCst);
    world.sleep(URL_AGE_MIN + Duration::from_secs(1)).await;
    assert_eq!(world.site.requested().len(), 1, "in the background");
    assert!(world.accepts(&tokens, &key).await);
}

#[tokio::test(start_paused = true)]
async fn old_keys_stay_while_no_new_ones_can_be_had() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    let good = key_set(&[&key]);
    world.site.put("/keys", good.clone());
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &key).await);
    let error = Answer::Says(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
    let bad =
        [error, Answer::Leads, Answer::Never, Answer::Endless, says("?"), says("{\"keys\":[]}")];
    for answer in bad {
        world.site.put("/keys", answer.clone());
        let failures = world.metric("issuer_key_fetch_failures_total").unwrap();
        let age = Duration::from_secs_f64(world.metric("issuer_keys_age_seconds").unwrap());
        world.sleep(HOUR + Duration::from_secs(10) - age).await;
        assert_eq!(
            world.metric("issuer_key_fetch_failures_total"),
            Some(failures + 1.0),
            "{answer:?}"
        );
        assert!(world.accepts(&tokens, &key).await, "{answer:?}");
        world.site.put("/keys", good.clone());
        world.sleep(URL_AGE_MIN).await;
        assert!(world.metric("issuer_keys_age_seconds").unwrap() < 30.0, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_issuer_is_waited_for_five_seconds() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    world.site.put("/keys", Answer::Never);
    let tokens = world.start(by_url());
    let before = world.env.clock.monotonic();
    assert!(!world.accepts(&tokens, &key).await);
    assert_eq!(world.env.clock.monotonic() - before, Duration::from_secs(5));
    assert!(!world.accepts(&tokens, &key).await);
    assert_eq!(world.env.clock.monotonic() - before, Duration::from_secs(5), "not again at once");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait_for_a_slow_issuer() {
    let (mut world, key) = (World::new(), Signer::new("a"));
    world.site.put("/keys", Answer::Never);
    let tokens = world.start(by_url());
    let begun = world.env.clock.monotonic();
    let asking = (0..WAITING_MAX + 10).map(async |_| {
        assert!(!world.accepts(&tokens, &key).await);
        world.env.clock.monotonic() - begun
    });
    let took = futures_util::future::join_all(asking).await;
    assert_eq!(took.iter().filter(|took| took.is_zero()).count(), 10);
    assert_eq!(world.site.requested().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn asking_goes_on_when_the_client_leaves() {
    let (mut world, old, new) = (World::new(), Signer::new("a"), Signer::new("b"));
    world.site.put("/keys", key_set(&[&old]));
    let tokens = world.start(by_url());
    assert!(world.accepts(&tokens, &old).await);
    world.sleep(URL_AGE_MIN).await;
    let Answer::Says(_, keys) = key_set(&[&new]) else { panic!("not a key set") };
    world.site.put("/keys", Answer::After(Duration::from_secs(2), keys));
    tokio::select! {
        biased;
        _ = world.accepts(&tokens, &new) => panic!("it has no answer yet"),
        () = world.sleep(Duration::from_secs(1)) => {}
    }
    assert!(world.accepts(&tokens, &new).await, "waits for the asking that goes on");
    assert_eq!(world.site.requested().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stop_does_not_wait_for_an_issuer() {
    let mut world = World::new();
    world.site.put("/keys", Answer::Never);
    let _tokens = world.start(by_url());
    world.sleep(Duration::from_secs(1)).await;
    assert_eq!(world.site.requested().len(), 1);
    let before = world.env.clock.monotonic();
    world.env.tasks.shutdown().await;
    assert_eq!(world.env.clock.monotonic(), before);
}
