//! azure_storage_blob for Rust: every kind of blob with an account signature, which is all this
//! client can do over http. `CONTAINER_URL` and `SOURCE_URL` carry their signatures.

use std::collections::HashMap;

use azure_core::http::RequestContent;
use azure_core::http::Url;
use azure_storage_blob::BlobContainerClient;
use azure_storage_blob::models::AccessTier;
use azure_storage_blob::models::BlobTags;
use azure_storage_blob::models::BlockListType;
use azure_storage_blob::models::BlockLookupList;
use azure_storage_blob::models::HttpRange;
use azure_storage_blob::models::StorageErrorCode;
use azure_storage_blob::models::BlobClientGetPropertiesResultHeaders;
use futures::TryStreamExt;
use rust_clients::group;
use rust_clients::setting;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn container() -> BlobContainerClient {
    let url = Url::parse(&setting("CONTAINER_URL")).expect("an address");
    BlobContainerClient::new(url, None, None).expect("a client")
}

async fn bytes(name: &str) -> azure_core::Result<Vec<u8>> {
    let answer = container().blob_client(name).download(None).await?;
    Ok(answer.body.collect().await?.to_vec())
}

async fn containers() -> Outcome {
    let client = container();
    client.create(None).await?;
    client.set_metadata(&HashMap::from([("a".to_owned(), "b".to_owned())]), None).await?;
    assert!(client.exists().await?);
    let refused = client.create(None).await.expect_err("it exists");
    assert_eq!(refused.http_status().map(u16::from), Some(409));
    Ok(())
}

async fn blocks() -> Outcome {
    let blob = container().blob_client("dir/with space+%41 ü.bin");
    assert!(!blob.exists().await?);
    let data: Vec<u8> = (0..9 << 20).map(|n: u32| (n / 7) as u8).collect();
    blob.upload(RequestContent::from(data.clone()), None).await?;
    assert!(bytes("dir/with space+%41 ü.bin").await? == data);
    let staged = container().blob_client("staged").block_blob_client();
    let parts: [(&[u8], &[u8]); 2] = [(b"one", b"first, "), (b"two", b"second")];
    for (id, part) in parts {
        staged.stage_block(id, part.len() as u64, RequestContent::from(part.to_vec()), None).await?;
    }
    let latest = Some(parts.iter().map(|(id, _)| id.to_vec()).collect());
    let list = BlockLookupList { committed: None, latest, uncommitted: None };
    staged.commit_block_list(list.try_into()?, None).await?;
    let found = staged.get_block_list(BlockListType::Committed, None).await?.into_model()?;
    assert_eq!(found.committed_blocks.map_or(0, |blocks| blocks.len()), 2);
    assert_eq!(bytes("staged").await?, b"first, second");
    Ok(())
}

async fn listing() -> Outcome {
    for number in 0..7 {
        container().blob_client(&format!("l/{number}")).upload(RequestContent::from(b"x".to_vec()), None).await?;
    }
    let mut count = 0;
    let mut pages = container().list_blobs(None)?;
    while pages.try_next().await?.is_some() {
        count += 1;
    }
    assert!(count >= 7, "{count} blobs listed");
    Ok(())
}

async fn append() -> Outcome {
    let blob = container().blob_client("append").append_blob_client();
    blob.create(None).await?;
    for part in [b"one,", b"two,"] {
        blob.append_block(RequestContent::from(part.to_vec()), 4, None).await?;
    }
    blob.seal(None).await?;
    assert_eq!(bytes("append").await?, b"one,two,");
    Ok(())
}

async fn page() -> Outcome {
    let blob = container().blob_client("page").page_blob_client();
    blob.create(1024, None).await?;
    blob.upload_pages(RequestContent::from(vec![b'A'; 1024]), 1024, HttpRange::new(0, 1024), None).await?;
    blob.clear_pages(HttpRange::new(0, 512), None).await?;
    blob.resize(2048, None).await?;
    let data = bytes("page").await?;
    assert_eq!((data.len(), data[0], data[600], data[1500]), (2048, 0, b'A', 0));
    Ok(())
}

async fn tags_and_tier() -> Outcome {
    let blob = container().blob_client("tagged");
    blob.upload(RequestContent::from(b"x".to_vec()), None).await?;
    let wanted = HashMap::from([("k".to_owned(), "v".to_owned())]);
    let tags: BlobTags = wanted.clone().into();
    blob.set_tags(tags.try_into()?, None).await?;
    let found: HashMap<String, String> = blob.get_tags(None).await?.into_model()?.into();
    assert_eq!(found, wanted);
    blob.set_tier(AccessTier::Cool, None).await?;
    assert_eq!(blob.get_properties(None).await?.access_tier()?.as_deref(), Some("Cool"));
    Ok(())
}

async fn from_url() -> Outcome {
    let blob = container().blob_client("from-url").block_blob_client();
    blob.upload_blob_from_url(setting("SOURCE_URL"), None).await?;
    assert_eq!(bytes("from-url").await?, b"the source");
    Ok(())
}

async fn errors() -> Outcome {
    let refused = bytes("missing").await.expect_err("there is none");
    assert_eq!(refused.http_status().map(u16::from), Some(404));
    assert!(format!("{refused:?}").contains(StorageErrorCode::BlobNotFound.as_ref()));
    container().delete(None).await?;
    Ok(())
}

#[tokio::main]
async fn main() {
    macro_rules! run {
        ($($name:literal $case:ident)*) => {$(
            group($name, async { $case().await.map_err(|e| e.to_string()) }).await;
        )*};
    }
    run! {
        "containers" containers  "block blobs" blocks  "listing" listing  "append blobs" append  "page blobs" page
        "tags and tiers" tags_and_tier  "put from URL" from_url  "errors and delete" errors
    }
}
