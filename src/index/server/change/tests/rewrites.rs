//! Rewrites: no file keeps what rows with secrets held before.

use bytes::Bytes;

use super::*;
use crate::index::api::AccountChange;
use crate::types::Secret;

/// Nothing that a run's compression could shorten.
const PLAIN: &[u8] = b"x9Qf3LmZ7vB2kR8tW1yUc5Jd";

fn sealed() -> Secret {
    Secret::Sealed(Bytes::from_static(b"sealed"))
}

impl Rig {
    async fn change_account(&self, number: u64, change: AccountChange) {
        let write = Write::UpdateAccount { name: name(number), change };
        self.host.write(self.target(&name(number)).await, write).await.unwrap();
    }

    async fn keep_plain(&self, number: u64) {
        let key = Secret::Plain(Bytes::from_static(PLAIN));
        self.change_account(number, AccountChange::Keys(vec![key])).await;
    }
}

#[tokio::test]
async fn plain_secrets_leave_logs_and_runs() {
    let world = World::empty();
    let rig = open(&world).await;
    rig.write_all(1..=60).await;
    rig.keep_plain(7).await;
    rig.keep_plain(50).await;
    rig.host.flush().await.unwrap();
    // Children share the run, and the log of what comes after it.
    rig.keep_plain(8).await;
    rig.split(&[30]).await;
    rig.keep_plain(51).await;
    assert!(world.capacity.holds(PLAIN));
    rig.host.shutdown().await;
    drop(rig);

    let rig = open(&world).await;
    for number in [7, 8, 50, 51] {
        let pair = (Secret::Plain(Bytes::from_static(PLAIN)), sealed());
        rig.change_account(number, AccountChange::Reseal(vec![pair])).await;
    }
    rig.do_chores().await;
    assert!(world.capacity.holds(PLAIN), "a change alone leaves the old values in files");
    assert_eq!(rig.host.rewrite_secret_rows().await, Ok(true));
    rig.do_chores().await;
    assert!(!world.capacity.holds(PLAIN));
    rig.check(60).await;
    rig.host.shutdown().await;
    drop(rig);
    let rig = open(&world).await;
    rig.check(60).await;
    assert!(!world.capacity.holds(PLAIN));
    rig.host.shutdown().await;
}
