//! Sealing while parts of the index do not serve, and what is erased after it.

use std::sync::Arc;
use std::time::Duration;

use crate::auth::KeyRing;
use crate::capacity;
use crate::index::ReadAccount;
use crate::index::ScopeRecord;
use crate::index::UpdateAccount;
use crate::index::UserKey;
use crate::index::UserRecord;
use crate::index::engine::testing::Fault;
use crate::index::engine::testing::When;
use crate::node::account_list::tests::NAMES;
use crate::node::account_list::tests::Started;
use crate::node::account_list::tests::flip;
use crate::node::account_list::tests::four_accounts;
use crate::node::account_list::tests::name;
use crate::node::account_list::tests::start;
use crate::types::AccessKeyId;
use crate::types::UserName;

use super::*;

const SECRET: &[u8] = b"a key that was written plain";

async fn key_of(started: &Started, account: &str) -> Secret {
    let (name, router) = (name(account), &started.list.router);
    let record = router.ask(ReadAccount(name)).await.unwrap();
    record.keys[0].clone()
}

/// Gives each account a plain key, as older releases did.
async fn write_plain(started: &Started) {
    for text in NAMES {
        let change = AccountChange::Keys(vec![Secret::Plain(SECRET.into())]);
        started.list.router.tell(UpdateAccount { name: name(text), change }).await.unwrap();
    }
}

async fn is_sealed(started: &Started, account: &str) -> bool {
    matches!(key_of(started, account).await, Secret::Sealed(_))
}

#[tokio::test(start_paused = true)]
async fn sealing_goes_on_past_a_quarantined_partition() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    write_plain(&started).await;
    started.index.shutdown().await;
    flip(&world, "iiii").await;
    let started = start(&world, &[], &[]).await;
    let done = reseal(&started.list.router, &started.list.secrets).await.unwrap();
    assert!(done.incomplete);
    assert_eq!(done.secrets, 3);
    for text in ["aaaa", "oooo", "zzzz"] {
        assert!(is_sealed(&started, text).await, "{text}");
    }
    started.index.shutdown().await;
    flip(&world, "iiii").await;
    let started = start(&world, &[], &[]).await;
    let done = reseal(&started.list.router, &started.list.secrets).await.unwrap();
    assert_eq!((done.incomplete, done.secrets), (false, 1), "the next start goes on");
    assert!(is_sealed(&started, "iiii").await);
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn secrets_of_users_are_sealed_under_the_new_key() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    let (router, secrets) = (&started.list.router, &started.list.secrets);
    let read = || router.ask(ReadAccount(name("aaaa")));
    let (account, id) = (name("aaaa"), read().await.unwrap().id);
    let key = AccessKeyId::new("KEY").unwrap();
    let context = SecretContext::user_key(&account, id, &key);
    let secret = secrets.seal(&context, SECRET);
    let user = UserRecord {
        name: UserName::new("u").unwrap(),
        display: "U".to_owned(),
        canonical: "c".to_owned(),
        created: NOW,
        keys: vec![UserKey { id: key, created: NOW, secret: secret.clone() }],
    };
    let change = AccountChange::PutUser(Box::new(user));
    router.tell(UpdateAccount { name: account, change }).await.unwrap();
    let new = secrets.ring().rotated(zeroize::Zeroizing::new([8; 32]), NOW);
    secrets.replace(new);
    let done = reseal(router, secrets).await.unwrap();
    assert!(!done.incomplete && done.damaged == 0, "{done:?}");
    let sealed = read().await.unwrap().users()[0].keys[0].secret.clone();
    assert_ne!(sealed, secret);
    assert!(secrets.ring().is_current(&sealed));
    assert_eq!(*secrets.open(&context, &sealed).unwrap(), SECRET);
    assert_eq!(reseal(router, secrets).await.unwrap().secrets, 0, "nothing is left to do");
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_scopes_are_sealed_under_the_new_key() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    let (router, secrets) = (&started.list.router, &started.list.secrets);
    let read = || router.ask(ReadAccount(name("aaaa")));
    let (account, id) = (name("aaaa"), read().await.unwrap().id);
    let context = SecretContext::scope_key(&account, id, "ours");
    let key = secrets.seal(&context, SECRET);
    let scope =
        ScopeRecord { name: "ours".to_owned(), created: NOW, enabled: true, key: key.clone() };
    let change = AccountChange::AddScope(Box::new(scope));
    router.tell(UpdateAccount { name: account, change }).await.unwrap();
    secrets.replace(secrets.ring().rotated(zeroize::Zeroizing::new([8; 32]), NOW));
    let done = reseal(router, secrets).await.unwrap();
    assert!(!done.incomplete && done.damaged == 0, "{done:?}");
    let sealed = read().await.unwrap().scopes()[0].key.clone();
    assert_ne!(sealed, key);
    assert!(secrets.ring().is_current(&sealed));
    assert_eq!(*secrets.open(&context, &sealed).unwrap(), SECRET);
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn full_disk_does_not_end_sealing() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    write_plain(&started).await;
    world.capacity.fail(When::From(0), Fault::Refused(capacity::Error::Full));
    let done = reseal(&started.list.router, &started.list.secrets).await.unwrap();
    assert!(done.incomplete);
    world.capacity.fail(When::Once(usize::MAX), Fault::Refused(capacity::Error::Full));
    started.env.clock.sleep(Duration::from_secs(60)).await;
    let done = reseal(&started.list.router, &started.list.secrets).await.unwrap();
    assert!(!done.incomplete);
    for text in NAMES {
        assert!(is_sealed(&started, text).await, "{text}");
    }
    started.index.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn secret_under_a_key_that_is_missing_is_still_fatal() {
    let world = four_accounts().await;
    let started = start(&world, &[], &[]).await;
    let router = &started.list.router;
    let ring = KeyRing::new(uuid::Uuid::nil(), zeroize::Zeroizing::new([9; 32]), NOW);
    let ring = ring.rotated(zeroize::Zeroizing::new([8; 32]), NOW);
    let later = Secrets::new(ring, Arc::clone(&started.env.rand));
    let context = SecretContext::account_key(&name("aaaa"), crate::types::AccountId::new(1));
    let change = AccountChange::Keys(vec![later.seal(&context, SECRET)]);
    router.tell(UpdateAccount { name: name("aaaa"), change }).await.unwrap();
    let error = reseal(router, &started.list.secrets).await.unwrap_err();
    let lacks = matches!(error, NodeError::Secret { error: UnsealError::NoKey(2), .. });
    assert!(lacks, "{error}");
    started.index.shutdown().await;
}

const NOW: crate::types::Timestamp = crate::types::Timestamp::ZERO;
