//! Checks the checksums of a completion, and makes that of the blob from those of its parts.

use bytes::Bytes;

use crate::index::api::CompleteUpload;
use crate::index::api::Error;
use crate::index::api::UploadRefusal;
use crate::index::objects::values::Entry;
use crate::index::objects::values::StagedBlock;
use crate::index::record::UploadRecord;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ContentChecksum;
use crate::types::Coverage;
use crate::types::Crc64;
use crate::types::PartChecksum;
use crate::types::UploadChecksum;

/// The CRC-64/NVME of each row, as a checksum of content.
pub(super) fn of_crc64(crc64: Crc64) -> ContentChecksum {
    let mut bytes = crc64.to_le_bytes();
    bytes.reverse();
    ContentChecksum {
        algorithm: ChecksumAlgorithm::Crc64Nvme,
        kind: ChecksumKind::FullObject,
        digest: Bytes::copy_from_slice(&bytes),
    }
}

/// Whether a part has this checksum.
pub(super) fn has(part: &StagedBlock, named: &ContentChecksum) -> bool {
    if named.algorithm == ChecksumAlgorithm::Crc64Nvme && part.content.nonce().is_none() {
        return *named == of_crc64(part.crc64);
    }
    part.fields.as_ref().is_some_and(|fields| fields.checksums.contains(named))
}

/// Compares the checksum of all parts with the one that the request gives. Returns the checksums for
/// the row of the blob; a CRC-64/NVME is there already.
pub(super) fn check(
    upload: &UploadRecord,
    complete: &CompleteUpload,
    entries: &[Entry],
    crc64: Crc64,
) -> Result<Vec<ContentChecksum>, Error> {
    let by_key = entries.iter().any(|entry| entry.content.nonce().is_some());
    let kept = upload.checksum();
    if let Some(kept) = kept.filter(|kept| kept.coverage == Coverage::Composite) {
        let unnamed = complete.parts.iter().find(|part| {
            part.checksum.as_ref().is_none_or(|named| named.algorithm != kept.algorithm)
        });
        if let Some(part) = unnamed {
            return Err(UploadRefusal::NoPartChecksum(part.number.get()).into());
        }
    }
    let whole = match kept {
        Some(kept) if kept.algorithm != ChecksumAlgorithm::Crc64Nvme => {
            Some(of_entries(kept, entries)?)
        }
        // The checksum of encrypted content is not in the row.
        Some(_) | None => (!by_key).then(|| of_crc64(crc64)),
    };
    if let (Some(given), Some(whole)) = (&complete.checksum, &whole) {
        if given.algorithm != whole.algorithm {
            return Err(UploadRefusal::ChecksumKind.into());
        }
        if given != whole {
            return Err(UploadRefusal::Checksum.into());
        }
    }
    let is_in_row = |whole: &ContentChecksum| whole.algorithm == ChecksumAlgorithm::Crc64Nvme;
    Ok(whole.into_iter().filter(|whole| !is_in_row(whole)).collect())
}

/// The checksum of all parts.
fn of_entries(kept: UploadChecksum, entries: &[Entry]) -> Result<ContentChecksum, Error> {
    let mut parts = Vec::with_capacity(entries.len());
    for entry in entries {
        let checksums = entry.fields.iter().flat_map(|fields| &fields.checksums);
        let found = checksums.into_iter().find(|checksum| checksum.algorithm == kept.algorithm);
        let number = entry.id.as_bytes().try_into().map_or(0, u32::from_be_bytes);
        let found = found.ok_or(UploadRefusal::NoPartChecksum(number))?;
        parts.push(PartChecksum { len: entry.len, digest: found.digest.clone() });
    }
    let whole = kept.of_parts(&parts);
    whole.ok_or_else(|| Error::damaged_rows("the checksum of a part has a wrong length"))
}
