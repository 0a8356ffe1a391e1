//! object_store's published integration suite over S3, in the order of its own AWS test, each
//! function in a bucket of its own (`suite-` and the name). Keys and address come in the
//! environment as the crate reads them.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::PutOptions;
use object_store::TagSet;
use object_store::aws::AmazonS3;
use object_store::aws::AmazonS3Builder;
use object_store::integration;
use object_store::path::Path;
use object_store::signer::Signer;
use rust_clients::group;

/// The store of one case.
fn store(case: &str) -> Arc<AmazonS3> {
    let name = format!("suite-{}", case.replace('_', "-"));
    let built = AmazonS3Builder::from_env().with_bucket_name(name).build();
    Arc::new(built.expect("settings are complete"))
}

macro_rules! suite {
    ($($case:ident => |$store:ident| $run:expr;)*) => {
        /// Names of the cases, for whoever makes the buckets.
        const CASES: &[&str] = &[$(stringify!($case)),*];

        async fn run_all() {
            $(
                let $store = store(stringify!($case));
                group(stringify!($case), async move { $run.await; Ok(()) }).await;
            )*
        }
    };
}

suite! {
    put_get_delete_list => |s| integration::put_get_delete_list(&*s);
    list_with_offset_exclusivity => |s| integration::list_with_offset_exclusivity(&*s);
    get_opts => |s| integration::get_opts(&*s);
    list_uses_directories_correctly => |s| integration::list_uses_directories_correctly(&*s);
    list_with_delimiter => |s| integration::list_with_delimiter(&*s);
    rename_and_copy => |s| integration::rename_and_copy(&*s);
    copy_if_not_exists => |s| integration::copy_if_not_exists(&*s);
    copy_rename_nonexistent_object => |s| integration::copy_rename_nonexistent_object(&*s);
    stream_get => |s| integration::stream_get(&*s);
    put_opts => |s| integration::put_opts(&*s, true);
    multipart => |s| integration::multipart(&*s, &*s);
    multipart_put_part_out_of_order => |s| integration::multipart_put_part_out_of_order(&*s, &*s);
    multipart_race_condition => |s| integration::multipart_race_condition(&*s, true);
    multipart_out_of_order => |s| integration::multipart_out_of_order(&*s);
    list_paginated => |s| integration::list_paginated(&*s, &*s);
    put_get_attributes => |s| integration::put_get_attributes(&*s);
}

/// What the crate tests with functions it does not publish: a signed address, and tags. Prints the
/// address.
async fn unpublished() {
    let s = store("unpublished");
    group("signed URL and tags", async move {
        let path = Path::from("file.txt");
        let mut set = TagSet::default();
        set.push("a key", "a value/+");
        let put = s.put_opts(&path, "hello world".into(), PutOptions::from(set)).await;
        put.map_err(|e| e.to_string())?;
        let url = s.signed_url("GET".parse().expect("a method"), &path, Duration::from_secs(600)).await;
        println!("{}", serde_json::json!({"signed": url.map_err(|e| e.to_string())?.as_str()}));
        s.head(&path).await.map(drop).map_err(|e| e.to_string())
    })
    .await;
}

#[tokio::main]
async fn main() {
    if std::env::args().nth(1).as_deref() == Some("--cases") {
        println!("{}", CASES.join("\n"));
        println!("unpublished");
        return;
    }
    run_all().await;
    unpublished().await;
}
