//! Pieces of several messages, hashed in batches: each digest is that of the message hashed alone.
#![no_main]

use std::sync::OnceLock;

use blockyard::types::MD5_BATCH_MAX;
use blockyard::types::Md5;
use blockyard::types::Md5Batch;
use blockyard::types::Md5Stream;
use libfuzzer_sys::fuzz_target;

static BATCH: OnceLock<Md5Batch> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let [messages, rounds, text @ ..] = data else { return };
    let messages = usize::from(*messages) % MD5_BATCH_MAX + 1;
    let batch = BATCH.get_or_init(|| Md5Batch::new().expect("the library is right on this processor"));
    let mut streams = vec![Md5Stream::default(); messages];
    let mut whole = vec![Vec::new(); messages];
    for round in 0..usize::from(*rounds % 4) + 1 {
        // Lengths and contents are taken from the input. Each piece is an allocation of its own, so
        // that a sanitizer sees a read beyond its end.
        let pieces: Vec<Box<[u8]>> = (0..messages)
            .map(|number| {
                let at = (number * 31 + round * 17) % text.len().max(1);
                let len = text.get(at).map_or(0, |byte| usize::from(*byte) * (number + 1) / 2);
                text.iter().copied().cycle().skip(at).take(if text.is_empty() { 0 } else { len }).collect()
            })
            .collect();
        batch.update(&mut streams.iter_mut().zip(pieces.iter().map(|piece| &**piece)).collect::<Vec<_>>());
        for (whole, piece) in whole.iter_mut().zip(&pieces) {
            whole.extend_from_slice(piece);
        }
    }
    for (stream, whole) in streams.iter().zip(&whole) {
        assert_eq!(stream.finish(), Md5::of(whole));
    }
});
