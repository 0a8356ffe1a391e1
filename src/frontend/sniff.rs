//! Detects the protocol of a connection from its first bytes: TLS, HTTP/2 with prior knowledge, or
//! HTTP/1.

#![deny(clippy::indexing_slicing)]

use std::fmt;
use std::io;

use tokio::io::AsyncReadExt;
use tokio::io::ReadBuf;

use crate::env::net::Stream;
use crate::frontend::layered::Layer;
use crate::frontend::layered::Layered;

/// The first bytes of HTTP/2 connections (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The type of the first record of a TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// The protocol of the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// A TLS handshake.
    Tls,
    /// HTTP/2.
    Http2,
    /// Anything else: the parser of HTTP/1 refuses other protocols.
    Http1,
}

/// The first bytes of a stream, which are read again.
pub(crate) struct FirstBytes {
    bytes: [u8; PREFACE.len()],
    len: usize,
    read: usize,
}

/// A stream that begins with its first bytes again.
pub(crate) type Rewound = Layered<FirstBytes>;

/// A stream whose protocol is known.
#[derive(Debug)]
pub(super) struct Sniffed {
    pub(super) protocol: Protocol,
    pub(super) stream: Rewound,
}

impl fmt::Debug for FirstBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstBytes({} of {} bytes left)", self.len - self.read, self.len)
    }
}

impl Layer for FirstBytes {
    fn read_first(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let left = self.bytes.get(self.read..self.len).unwrap_or_default();
        let n = left.len().min(buf.remaining());
        buf.put_slice(left.get(..n).unwrap_or_default());
        self.read += n;
        n > 0
    }
}

/// Waits for as many bytes as are needed; `None` when the client disconnects without sending any.
///
/// # Errors
/// The stream's.
pub(super) async fn sniff(mut stream: Box<dyn Stream>) -> io::Result<Option<Sniffed>> {
    let mut bytes = [0; PREFACE.len()];
    let mut len = 0;
    let protocol = loop {
        let read = stream.read(bytes.get_mut(len..).unwrap_or_default()).await?;
        len += read;
        let seen = bytes.get(..len).unwrap_or_default();
        match seen.first() {
            None => return Ok(None),
            Some(&HANDSHAKE) => break Protocol::Tls,
            Some(_) if !PREFACE.starts_with(seen) || read == 0 => break Protocol::Http1,
            Some(_) if len == PREFACE.len() => break Protocol::Http2,
            Some(_) => {}
        }
    };
    let stream = Layered::new(stream, FirstBytes { bytes, len, read: 0 });
    Ok(Some(Sniffed { protocol, stream }))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn sniffed(pieces: &[&[u8]]) -> (Option<Protocol>, Vec<u8>) {
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
                Some(Sniffed { protocol, mut stream }) => {
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all).await.unwrap();
                    (Some(protocol), all)
                }
            }
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test]
    async fn first_bytes_tell_and_are_read_again() {
        let cases: [(&[&[u8]], Protocol); 7] = [
            (&[b"\x16\x03\x01", b"\x00\x05hello"], Protocol::Tls),
            (&[PREFACE, b"frames"], Protocol::Http2),
            (&[b"PRI * HT", b"TP/2.0\r\n\r\nSM\r\n\r\nframes"], Protocol::Http2),
            (&[b"P", b"UT /acct/c/b HTTP/1.1\r\n"], Protocol::Http1),
            (&[b"GET / HTTP/1.1\r\n\r\n"], Protocol::Http1),
            (&[b"PRI * HTTP/2"], Protocol::Http1),
            (&[b"\x00\x01"], Protocol::Http1),
        ];
        for (pieces, expected) in cases {
            assert_eq!(sniffed(pieces).await, (Some(expected), pieces.concat()), "{pieces:?}");
        }
        assert_eq!(sniffed(&[]).await, (None, Vec::new()));
    }
}
