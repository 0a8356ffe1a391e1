//! All decoders of connections on arbitrary bytes: the entry of the fuzz target.

#![deny(clippy::indexing_slicing)]

use futures_util::FutureExt;

use super::error::Refusal;
use super::hello::Hello;
use super::hello::Unwelcome;
use super::hello::Welcome;
use super::message::decode;
use super::packet::HEAD_BYTES;
use super::packet::with_checksum;
use super::wire::PacketReader;

/// Decodes `bytes` as packets, as they are and with a right checksum of the first one, and as each
/// message of an introduction. Returns how many decoders took them. Never panics.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let messages = [
        decode::<Hello>(bytes).is_ok(),
        decode::<Welcome>(bytes).is_ok(),
        decode::<Unwelcome>(bytes).is_ok(),
        decode::<Refusal>(bytes).is_ok(),
    ];
    let messages = messages.iter().filter(|taken| **taken).count();
    let corrected = with_checksum(bytes).map_or(0, |corrected| packets_in(&corrected));
    messages + packets_in(bytes) + corrected
}

fn packets_in(bytes: &[u8]) -> usize {
    let mut reader = PacketReader::new(bytes);
    let mut packets = 0;
    // A slice is always ready to be read.
    while let Some(Ok(packet)) = reader.next(|_| Ok(())).now_or_never() {
        let parts = packet.message.len() + packet.payload.len();
        assert!(parts + HEAD_BYTES <= bytes.len(), "a packet of more bytes than there are");
        packets += 1;
    }
    packets
}
