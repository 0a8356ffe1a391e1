use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::*;
use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Target;
use crate::index::UserKey as StoredKey;
use crate::index::UserRecord;
use crate::index::client::testing::ReadIndex;
use crate::index::client::testing::Reads;
use crate::index::client::testing::env;
use crate::index::client::testing::publish;
use crate::types::AccessKeyId;
use crate::types::Timestamp;
use crate::types::UserName;

/// Has one account, whose row cannot be read at times.
#[derive(Debug)]
struct OneRow {
    record: AccountRecord,
    is_away: AtomicBool,
}

#[async_trait]
impl Reads for OneRow {
    async fn read(&self, _target: Target, _read: Read) -> Result<ReadReply, Error> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(Error::Unavailable("the log cannot be written".to_owned())),
            false => Ok(ReadReply::Account(Box::new(self.record.clone()))),
        }
    }
}

fn with_a_user(secrets: &Secrets) -> AccountRecord {
    let (name, id) = (AccountName::new("aaaa").unwrap(), AccountId::new(7));
    let mut record = AccountRecord::new(id, Timestamp::ZERO, false);
    let key = SecretContext::account_key(&name, id);
    record.keys = vec![secrets.seal(&key, b"a key that is long enough")];
    let key = AccessKeyId::new("KEYOFANN").unwrap();
    let secret = secrets.seal(&SecretContext::user_key(&name, id, &key), b"a secret of a user");
    let keys = vec![StoredKey { id: key, created: Timestamp::ZERO, secret }];
    record.put_user(UserRecord {
        name: UserName::new("ann").unwrap(),
        display: "Ann".to_owned(),
        canonical: "0".repeat(64),
        created: Timestamp::ZERO,
        keys,
    });
    record
}

/// Its keys may have been revoked by the change.
#[tokio::test(start_paused = true)]
async fn an_account_is_not_served_while_a_change_has_no_answer() {
    let env = env();
    let secrets = Secrets::known(&env.rand);
    let row = OneRow { record: with_a_user(&secrets), is_away: AtomicBool::new(false) };
    let row = Arc::new(row);
    let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
    publish(coordinator.as_ref(), (3, 1), KeyRange::new(RoutingKey::min(), None)).await;
    let index = Arc::new(ReadIndex(Arc::clone(&row)));
    let router = Router::new(index, coordinator, env).await.unwrap();
    let (name, other) = (AccountName::new("aaaa").unwrap(), AccountName::new("bbbb").unwrap());
    let accounts = Accounts::new(Vec::new(), secrets);
    accounts.refresh(&router, &name).await.unwrap();
    let served = || accounts.find(&name).unwrap().is_some_and(|it| it.users.has("ann"));
    assert!(served());
    assert_eq!(accounts.access_keys().find("KEYOFANN"), Ok(Some(name.clone())));

    let away = || Error::Unavailable("the log cannot be written".to_owned());
    for (answer, is_away) in [(Ok(()), true), (Err(away()), true), (Err(away()), false)] {
        row.is_away.store(is_away, Ordering::Relaxed);
        accounts.refresh_after(&router, &name, answer).await.unwrap_err();
        let unread = accounts.find(&name).unwrap_err();
        assert_eq!(unread.to_string(), "account `aaaa`");
        assert_eq!((unread.partition, unread.in_doubt), (PartitionId::new(3), true));
        assert_eq!(accounts.access_keys().find("KEYOFANN"), Err(unread));
        assert!(accounts.find(&other).unwrap().is_none(), "others are known");
        assert_eq!(accounts.in_doubt(), std::slice::from_ref(&name));
        accounts.doubted().await;
        row.is_away.store(false, Ordering::Relaxed);
        accounts.refresh(&router, &name).await.expect_err("a read does not end the doubt");
        accounts.decided(&name);
        accounts.refresh(&router, &name).await.unwrap();
        assert!(served());
    }
    drop(accounts.doubt_unless_ended(&router, &name));
    assert_eq!(accounts.in_doubt(), std::slice::from_ref(&name), "the request was given up");
    accounts.decided(&name);
    accounts.refresh(&router, &name).await.unwrap();

    let refused = accounts.refresh_after(&router, &name, Err::<(), _>(Error::Overloaded)).await;
    assert_eq!(refused, Err(Error::Overloaded));
    assert!(served(), "nothing was changed");
}
