//! Checksums that a request names.

use super::*;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::ingest::Ingested;
use crate::frontend::ingest::ingest;
use crate::frontend::ingest::ingest_part;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumValue;

const IDLE: Duration = Duration::from_secs(10);
const ALGORITHMS: [ChecksumAlgorithm; 6] = [
    ChecksumAlgorithm::Crc32,
    ChecksumAlgorithm::Crc32c,
    ChecksumAlgorithm::Crc64Nvme,
    ChecksumAlgorithm::Sha1,
    ChecksumAlgorithm::Sha256,
    ChecksumAlgorithm::Md5,
];

async fn received(
    rig: &Rig,
    content: &Bytes,
    checksums: ClaimedChecksums,
) -> Result<Ingested, Refusal> {
    let body = ResponseBody::full(content.clone());
    let mut body = RequestBody::of_source(body, IDLE, rig.env.clone());
    let framing = Framing::Known { len: content.len() as u64 };
    let upload = Upload { framing, md5: None, crc64: None, checksums };
    ingest(&rig.pool, &mut body, &upload, false, None).await
}

fn claimed(value: ChecksumValue) -> ClaimedChecksums {
    ClaimedChecksums { wanted: Some(value.algorithm()), claim: ChecksumClaim::Value(value) }
}

#[tokio::test(start_paused = true)]
async fn a_named_checksum_is_computed_and_compared() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    for len in [0, 100, 1 << 20, (1 << 20) + 1] {
        let content = bytes(len, 5);
        for algorithm in ALGORITHMS {
            let right = ChecksumValue::compute(algorithm, &content);
            let wanted = Some(algorithm);
            let only = ClaimedChecksums { wanted, claim: ChecksumClaim::None };
            for checksums in [only, claimed(right)] {
                let ingested = received(&rig, &content, checksums).await.unwrap();
                assert_eq!(ingested.named, Some(right), "{len} bytes");
            }
            let wrong = ChecksumValue::compute(algorithm, b"other");
            let refused = received(&rig, &content, claimed(wrong)).await.unwrap_err();
            assert_eq!(refused.reason, Reason::ChecksumMismatch, "{len} bytes, {algorithm:?}");
            // This body has no trailers.
            let trailer = ClaimedChecksums { wanted, claim: ChecksumClaim::Trailer };
            let refused = received(&rig, &content, trailer).await.unwrap_err();
            assert_eq!(refused.reason, Reason::IncompleteBody);
        }
        let ingested = received(&rig, &content, ClaimedChecksums::default()).await.unwrap();
        assert_eq!(ingested.named, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_has_a_named_checksum_too() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let content = bytes(1_000, 5);
    let right = ChecksumValue::compute(ChecksumAlgorithm::Crc32, &content);
    let body = ResponseBody::full(content);
    let mut body = RequestBody::of_source(body, IDLE, rig.env.clone());
    let framing = Framing::Known { len: 1_000 };
    let upload = Upload { framing, md5: None, crc64: None, checksums: claimed(right) };
    let ingested = ingest_part(&rig.pool, &mut body, &upload, false, None).await.unwrap();
    assert_eq!(ingested.named, Some(right));
}
