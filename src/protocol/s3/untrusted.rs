//! Runs the decoders of documents about tags and settings on arbitrary bytes. The fuzz target calls
//! it.

use crate::protocol::s3::cors;
use crate::protocol::s3::errors::error_row;
use crate::protocol::s3::locks;
use crate::protocol::s3::tagging;

/// Parses `bytes` as each kind of document, and returns how many accepted them.
///
/// # Panics
/// When a refusal is not the client's fault: a fault of this program.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let results = [
        tagging::read(bytes).and_then(tagging::of_object).map(drop),
        tagging::read(bytes).and_then(tagging::of_bucket).map(drop),
        cors::read(bytes).map(drop),
        locks::read_retention(bytes).map(drop),
        locks::read_legal_hold(bytes).map(drop),
        locks::read_configuration(bytes).map(drop),
    ];
    for refusal in results.iter().filter_map(|result| result.as_ref().err()) {
        assert_eq!(error_row(refusal.reason).status, 400, "{refusal:?}");
    }
    results.iter().filter(|result| result.is_ok()).count()
}
