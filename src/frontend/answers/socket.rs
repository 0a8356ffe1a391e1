//! A connection that records how fast its client takes the bytes that are sent.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use prometheus_client::metrics::counter::Counter;

use crate::env::Clock;
use crate::env::net::Stream;
use crate::frontend::answers::Flow;
use crate::frontend::layered::Layer;
use crate::frontend::layered::Layered;
use crate::frontend::metrics::ConnectionMetrics;

/// Records the writes to a connection in its flow. A body cannot do that: it is not polled while
/// the send buffer of its connection is full.
pub(crate) struct Writes {
    flow: Arc<Flow>,
    clock: Arc<dyn Clock>,
    /// Whether the last write found the send buffer full.
    full: bool,
    received: Counter,
    sent: Counter,
}

/// A stream whose writes are recorded.
pub(crate) type Paced = Layered<Writes>;

impl fmt::Debug for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writes").field("full", &self.full).finish_non_exhaustive()
    }
}

/// Wraps `stream`: its writes are recorded in `flow`, its bytes in `metrics`.
pub(crate) fn paced(
    stream: Box<dyn Stream>,
    flow: Arc<Flow>,
    clock: Arc<dyn Clock>,
    metrics: &ConnectionMetrics,
) -> Paced {
    let (received, sent) = (metrics.received.clone(), metrics.sent.clone());
    Layered::new(stream, Writes { flow, clock, full: false, received, sent })
}

impl Layer for Writes {
    fn read(&mut self, bytes: &[u8]) {
        self.received.inc_by(bytes.len() as u64);
    }

    /// The clock is read only when the send buffer becomes full or was full.
    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.sent.inc_by(*bytes as u64);
        }
        match written {
            Poll::Pending => {
                if !self.full {
                    self.full = true;
                    self.flow.offer(self.clock.monotonic());
                }
            }
            Poll::Ready(Ok(bytes)) if self.full => {
                self.full = false;
                self.flow.took(*bytes as u64, self.clock.monotonic());
            }
            Poll::Ready(Ok(bytes)) => self.flow.took_more(*bytes as u64),
            Poll::Ready(Err(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::env::SimClock;
    use crate::frontend::answers::Flows;

    #[tokio::test(start_paused = true)]
    async fn time_is_counted_only_while_the_connection_is_full() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let flows = Arc::new(Flows::default());
        let watch = flows.connection();
        let (mut near, far) = tokio::io::duplex(16);
        let (metrics, flow) = (ConnectionMetrics::default(), Arc::clone(watch.flow()));
        let mut stream = paced(Box::new(far), flow, Arc::clone(&clock), &metrics);
        stream.write_all(&[1; 16]).await.unwrap();
        clock.sleep(Duration::from_secs(100)).await;
        assert_eq!(watch.flow().still(clock.monotonic()), None, "nothing more is to be sent");
        let blocked = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&[2; 8])).await;
        assert!(blocked.is_err());
        let still = watch.flow().still(clock.monotonic());
        assert_eq!(still, Some(Duration::from_secs(5)));
        near.read_exact(&mut [0; 16]).await.unwrap();
        stream.write_all(&[2; 8]).await.unwrap();
        assert_eq!(watch.flow().still(clock.monotonic()), None);
        near.write_all(&[3; 5]).await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
        assert_eq!((metrics.sent.get(), metrics.received.get()), (24, 5));
    }
}
