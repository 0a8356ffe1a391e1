//! Any bytes as a structured message: content within the length claimed, or refused; what we encode
//! decodes.
#![no_main]

use std::collections::VecDeque;

use blockyard::protocol::azure::errors::error_row;
use blockyard::protocol::azure::structured::Decoder;
use blockyard::protocol::azure::structured::Encoder;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// The content when the message is taken; the first two bytes choose the claimed length and the
/// cuts.
fn decode(message: &[u8], claimed: u64, step: usize) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(message.len() as u64, claimed);
    let mut content = Vec::new();
    for piece in message.chunks(step) {
        let mut piece = Bytes::copy_from_slice(piece);
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(part)) => content.extend_from_slice(&part),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error_row(error.reason).status, 400);
                    return None;
                }
            }
            assert!(content.len() as u64 <= claimed);
        }
    }
    decoder.finish().ok().map(|()| content)
}

fuzz_target!(|data: &[u8]| {
    let [claimed, step, message @ ..] = data else { return };
    let step = usize::from(*step).max(1);
    if let Some(content) = decode(message, u64::from(*claimed), step) {
        assert_eq!(content.len(), usize::from(*claimed));
    }
    let mut encoder = Encoder::new(message.len() as u64);
    let mut out = VecDeque::new();
    encoder.start(&mut out);
    encoder.push(Bytes::copy_from_slice(message), &mut out);
    let encoded: Vec<u8> = out.into_iter().flatten().collect();
    assert_eq!(encoded.len() as u64, encoder.message_len());
    assert_eq!(decode(&encoded, message.len() as u64, step).as_deref(), Some(message));
});
