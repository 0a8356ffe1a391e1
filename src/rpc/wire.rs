//! Packets over a byte stream. Payloads are not copied, except for what was read together with the
//! message.

use std::io;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use bytes::Buf;
use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;
use thiserror::Error as ThisError;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::packet::HEAD_BYTES;
use super::packet::Lengths;
use super::packet::Malformed;
use super::packet::Outgoing;
use super::packet::Packet;
use super::packet::Unchecked;
use super::packet::index;

/// Bytes that are read at once. A payload that fits is a slice of this buffer.
const READ_BYTES: usize = 32 << 10;
/// Room in the buffer without which nothing is read.
const READ_BYTES_MIN: usize = 4 << 10;
/// A payload that is so short is copied.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// A longer part gets a buffer of its own.
const OWN_BUFFER_BYTES: usize = READ_BYTES / 2;
/// Packets that are written with one call of the system.
const BATCH: usize = 32;
/// Pieces that one call of the system takes.
const SLICES: usize = 64;

/// Why no packet follows.
#[derive(Debug, ThisError)]
pub(super) enum ReadError {
    /// The stream ended between two packets.
    #[error("the other side closed the connection")]
    Closed,
    /// The stream failed, or ended in a packet.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What arrived is no packet.
    #[error("{0} arrived")]
    Malformed(&'static str),
}

impl From<Malformed> for ReadError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

/// Counts what a connection has moved, in any unit: while it grows, the other side is there. Cheap
/// to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads packets.
#[derive(Debug)]
pub(super) struct PacketReader<S> {
    stream: S,
    buffer: BytesMut,
    progress: Progress,
}

impl<S: AsyncRead + Unpin> PacketReader<S> {
    pub(super) fn new(stream: S) -> Self {
        let buffer = BytesMut::with_capacity(READ_BYTES);
        Self { stream, buffer, progress: Progress::default() }
    }

    /// Grows with each read, so that a long packet is no silence.
    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The stream. What was read already is lost.
    #[cfg(test)]
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// The next packet, if `accept` takes its head and lengths. Not cancel safe. A packet that is
    /// not accepted ends the connection before memory for it is taken.
    ///
    /// # Errors
    /// [`ReadError`]; the stream cannot be read any further.
    pub(super) async fn next(
        &mut self,
        accept: impl FnOnce(&Unchecked) -> Result<(), Malformed>,
    ) -> Result<Packet, ReadError> {
        if self.buffer.is_empty() && self.fill().await? == 0 {
            return Err(ReadError::Closed);
        }
        self.fill_to(HEAD_BYTES).await?;
        let mut head = [0; HEAD_BYTES];
        self.buffer.copy_to_slice(&mut head);
        let unchecked = Unchecked::read(&head)?;
        accept(&unchecked)?;
        let Lengths { message, payload } = unchecked.lengths;
        let message = self.take(index(message)).await?;
        let head = unchecked.checked(&message)?;
        let mut payload = self.take(index(payload)).await?;
        if payload.len() <= COPIED_BYTES_MAX {
            // Its owner may keep it for long, and with it the whole buffer.
            payload = Bytes::copy_from_slice(&payload);
        }
        Ok(Packet { head, message, payload })
    }

    /// The next bytes, in one piece.
    async fn take(&mut self, bytes: usize) -> Result<Bytes, ReadError> {
        if bytes <= OWN_BUFFER_BYTES {
            self.fill_to(bytes).await?;
            return Ok(self.buffer.split_to(bytes).freeze());
        }
        let mut own = BytesMut::with_capacity(bytes);
        own.put(self.buffer.split_to(bytes.min(self.buffer.len())));
        while own.len() < bytes {
            let rest = bytes - own.len();
            if self.stream.read_buf(&mut (&mut own).limit(rest)).await? == 0 {
                return Err(ended());
            }
            self.progress.note();
        }
        Ok(own.freeze())
    }

    async fn fill_to(&mut self, bytes: usize) -> Result<(), ReadError> {
        while self.buffer.len() < bytes {
            if self.fill().await? == 0 {
                return Err(ended());
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<usize> {
        // If packets still hold parts of the buffer, this makes another one of its first size.
        self.buffer.reserve(READ_BYTES_MIN);
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.progress.note();
        Ok(read)
    }
}

fn ended() -> ReadError {
    ReadError::Io(io::ErrorKind::UnexpectedEof.into())
}

/// Writes what is queued until the queue is closed and empty. `prepare` makes a packet of what is
/// queued, just before it is written, or nothing. Packets that wait together are written together.
/// `progress` grows while the other side takes what did not fit into the buffers of this machine.
///
/// # Errors
/// The stream's.
pub(super) async fn write_queued<Q>(
    stream: &mut (impl AsyncWrite + Unpin),
    queue: &mut mpsc::Receiver<Q>,
    mut prepare: impl FnMut(Q) -> Option<Outgoing>,
    progress: &Progress,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let pieces = batch.drain(..).filter_map(&mut prepare).flat_map(pieces_of);
        write_pieces(stream, pieces, progress).await?;
        if queue.is_empty() {
            stream.flush().await?;
        }
    }
    Ok(())
}

/// Writes one packet.
///
/// # Errors
/// The stream's.
pub(super) async fn write_packet(
    stream: &mut (impl AsyncWrite + Unpin),
    packet: Outgoing,
) -> io::Result<()> {
    write_pieces(stream, pieces_of(packet), &Progress::default()).await?;
    stream.flush().await
}

fn pieces_of(packet: Outgoing) -> impl Iterator<Item = Bytes> {
    std::iter::once(packet.front).chain(packet.payload).filter(|piece| !piece.is_empty())
}

async fn write_pieces(
    stream: &mut (impl AsyncWrite + Unpin),
    mut pieces: impl Iterator<Item = Bytes>,
    progress: &Progress,
) -> io::Result<()> {
    loop {
        let mut held: Vec<Bytes> = pieces.by_ref().take(SLICES).collect();
        if held.is_empty() {
            return Ok(());
        }
        let (mut rest, mut is_going_on) = (&mut held[..], false);
        while !rest.is_empty() {
            let slices: Vec<IoSlice<'_>> = rest.iter().map(|piece| IoSlice::new(piece)).collect();
            let written = stream.write_vectored(&slices).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = advanced(rest, written);
            // The first write only fills a buffer of this machine.
            if is_going_on {
                progress.note();
            }
            is_going_on = true;
        }
    }
}

/// What is left of these pieces after some bytes of them were written.
fn advanced(pieces: &mut [Bytes], mut written: usize) -> &mut [Bytes] {
    let whole = pieces.iter().take_while(|piece| {
        let is_whole = piece.len() <= written;
        if is_whole {
            written -= piece.len();
        }
        is_whole
    });
    let whole = whole.count();
    let (_, rest) = pieces.split_at_mut(whole);
    if let Some(first) = rest.first_mut() {
        first.advance(written);
    }
    rest
}

#[cfg(test)]
mod tests;
