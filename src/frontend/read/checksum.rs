//! The checksum of a range, for an answer that has it in its head.

use bytes::Bytes;

use crate::frontend::read::BlobSource;
use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::RangeChecksum;
use crate::types::Crc64Hasher;
use crate::types::Md5Hasher;

/// The checksum of all that `source` has. It is read in the steps of any answer, which are paid for
/// and given back one by one: a range of 4 MiB holds no more memory than other answers do. All
/// steps together wait for memory as long as one may. Other tasks of the thread have their turn
/// after each step.
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
