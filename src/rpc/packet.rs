//! Packets: what a connection carries. `api-spec/rpc.md` has the layout.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::types::Crc32c;

/// Bytes before the message of a packet.
pub(super) const HEAD_BYTES: usize = 48;
/// Bytes of the head that its checksum covers, together with the message.
const CHECKED_BYTES: usize = HEAD_BYTES - 4;

/// The most bytes of a message. A block list of 50,000 blocks with long names has 4 MiB.
pub(super) const MESSAGE_BYTES_MAX: u32 = 16 << 20;
/// The most bytes of a payload.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 16 << 20;
/// The most bytes of a message before both sides have said hello.
pub(super) const HELLO_BYTES_MAX: u32 = 1 << 10;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The caller says who it is. The first packet of a connection.
    Hello,
    /// The server's answer to a hello: who it is, and what it grants.
    Welcome,
    /// The server's answer to a hello that it does not accept. The last packet of a connection.
    Unwelcome,
    /// A call.
    Call,
    /// The answer to a call.
    Answer,
    /// The end of a call that was not carried out.
    Refusal,
    /// The end of a call whose outcome is unknown: its task panicked, or the answer is too large.
    Lost,
    /// Nobody waits for the answer to a call.
    Cancel,
    /// A question whether the other side is there.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Welcome => 2,
            Self::Unwelcome => 3,
            Self::Call => 4,
            Self::Answer => 5,
            Self::Refusal => 6,
            Self::Lost => 7,
            Self::Cancel => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Unwelcome,
            4 => Self::Call,
            5 => Self::Answer,
            6 => Self::Refusal,
            7 => Self::Lost,
            8 => Self::Cancel,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }
}

/// The fixed part of a packet, without the lengths of the other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub kind: Kind,
    /// Of a call; else 0.
    pub method: u16,
    /// Number of the call in its connection; 0 in packets that belong to no call.
    pub call: u64,
    /// Of a call: for how long its caller waits. Milliseconds.
    pub time_left_ms: u32,
    /// Of a call: the most bytes of message and payload that its caller takes as the answer.
    pub answer_bytes_max: u32,
    /// Of a call: the id of the client's request that it is a part of; zeros if there is none.
    pub request: [u8; 16],
}

impl Head {
    /// The head of a packet that says nothing but this.
    pub(super) const fn bare(kind: Kind, call: u64) -> Self {
        Self { kind, method: 0, call, time_left_ms: 0, answer_bytes_max: 0, request: [0; 16] }
    }
}

/// The lengths of the other parts, as a head names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub message: u32,
    pub payload: u32,
}

/// A received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub head: Head,
    pub message: Bytes,
    pub payload: Bytes,
}

/// A packet to send.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    /// Head and message.
    pub front: Bytes,
    /// The pieces of the payload.
    pub payload: Vec<Bytes>,
}

impl Outgoing {
    /// A packet without message and payload.
    pub(super) fn bare(kind: Kind, call: u64) -> Self {
        let packet = Draft::new().finish(Head::bare(kind, call), Vec::new());
        // No part is too large.
        packet.unwrap_or_else(|TooLarge| Self { front: Bytes::new(), payload: Vec::new() })
    }

    /// Bytes on the wire.
    pub(super) fn len(&self) -> usize {
        self.front.len() + self.payload.iter().map(Bytes::len).sum::<usize>()
    }
}

/// A message or payload has too many bytes for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// A packet whose message is being written: room for the head, then the message.
#[derive(Debug)]
pub(super) struct Draft(BytesMut);

impl Draft {
    /// Room for a head and a small message.
    pub(super) fn new() -> Self {
        let mut front = BytesMut::with_capacity(4 * HEAD_BYTES);
        front.put_bytes(0, HEAD_BYTES);
        Self(front)
    }

    /// Where the message is written to.
    pub(super) const fn message(&mut self) -> &mut BytesMut {
        &mut self.0
    }

    /// Bytes of the message so far.
    pub(super) fn message_bytes(&self) -> usize {
        self.0.len() - HEAD_BYTES
    }

    /// Whether the packet can be finished with such a payload.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(super) fn fits(&self, payload: &[Bytes]) -> Result<Lengths, TooLarge> {
        Ok(Lengths {
            message: limited(self.message_bytes(), MESSAGE_BYTES_MAX)?,
            payload: limited(payload.iter().map(Bytes::len).sum(), PAYLOAD_BYTES_MAX)?,
        })
    }

    /// The packet.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(super) fn finish(self, head: Head, payload: Vec<Bytes>) -> Result<Outgoing, TooLarge> {
        let fixed = encode(&head, self.fits(&payload)?);
        let Self(mut front) = self;
        front[..CHECKED_BYTES].copy_from_slice(&fixed);
        let check = checksum(&fixed, &front[HEAD_BYTES..]);
        front[CHECKED_BYTES..HEAD_BYTES].copy_from_slice(&check.get().to_le_bytes());
        Ok(Outgoing { front: front.freeze(), payload })
    }
}

