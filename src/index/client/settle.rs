//! Settles writes whose outcome is unknown, so that what they need can be given up (ADR 0065).

use std::time::Duration;

use crate::index::Settle;
use crate::index::client::router::Router;
use crate::types::RoutingKey;

/// The pause before it is said that writes in doubt are settled, and between two tries.
const PAUSE: Duration = Duration::from_secs(1);

impl Router {
    /// Returns when no attempt of a write that has ended before this call is carried out any more:
    /// the partition of its `key` has heard that its number is settled. An attempt without an
    /// answer may still be on its way, for as long as the network and the other process take.
    /// Returns at once if writes have no numbers, and false when the program stops: until its
    /// session ends, such attempts are carried out.
    ///
    /// Call it after a write with [`NoAnswer`](crate::index::Error::NoAnswer), before what the
    /// write needs is given up.
    pub async fn settle(&self, key: RoutingKey) -> bool {
        let Some(numbers) = &self.numbers else { return true };
        let (ended, stopping) = (numbers.next(), self.env.tasks.stopping());
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return false,
                () = self.env.clock.sleep(PAUSE) => {}
            }
            // Others that began before may still be sent.
            if numbers.settled() < ended {
                continue;
            }
            match self.tell(Settle { key: key.clone() }).await {
                Ok(()) => return true,
                Err(error) => tracing::debug!(%error, "a write in doubt is settled later"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::coordinator::Coordinator;
    use crate::coordinator::SimulatedStore;
    use crate::index::Error;
    use crate::index::IndexHost;
    use crate::index::Read;
    use crate::index::ReadReply;
    use crate::index::Target;
    use crate::index::Write;
    use crate::index::WriteNumbers;
    use crate::index::WriteReply;
    use crate::index::api::WriteId;
    use crate::index::client::testing::env;
    use crate::index::client::testing::publish;
    use crate::rpc::NodeIdentity;
    use crate::types::ExtentId;
    use crate::types::Incarnation;
    use crate::types::KeyRange;
    use crate::types::NodeId;

    /// Hears of numbered writes, and does not answer the first ones.
    #[derive(Debug, Default)]
    struct Host {
        heard: Mutex<Vec<WriteId>>,
        silent: Mutex<u32>,
    }

    #[async_trait]
    impl IndexHost for Host {
        async fn read(&self, _: Target, _: Read) -> Result<ReadReply, Error> {
            Err(Error::Overloaded)
        }

        async fn write_shared(&self, _: Target, _: Arc<Write>) -> Result<WriteReply, Error> {
            panic!("all writes have numbers")
        }

        async fn write_once(
            &self,
            _: Target,
            id: WriteId,
            write: Arc<Write>,
        ) -> Result<WriteReply, Error> {
            if !matches!(*write, Write::Settle { .. }) {
                return Err(Error::NoAnswer("cut".to_owned()));
            }
            let mut silent = self.silent.lock().unwrap();
            if *silent > 0 {
                *silent -= 1;
                return Err(Error::Overloaded);
            }
            self.heard.lock().unwrap().push(id);
            Ok(WriteReply::Done)
        }

        async fn owned_extents(&self) -> Vec<ExtentId> {
            Vec::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn write_in_doubt_is_settled_once_its_partition_refuses_it() {
        let env = env();
        let coordinator: Arc<dyn Coordinator> = Arc::new(SimulatedStore::new().open(&env));
        publish(coordinator.as_ref(), (1, 1), KeyRange::all()).await;
        let host = Arc::new(Host::default());
        *host.silent.lock().unwrap() = 3;
        let process = NodeIdentity { node: NodeId::new(3), incarnation: Incarnation::new(9) };
        let numbers = Arc::new(WriteNumbers::new(process));
        let router = Router::new(Arc::clone(&host) as _, coordinator, env.clone()).await.unwrap();
        let router = router.numbering(Some(Arc::clone(&numbers)));
        let key = RoutingKey::min();
        let write = Write::ExpireStaged { key: key.clone(), before: env.clock.now() };
        // One that began before, and may be sent again.
        let earlier = numbers.begin();
        let answer = router.write(write).await;
        assert!(matches!(answer, Err(Error::NoAnswer(_))), "{answer:?}");
        let began = env.clock.monotonic();
        let ending = async {
            env.clock.sleep(PAUSE * 10).await;
            assert!(host.heard.lock().unwrap().is_empty(), "not all before it is settled");
            drop(earlier);
        };
        let (is_settled, ()) = tokio::join!(router.settle(key.clone()), ending);
        assert!(is_settled);
        let heard = host.heard.lock().unwrap().clone();
        let [said] = heard[..] else { panic!("{heard:?}") };
        assert!(said.settled > 2, "1 and 2 are settled: {said:?}");
        assert!(env.clock.monotonic() - began >= PAUSE * 13, "it is said until it is heard");
        *host.silent.lock().unwrap() = u32::MAX;
        let stopping = async {
            env.clock.sleep(PAUSE * 5).await;
            env.tasks.shutdown().await;
        };
        let (is_settled, ()) = tokio::join!(router.settle(key), stopping);
        assert!(!is_settled, "a stop does not settle it");
    }
}
