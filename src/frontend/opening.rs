//! The start of a connection: its first byte and its TLS handshake, each with a time limit.

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::env::Clock;
use crate::env::net::Stream;
use crate::frontend::sniff::Rewound;
use crate::frontend::sniff::Sniffed;
use crate::frontend::sniff::sniff;
use crate::frontend::tls::Alpn;
use crate::frontend::tls::Tls;

pub(crate) use crate::frontend::sniff::Protocol;

/// How connections of one listener start.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The certificate, when there is one.
    pub(crate) tls: Option<Tls>,
    /// The protocols that TLS clients are offered.
    pub(crate) alpn: Alpn,
    /// How long a connection may be silent, before and after a handshake.
    pub(crate) first_byte: Duration,
    /// How long a handshake may take.
    pub(crate) handshake: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// When the last warning about a client that tried TLS was logged.
    pub(crate) tls_warned_at: Mutex<Option<Duration>>,
}

/// At most one such line is written in this time.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// A connection whose first bytes have arrived.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The protocol of the first bytes; with TLS, that of the first bytes inside it.
    pub(crate) protocol: Protocol,
    /// Whether the connection is TLS.
    pub(crate) secure: bool,
    /// The connection, from its first byte on.
    pub(crate) stream: Rewound,
}

impl Opening {
    /// Waits for the first bytes. `None` when the client disconnects before it sends any.
    ///
    /// # Errors
    /// A time limit is exceeded, the handshake fails, or the stream does.
    pub(crate) async fn open(&self, stream: Box<dyn Stream>) -> io::Result<Option<Opened>> {
        let first = self.within(self.first_byte, sniff(stream)).await?;
        let Some(Sniffed { protocol, stream }) = first else { return Ok(None) };
        if protocol != Protocol::Tls {
            return Ok(Some(Opened { protocol, secure: false, stream }));
        }
        let Some(tls) = &self.tls else {
            self.warn_of_tls();
            return Err(io::Error::other(
                "the client speaks TLS and this server has no certificate: start it with --tls auto",
            ));
        };
        // Boxed: the state of a handshake is large, and most connections have none.
        let shaking = Box::pin(tls.accept(stream, self.alpn));
        let secured = self.within(self.handshake, shaking).await?;
        let first = self.within(self.first_byte, sniff(Box::new(secured))).await?;
        Ok(first.map(|Sniffed { protocol, stream }| Opened { protocol, secure: true, stream }))
    }

    /// Warns the operator, once a minute, that a client expects TLS on a port without TLS. The
    /// client itself only sees that the connection ends.
    fn warn_of_tls(&self) {
        let now = self.clock.monotonic();
        let mut last = self.tls_warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now.saturating_sub(last) < WARN_EVERY) {
            return;
        }
        *last = Some(now);
        tracing::warn!(
            "a client speaks https to a port that has no certificate: give it an http:// address, \
             or start the server with --tls auto"
        );
    }

    async fn within<T>(
        &self,
        time: Duration,
        step: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        tokio::select! {
            biased;
            done = step => done,
            () = self.clock.sleep(time) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::env::SimClock;
    use crate::telemetry::CapturedLog;

    fn opening() -> Opening {
        Opening {
            tls: None,
            alpn: Alpn::Http1,
            first_byte: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            clock: Arc::new(SimClock::new()),
            tls_warned_at: Mutex::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_connection_has_its_time_and_no_more() {
        let opening = opening();
        let (_silent, far) = tokio::io::duplex(64);
        let error = opening.open(Box::new(far)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(opening.clock.monotonic(), opening.first_byte);
    }

    #[tokio::test(start_paused = true)]
    async fn first_byte_in_time_opens() {
        let opening = opening();
        let (mut near, far) = tokio::io::duplex(64);
        let late = async {
            opening.clock.sleep(opening.first_byte - Duration::from_millis(1)).await;
            near.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        };
        let (opened, ()) = tokio::join!(opening.open(Box::new(far)), late);
        let opened = opened.unwrap().unwrap();
        assert_eq!((opened.protocol, opened.secure), (Protocol::Http1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn tls_without_a_certificate_is_refused() {
        let opening = opening();
        let (mut near, far) = tokio::io::duplex(64);
        near.write_all(b"\x16\x03\x01").await.unwrap();
        let error = opening.open(Box::new(far)).await.unwrap_err();
        assert!(error.to_string().contains("--tls auto"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn https_to_a_plain_port_is_logged_once_a_minute() {
        let log = CapturedLog::default();
        let _lines = log.begin();
        let opening = opening();
        let hello = async || {
            let (mut near, far) = tokio::io::duplex(64);
            near.write_all(&[0x16, 3, 1]).await.unwrap();
            opening.open(Box::new(far)).await.unwrap_err();
        };
        hello().await;
        hello().await;
        assert_eq!(log.lines_with(&["WARN", "speaks https", "--tls auto"]), 1, "{}", log.text());
        opening.clock.sleep(Duration::from_secs(61)).await;
        hello().await;
        assert_eq!(log.lines_with(&["WARN", "speaks https"]), 2);
    }
}
