//! MD5 of several messages in parallel. One message is a chain of dependent steps, which leaves
//! most of a processor idle; several messages fill its vector registers.

use md5_many::Md5Many;
use md5_many::Md5State;

use crate::types::Md5;

/// How many messages are hashed in one call, at most.
pub const MD5_BATCH_MAX: usize = 16;
/// Fewer messages than this are hashed one by one: that is as quick.
const BATCH_MIN: usize = 3;
/// A batch of fewer messages is filled up to this number or to [`MD5_BATCH_MAX`], because the
/// library is slow for numbers in between.
const HALF: usize = MD5_BATCH_MAX / 2;

/// The MD5 of a message that is added piece by piece, in batches with others.
#[derive(Clone, Debug, Default)]
pub struct Md5Stream(Md5State);

impl Md5Stream {
    /// Adds bytes to this message alone.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    #[must_use]
    pub fn finish(&self) -> Md5 {
        Md5::from_bytes(self.0.finalize())
    }
}

/// Hashes messages in batches, with the instructions that this processor has.
#[derive(Clone, Copy, Debug)]
pub struct Md5Batch(Md5Many);

impl Md5Batch {
    /// Chooses the instructions. `None` if a digest would differ from [`Md5::of`], another library:
    /// the choice depends on the processor, and tests run on few of them.
    #[must_use]
    pub fn new() -> Option<Self> {
        let batch = Self(Md5Many::new());
        (1..=MD5_BATCH_MAX).all(|messages| batch.agrees(messages)).then_some(batch)
    }

    /// Whether the digests of `messages` messages are right. The library has other code for pieces
    /// of one length that are whole blocks, as those of the first round are.
    fn agrees(self, messages: usize) -> bool {
        let text: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
        let piece = |number: usize, round: usize| match round {
            0 => text.get(number * 64..number * 64 + 192).unwrap_or_default(),
            _ => text.get(number..number + number * 67 + round * 129).unwrap_or_default(),
        };
        let mut streams = vec![Md5Stream::default(); messages];
        for round in 0..3 {
            let pieces = (0..messages).map(|number| piece(number, round));
            self.update(&mut streams.iter_mut().zip(pieces).collect::<Vec<_>>());
        }
        streams.iter().enumerate().all(|(number, stream)| {
            stream.finish() == Md5::of(&[0, 1, 2].map(|round| piece(number, round)).concat())
        })
    }

    /// Adds a piece to each of these messages, at most [`MD5_BATCH_MAX`]. Changes their order and
    /// their pieces.
    ///
    /// # Panics
    /// If there are more messages.
    pub fn update(self, messages: &mut [(&mut Md5Stream, &[u8])]) {
        assert!(messages.len() <= MD5_BATCH_MAX, "at most {MD5_BATCH_MAX} messages in a batch");
        messages.sort_unstable_by_key(|(_, piece)| piece.len());
        let mut rest = messages;
        // All that are left advance together to the end of the shortest, which then leaves.
        while rest.len() >= BATCH_MIN {
            let shortest = rest.first().map_or(0, |(_, piece)| piece.len());
            if shortest > 0 {
                self.step(rest, shortest);
            }
            (_, rest) = rest.split_at_mut(1);
        }
        for (stream, piece) in rest {
            stream.update(piece);
        }
    }

    /// Adds the first `len` bytes of each piece, and leaves the rest of it.
    fn step(self, messages: &mut [(&mut Md5Stream, &[u8])], len: usize) {
        let mut states = [Md5State::new(); MD5_BATCH_MAX];
        let mut inputs: [&[u8]; MD5_BATCH_MAX] = [&[]; MD5_BATCH_MAX];
        // The places that are left over repeat the messages; their states are dropped.
        let repeated = messages.iter().cycle();
        for ((state, input), (stream, piece)) in states.iter_mut().zip(&mut inputs).zip(repeated) {
            (*state, *input) = (stream.0, piece.split_at(len).0);
        }
        let width = if messages.len() <= HALF { HALF } else { MD5_BATCH_MAX };
        self.0.update_many(states.split_at_mut(width).0, inputs.split_at(width).0);
        for ((stream, piece), state) in messages.iter_mut().zip(states) {
            stream.0 = state;
            *piece = piece.split_at(len).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of each message, by round.
    fn messages() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
        let len =
            prop_oneof![Just(0), 0..200_usize, 64..4096_usize, (0..64_usize).prop_map(|n| n * 64)];
        let piece = (len, any::<u8>()).prop_map(|(len, first)| {
            (0..len).map(|at| first.wrapping_add(u8::try_from(at % 251).unwrap())).collect()
        });
        proptest::collection::vec(proptest::collection::vec(piece, 1..4), 1..=MD5_BATCH_MAX)
    }

    proptest! {
        #[test]
        fn a_batch_agrees_with_one_message_after_another(messages in messages()) {
            let batch = Md5Batch::new().expect("the library is right on this processor");
            let mut streams = vec![Md5Stream::default(); messages.len()];
            let rounds = messages.iter().map(Vec::len).max().unwrap_or_default();
            for round in 0..rounds {
                let pieces = messages.iter().map(|pieces| pieces.get(round).map_or(&[][..], Vec::as_slice));
                batch.update(&mut streams.iter_mut().zip(pieces).collect::<Vec<_>>());
            }
            for (stream, pieces) in streams.iter().zip(&messages) {
                prop_assert_eq!(stream.finish(), Md5::of(&pieces.concat()));
            }
        }
    }

    #[test]
    fn long_messages_of_any_number() {
        let batch = Md5Batch::new().expect("the library is right on this processor");
        let text: Vec<u8> =
            (0..200_000_usize).map(|at| u8::try_from(at * at % 253).unwrap()).collect();
        for number in 1..=MD5_BATCH_MAX {
            let mut streams = vec![Md5Stream::default(); number];
            let pieces: Vec<&[u8]> =
                (0..number).map(|at| &text[at..text.len() - at * 4096]).collect();
            batch.update(&mut streams.iter_mut().zip(pieces.iter().copied()).collect::<Vec<_>>());
            for (stream, piece) in streams.iter().zip(pieces) {
                assert_eq!(stream.finish(), Md5::of(piece), "{number} messages");
            }
        }
    }
}
