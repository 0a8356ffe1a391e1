//! Joined lookups inside one process, which the product does not have; ADR 0020 says why. (Calls to
//! another process are joined: ADR 0059.) Requests for a key share the answer of the next lookup of
//! this key, the first that began after they arrived.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use blockyard::index::IndexHost;
use blockyard::index::IndexServer;
use blockyard::index::Read;
use blockyard::index::ReadReply;
use blockyard::index::Target;
use bytes::Bytes;
use tokio::sync::oneshot;

/// How lookups are made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Each request looks up by itself.
    Alone,
    /// Requests for the same key share a lookup.
    Joined,
}

/// Lookups in progress by key, and the requests that wait for the next lookup of each.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<Bytes, Vec<oneshot::Sender<Arc<ReadReply>>>>>);

impl Flights {
    /// Looks up, or waits for the request that does.
    pub(crate) async fn read(
        &self,
        host: &IndexServer,
        target: Target,
        read: Read,
    ) -> Arc<ReadReply> {
        let key = read.place().sample().expect("a read of a key");
        let waits = {
            let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match flights.get_mut(&key) {
                Some(next) => {
                    let (answer, answered) = oneshot::channel();
                    next.push(answer);
                    Some(answered)
                }
                None => {
                    flights.insert(key.clone(), Vec::new());
                    None
                }
            }
        };
        if let Some(answered) = waits {
            return answered.await.expect("who looks up answers");
        }
        let own = Arc::new(host.read(target, read.clone()).await.expect("a read"));
        loop {
            let waiting = {
                let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let waiting = flights.get_mut(&key).map(std::mem::take).unwrap_or_default();
                if waiting.is_empty() {
                    flights.remove(&key);
                    return own;
                }
                waiting
            };
            let shared = Arc::new(host.read(target, read.clone()).await.expect("a read"));
            for answer in waiting {
                drop(answer.send(Arc::clone(&shared)));
            }
        }
    }
}
