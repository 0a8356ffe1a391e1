//! The compactor merges the runs of partitions at rest.

use super::*;
use crate::index::rows::Family;

const ACCOUNTS: u64 = 24_000;

#[tokio::test(start_paused = true)]
async fn runs_over_each_other_become_one_at_rest() {
    let world = World::empty();
    let deps = deps(&world);
    let host = IndexServer::open(vec![deps.clone()], world.config).await.unwrap();
    let at = target(&deps, &account("acc00000", 0).routing_key()).await;
    for first in 0..2 {
        for number in (first..ACCOUNTS).step_by(2) {
            host.write(at, account(&format!("acc{number:05}"), number)).await.unwrap();
        }
        host.flush().await.unwrap();
    }
    let partition = Arc::clone(&host.hosts[0].opened.all()[0]);
    let runs = || partition.core.published().sources.runs(Family::Main).len();
    deps.env.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(runs(), 2, "it was written a moment ago");
    deps.env.clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(runs(), 1);
    for number in [0, 1, ACCOUNTS - 1] {
        let name = AccountName::new(&format!("acc{number:05}")).unwrap();
        let read = host.read(at, Read::Account(name)).await;
        assert!(matches!(read, Ok(ReadReply::Account(_))), "{read:?}");
    }
    host.shutdown().await;
}
