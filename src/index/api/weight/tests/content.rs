//! Writes of blocks, pages and uploads.

use super::*;

/// Writes of blocks and pages.
pub(super) fn of_content() -> Vec<(Write, usize)> {
    let (guard, guarded) = long_guard();
    let guarded = guarded + 1_024;
    let guard = || guard.clone();
    let nonce = KeyedNonce { bytes: [0; 16], key_sha256: [0; 32] };
    let stage = StageBlock {
        key: long_key(),
        guard: guard(),
        id: id(0),
        content: NewContent::Encrypted(nonce, Box::new(inline())),
        crc64: Crc64::EMPTY,
    };
    let append = AppendBlock {
        key: long_key(),
        guard: guard(),
        position: None,
        len_max: None,
        content: inline(),
        crc64: Crc64::EMPTY,
    };
    let write = WritePages {
        key: long_key(),
        guard: guard(),
        sequence: SequenceBounds::default(),
        range: 0..512,
        content: Some(inline()),
    };
    let update = UpdatePages {
        key: long_key(),
        guard: guard(),
        properties: Some(long_properties()),
        len: None,
        sequence: None,
    };
    vec![
        (Write::StageBlock(stage), guarded + LONG + 64),
        (Write::AppendBlock(append), guarded + LONG),
        (Write::WritePages(write), guarded + LONG),
        (Write::UpdatePages(update), guarded + 2 * LONG),
    ]
}

/// Writes of uploads in parts.
pub(super) fn of_uploads() -> Vec<(Write, usize)> {
    let upload = UploadId::from_bytes([7; 16]);
    let number = |n| PartNumber::new(n).unwrap();
    let checksum = || ContentChecksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::FullObject,
        digest: vec![0; 32].into(),
    };
    let start = StartUpload {
        lock: LockClaim::default(),
        key: long_key(),
        id: upload,
        properties: long_properties(),
        metadata: metadata(8_000),
        tags: tags(),
        tier: Some(AccessTier::Cool),
        encryption: EncryptionClaim::Given(Some(Encryption::Scope("scope".to_owned()))),
        checksum: UploadChecksum::new(ChecksumAlgorithm::Sha256, None),
        object: Some(Box::new(ObjectProperties {
            owner: Some(long()),
            ..ObjectProperties::default()
        })),
        initiator: Some(long()),
    };
    let stage = StagePart {
        key: long_key(),
        upload,
        number: number(7),
        encryption: EncryptionClaim::Given(None),
        content: inline(),
        crc64: Crc64::EMPTY,
        checksums: vec![checksum()],
    };
    let part = |n| NamedPart {
        number: number(n),
        tag: ContentEtag::md5(Md5::of(b"")),
        checksum: Some(checksum()),
    };
    let complete = CompleteUpload {
        key: long_key(),
        upload,
        guard: Guard::default(),
        parts: (1..=10_000).map(part).collect(),
        part_len_min: 1,
        len: Some(1),
        checksum: Some(checksum()),
        coverage: Some(Coverage::Composite),
    };
    let of_start = size_of::<StartUpload>() + 1_024 + 4 * LONG + 8_000 + 10 * (128 + 256);
    vec![
        (Write::StartUpload(Box::new(start)), of_start),
        (Write::StagePart(stage), 1_024 + LONG),
        (Write::CompleteUpload(Box::new(complete)), 10_000 * (size_of::<NamedPart>() + 32)),
        (Write::AbortUpload(AbortUpload { key: long_key(), upload }), 1_024),
    ]
}
