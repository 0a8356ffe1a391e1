//! Checks the checksums of a completion, and makes that of the blob from those of its parts.
//! Source: S3, "Checking object integrity".
//!
//! Rows of content under a customer-provided key have no plain checksums. They were compared when
//! the parts were uploaded.

use crate::index::api::CompleteUpload;
use crate::index::api::Error;
use crate::index::api::UploadRefusal;
use crate::index::objects::values::Entry;
use crate::index::objects::values::StagedBlock;
use crate::index::record::UploadRecord;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumKind;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::ContentHasher;
use crate::types::Coverage;
use crate::types::Crc64;
use crate::types::UploadChecksum;

/// The checksum of a part by this algorithm; `None` if the row does not have it.
pub(super) fn of_part(part: &StagedBlock, algorithm: ChecksumAlgorithm) -> Option<ContentChecksum> {
    let is_plain = part.content.nonce().is_none();
    if algorithm == ChecksumAlgorithm::Crc64Nvme && is_plain {
        return Some(ChecksumValue::from(part.crc64).of_whole());
    }
    let checksums = part.fields.iter().flat_map(|fields| &fields.checksums);
    checksums.into_iter().find(|checksum| checksum.algorithm == algorithm).cloned()
}

/// Whether a part may have this checksum, which a list names.
pub(super) fn may_have(part: &StagedBlock, named: &ContentChecksum) -> bool {
    let is_plain = part.content.nonce().is_none();
    match of_part(part, named.algorithm) {
        Some(checksum) => checksum == *named,
        None => !is_plain,
    }
}

/// Compares the checksum of all parts with the one that the request gives, and returns it. `None`
/// for encrypted content.
pub(super) fn check(
    upload: &UploadRecord,
    complete: &CompleteUpload,
    entries: &[Entry],
    crc64: Crc64,
) -> Result<Option<ContentChecksum>, Error> {
    let kept = upload.checksum();
    if let Some(kept) = kept.filter(|kept| kept.coverage == Coverage::Composite) {
        let unnamed = complete.parts.iter().find(|part| {
            part.checksum.as_ref().is_none_or(|named| named.algorithm != kept.algorithm)
        });
        if let Some(part) = unnamed {
            return Err(UploadRefusal::NoPartChecksum(part.number.get()).into());
        }
    }
    if entries.iter().any(|entry| entry.content.nonce().is_some()) {
        return Ok(None);
    }
    let of_crc64 = || ChecksumValue::from(crc64).of_whole();
    let whole = match kept.filter(|kept| kept.algorithm != ChecksumAlgorithm::Crc64Nvme) {
        Some(kept) => of_entries(kept, entries)?,
        None => of_crc64(),
    };
    if let Some(given) = &complete.checksum {
        if given.algorithm != whole.algorithm {
            return Err(UploadRefusal::ChecksumKind.into());
        }
        if *given != whole {
            return Err(UploadRefusal::Checksum.into());
        }
    }
    Ok(Some(whole))
}

/// The checksum of all parts.
fn of_entries(kept: UploadChecksum, entries: &[Entry]) -> Result<ContentChecksum, Error> {
    let malformed = || Error::damaged_rows("the checksum of a part has a wrong length");
    let mut digests = ContentHasher::new(kept.algorithm);
    let mut whole: Option<ChecksumValue> = None;
    for entry in entries {
        let checksums = entry.fields.iter().flat_map(|fields| &fields.checksums);
        let found = checksums.into_iter().find(|checksum| checksum.algorithm == kept.algorithm);
        let number = entry.id.as_bytes().try_into().map_or(0, u32::from_be_bytes);
        let found = found.ok_or(UploadRefusal::NoPartChecksum(number))?;
        let value = ChecksumValue::new(kept.algorithm, &found.digest).ok_or_else(malformed)?;
        match kept.coverage {
            Coverage::Composite => digests.update(value.digest()),
            Coverage::FullObject => {
                let joined = match &whole {
                    Some(before) => before.combine(&value, entry.len).ok_or_else(malformed)?,
                    None => value,
                };
                whole = Some(joined);
            }
        }
    }
    match kept.coverage {
        Coverage::Composite => {
            let parts = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            let kind = ChecksumKind::Composite(parts);
            Ok(ContentChecksum { kind, ..digests.finish().of_whole() })
        }
        Coverage::FullObject => whole.map(|whole| whole.of_whole()).ok_or_else(malformed),
    }
}
