//! What a client speaks, told by its first bytes: TLS, HTTP/2 with prior knowledge, or HTTP/1.

use std::fmt;
use std::io;

use tokio::io::AsyncReadExt;
use tokio::io::ReadBuf;

use crate::env::net::Stream;
use crate::frontend::layered::Layer;
use crate::frontend::layered::Layered;

/// What HTTP/2 connections begin with (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The record type a TLS handshake begins with (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// A TLS handshake.
    Tls,
    /// HTTP/2.
    Http2,
    /// Anything else: HTTP/1's parser answers for it.
    Http1,
}

/// The first bytes of a stream, which were looked at and will be read again.
pub(crate) struct Seen {
    bytes: [u8; PREFACE.len()],
    len: usize,
    read: usize,
}

/// A stream whose first bytes were looked at.
pub(crate) type Rewound = Layered<Seen>;

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen({} of {} bytes left)", self.len - self.read, self.len)
    }
}

impl Layer for Seen {
    fn read_first(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let left = &self.bytes[self.read..self.len];
        let n = left.len().min(buf.remaining());
        buf.put_slice(&left[..n]);
        self.read += n;
        n > 0
    }
}

/// Waits for as many bytes as it takes to tell; `None` when the client left without sending any.
///
/// # Errors
/// The stream's.
pub(super) async fn sniff(mut stream: Box<dyn Stream>) -> io::Result<Option<(Speaks, Rewound)>> {
    let mut seen = [0; PREFACE.len()];
    let mut len = 0;
    let speaks = loop {
        let read = stream.read(&mut seen[len..]).await?;
        len += read;
        if len == 0 {
            return Ok(None);
        }
        if seen[0] == HANDSHAKE {
            break Speaks::Tls;
        }
        if seen[..len] != PREFACE[..len] || read == 0 {
            break Speaks::Http1;
        }
        if len == PREFACE.len() {
            break Speaks::Http2;
        }
    };
    Ok(Some((speaks, Layered::new(stream, Seen { bytes: seen, len, read: 0 }))))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn told(pieces: &[&[u8]]) -> (Option<Speaks>, Vec<u8>) {
        let (mut near, far) = tokio::io::duplex(64);
        let sending = async {
            for piece in pieces {
                near.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(near);
        };
        let reading = async {
            match sniff(Box::new(far)).await.unwrap() {
                None => (None, Vec::new()),
                Some((speaks, mut stream)) => {
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all).await.unwrap();
                    (Some(speaks), all)
                }
            }
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test]
    async fn first_bytes_tell_and_are_read_again() {
        let cases: [(&[&[u8]], Speaks); 7] = [
            (&[b"\x16\x03\x01", b"\x00\x05hello"], Speaks::Tls),
            (&[PREFACE, b"frames"], Speaks::Http2),
            (&[b"PRI * HT", b"TP/2.0\r\n\r\nSM\r\n\r\nframes"], Speaks::Http2),
            (&[b"P", b"UT /acct/c/b HTTP/1.1\r\n"], Speaks::Http1),
            (&[b"GET / HTTP/1.1\r\n\r\n"], Speaks::Http1),
            (&[b"PRI * HTTP/2"], Speaks::Http1),
            (&[b"\x00\x01"], Speaks::Http1),
        ];
        for (pieces, expected) in cases {
            assert_eq!(told(pieces).await, (Some(expected), pieces.concat()), "{pieces:?}");
        }
        assert_eq!(told(&[]).await, (None, Vec::new()));
    }
}