fn limited(bytes: usize, max: u32) -> Result<u32, TooLarge> {
    let bytes = u32::try_from(bytes).map_err(|_| TooLarge)?;
    if bytes > max { Err(TooLarge) } else { Ok(bytes) }
}

fn encode(head: &Head, lengths: Lengths) -> [u8; CHECKED_BYTES] {
    let mut bytes = [0; CHECKED_BYTES];
    let mut rest = &mut bytes[..];
    rest.put_u32_le(lengths.message);
    rest.put_u32_le(lengths.payload);
    rest.put_u8(head.kind.code());
    rest.put_u8(0);
    rest.put_u16_le(head.method);
    rest.put_u32_le(head.time_left_ms);
    rest.put_u64_le(head.call);
    rest.put_slice(&head.request);
    rest.put_u32_le(head.answer_bytes_max);
    bytes
}

/// The checksum of a head and its message.
fn checksum(fixed: &[u8], message: &[u8]) -> Crc32c {
    if message.is_empty() {
        return Crc32c::of(fixed);
    }
    Crc32c::of(fixed).combine(Crc32c::of(message), message.len() as u64)
}

/// A head that was read, before its checksum is known to be right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unchecked {
    pub head: Head,
    pub lengths: Lengths,
    fixed: [u8; CHECKED_BYTES],
    check: Crc32c,
}

/// Why bytes are no packet. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

impl Unchecked {
    /// Reads a head.
    ///
    /// # Errors
    /// [`Malformed`] if its kind or a flag is not known, or a part is longer than any may be.
    pub(super) fn read(bytes: &[u8; HEAD_BYTES]) -> Result<Self, Malformed> {
        let (fixed, check) = bytes.split_at(CHECKED_BYTES);
        let fixed: [u8; CHECKED_BYTES] = fixed.try_into().map_err(|_| Malformed("a short head"))?;
        let mut rest = bytes::Buf::chain(&fixed[..], check);
        let rest: &mut dyn bytes::Buf = &mut rest;
        let lengths = Lengths { message: rest.get_u32_le(), payload: rest.get_u32_le() };
        if lengths.message > MESSAGE_BYTES_MAX || lengths.payload > PAYLOAD_BYTES_MAX {
            return Err(Malformed("a part that is too long"));
        }
        let kind = Kind::of(rest.get_u8()).ok_or(Malformed("an unknown kind of packet"))?;
        if rest.get_u8() != 0 {
            return Err(Malformed("an unknown flag"));
        }
        let (method, time_left_ms, call) =
            (rest.get_u16_le(), rest.get_u32_le(), rest.get_u64_le());
        let mut request = [0; 16];
        rest.copy_to_slice(&mut request);
        let answer_bytes_max = rest.get_u32_le();
        let head = Head { kind, method, call, time_left_ms, answer_bytes_max, request };
        Ok(Self { head, lengths, fixed, check: Crc32c::new(rest.get_u32_le()) })
    }

    /// The head, if its checksum is right.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(super) fn checked(&self, message: &[u8]) -> Result<Head, Malformed> {
        if checksum(&self.fixed, message) == self.check {
            Ok(self.head)
        } else {
            Err(Malformed("a wrong checksum"))
        }
    }
}

/// What a call counts for its connection, in bytes. Both sides count alike.
pub(super) fn charge(lengths: Lengths, answer_bytes_max: u32) -> u64 {
    let parts = [lengths.message, lengths.payload, answer_bytes_max];
    2 * HEAD_BYTES as u64 + parts.into_iter().map(u64::from).sum::<u64>()
}

/// The same bytes with the length of the message cut to what is there, and a right checksum. `None`
/// if they are shorter than a head.
pub(super) fn with_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let claimed = u32::from_le_bytes(head.first_chunk().copied()?);
    let message = rest.get(..index(claimed).min(rest.len()))?;
    let length = u32::try_from(message.len()).ok()?;
    let fixed = [&length.to_le_bytes()[..], head.get(4..CHECKED_BYTES)?].concat();
    let check = checksum(&fixed, message);
    Some([&fixed[..], &check.get().to_le_bytes(), rest].concat())
}

/// Lengths and counts in packets have 32 bits, and every machine that this runs on has as many.
pub(super) fn index(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
