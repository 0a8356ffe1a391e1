//! Bodies whose length is not known before they end.

use super::*;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::ingest::Ingested;
use crate::frontend::ingest::ingest;
use crate::frontend::ingest::ingest_pages;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::Crc64;
use crate::types::CustomerKey;

const IDLE: Duration = Duration::from_secs(10);
const LEN_MAX: usize = 3 << 20;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn open() -> Upload {
    Upload {
        framing: Framing::Open { len_max: LEN_MAX as u64 },
        md5: None,
        crc64: None,
        checksums: ClaimedChecksums::default(),
    }
}

async fn received(rig: &Rig, content: &Bytes, key: bool) -> Result<Ingested, Refusal> {
    let body = ResponseBody::full(content.clone());
    let mut body = RequestBody::of_source(body, IDLE, rig.env.clone());
    let key = key.then(|| CustomerKey::from_base64(KEY).unwrap());
    let encrypting = Encrypting::new(&rig.env, key.as_ref());
    ingest(&rig.pool, &mut body, &open(), false, encrypting).await
}

#[tokio::test(start_paused = true)]
async fn open_body_of_any_length_is_stored_and_gives_its_memory_back() {
    let config = WriteConfig { body_bytes_max: 8 << 20, ..WriteConfig::default() };
    let rig = rig(64 << 20, config).await;
    for len in [0, 1, 4096, 4097, 1 << 20, (1 << 20) + 1, LEN_MAX] {
        let content = bytes(len, 3);
        let ingested = received(&rig, &content, false).await.unwrap();
        assert_eq!(ingested.crc64, Crc64::of(&content), "{len}");
        let stored = match ingested.stored.content() {
            NewContent::Inline(inline) => inline.to_vec(),
            NewContent::Stored(_)
            | NewContent::Shared(_)
            | NewContent::Encrypted(..)
            | NewContent::Authenticated(..) => read(&rig, &ingested.stored).await,
        };
        assert!(stored == content, "{len}");
        drop(ingested);
        let all = (8 << 20) - PIECE_BYTES;
        assert!(rig.pool.budget().take(&BodyMemory::of(ACCOUNT), all).is_ok(), "{len}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_body_is_refused_where_its_length_is_needed() {
    let rig = rig(64 << 20, WriteConfig::default()).await;
    let refused = received(&rig, &bytes(LEN_MAX + 1, 0), false).await.unwrap_err();
    assert_eq!(refused.reason, Reason::RequestBodyTooLarge);
    // Encrypted chunks are bound to the length of the content.
    assert!(received(&rig, &bytes(1 << 20, 0), true).await.is_ok());
    let refused = received(&rig, &bytes((1 << 20) + 1, 0), true).await.unwrap_err();
    assert_eq!(refused.reason, Reason::MissingContentLengthHeader);
    let mut body = RequestBody::empty(rig.env.clone());
    let refused = ingest_pages(&rig.pool, &mut body, &open(), 0, None).await.unwrap_err();
    assert_eq!(refused.reason, Reason::MissingContentLengthHeader);
}
