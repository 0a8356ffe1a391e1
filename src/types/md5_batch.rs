//! MD5 of several messages at once. One message is a chain of dependent steps, which leaves most of
//! a processor idle; several messages fill its vector registers.

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

    /// Whether the digests of so many messages are right.
    fn agrees(self, messages: usize) -> bool {
        let text: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
        let pieces = |turn| (1..=messages).map(move |number| (number * 67 + turn * 129, turn));
        let mut streams = vec![Md5Stream::default(); messages];
        for turn in 1..=2 {
            let added = pieces(turn).filter_map(|(len, from)| text.get(from..from + len));
            self.update(&mut streams.iter_mut().zip(added).collect::<Vec<_>>());
        }
        streams.iter().zip(pieces(1)).zip(pieces(2)).all(|((stream, first), second)| {
            let part = |(len, from)| text.get(from..from + len).unwrap_or_default();
            stream.finish() == Md5::of(&[part(first), part(second)].concat())
        })
    }

    /// Adds a piece to each of these messages, at most [`MD5_BATCH_MAX`]. Changes their order.
    ///
    /// # Panics
    /// If there are more messages.
    pub fn update(self, messages: &mut [(&mut Md5Stream, &[u8])]) {
        assert!(messages.len() <= MD5_BATCH_MAX, "at most {MD5_BATCH_MAX} messages in a batch");
        messages.sort_unstable_by_key(|(_, piece)| piece.len());
        // All that have not ended advance together to the end of the shortest.
        let mut done = 0;
        for ended in 0..messages.len() {
            let Some(rest) = messages.get_mut(ended..) else { return };
            if rest.len() < BATCH_MIN {
                for (stream, piece) in rest {
                    stream.update(piece.get(done..).unwrap_or_default());
                }
                return;
            }
            let end = rest.first().map_or(done, |(_, shortest)| shortest.len());
            if end > done {
                self.step(rest, done, end);
                done = end;
            }
        }
    }

    /// Adds the bytes from `start` to `end` of each piece.
    fn step(self, messages: &mut [(&mut Md5Stream, &[u8])], start: usize, end: usize) {
        let mut states = [Md5State::new(); MD5_BATCH_MAX];
        let mut inputs: [&[u8]; MD5_BATCH_MAX] = [&[]; MD5_BATCH_MAX];
        // The places that are left over repeat the messages; their states are dropped.
        let repeated = messages.iter().cycle();
        for ((state, input), (stream, piece)) in states.iter_mut().zip(&mut inputs).zip(repeated) {
            *state = stream.0;
            *input = piece.get(start..end).unwrap_or_default();
        }
        let width = if messages.len() <= HALF { HALF } else { MD5_BATCH_MAX };
        let ([half, ..], [half_of_inputs, ..]) =
            (states.as_chunks_mut::<HALF>().0, inputs.as_chunks::<HALF>().0)
        else {
            return;
        };
        if width == HALF {
            self.0.update_many(half, half_of_inputs);
        } else {
            self.0.update_many(&mut states, &inputs);
        }
        for ((stream, _), state) in messages.iter_mut().zip(states) {
            stream.0 = state;
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
