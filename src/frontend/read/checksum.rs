//! The checksum of a range, for the head of an answer.

use bytes::Bytes;

use crate::frontend::read::BlobSource;
use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::RangeChecksum;
use crate::types::Crc64Hasher;
use crate::types::Md5Hasher;

/// The checksum of all bytes of `source`. They are read in the steps of an answer, each of which
/// takes its memory and gives it back, so a range of 4 MiB holds no more memory than other answers.
/// All steps together wait for memory no longer than one may. The task yields after each step.
pub(crate) async fn checksum(
    mut source: BlobSource,
    kind: RangeChecksum,
) -> Result<BodyChecksum, Refusal> {
    let (mut md5, mut crc64) = (Md5Hasher::default(), Crc64Hasher::default());
    let mut update = |bytes: &Bytes| match kind {
        RangeChecksum::Md5 => md5.update(bytes),
        RangeChecksum::Crc64 => crc64.update(bytes),
    };
    while let Some(pieces) = source.before_head().await? {
        pieces.iter().for_each(&mut update);
        drop(pieces);
        tokio::task::yield_now().await;
    }
    Ok(match kind {
        RangeChecksum::Md5 => BodyChecksum::Md5(md5.finish()),
        RangeChecksum::Crc64 => BodyChecksum::Crc64(crc64.finish()),
    })
}

#[cfg(test)]
mod tests;
