//! Rotations that cannot seal everything anew.

use crate::auth::SecretContext;
use crate::index::AccountChange;
use crate::index::Write;
use crate::index::engine::testing::World;
use crate::node::account_list::tests::name;
use crate::node::account_list::tests::start;
use crate::types::AccountId;
use crate::types::Timestamp;

use super::*;

#[tokio::test(start_paused = true)]
async fn rotation_that_leaves_a_damaged_secret_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.key");
    let started = start(&World::empty(), &[], &[]).await;
    let (router, secrets) = (&started.list.router, &started.list.secrets);
    let opened = master_key::open(&file, started.coordinator.as_ref(), true, Timestamp::ZERO).await;
    secrets.replace(opened.unwrap().ring);
    let (account, id) = (name("aaaa"), AccountId::new(1));
    router
        .write(Write::CreateAccount { name: account.clone(), id, anonymous: false })
        .await
        .unwrap();
    let keep = async |context: SecretContext| {
        let change = AccountChange::Keys(vec![secrets.seal(&context, b"a key of an account")]);
        let write = Write::UpdateAccount { name: account.clone(), change };
        router.write(write).await.unwrap();
    };
    let keys = NodeKeys::new(&file, secrets.clone(), Arc::clone(router), started.env.clone());

    keep(SecretContext::account_key(&account, id)).await;
    assert_eq!(keys.rotate().await.unwrap().resealed, Some(1));
    // It does not open in its row.
    keep(SecretContext::account_key(&name("bbbb"), id)).await;
    let left = keys.rotate().await.unwrap_err();
    assert!(left.contains("1 of them is damaged"), "{left}");
    assert!(left.contains("account rotate"), "what to do: {left}");
    keep(SecretContext::account_key(&account, id)).await;
    assert_eq!(keys.rotate().await.unwrap().resealed, Some(1));
    started.index.shutdown().await;
}
