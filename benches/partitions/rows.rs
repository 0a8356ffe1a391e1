//! The rows of a dataset: small blobs with metadata, with ordered names in folders.

use std::sync::Arc;
use std::time::Duration;

use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::NewBlobFields;
use blockyard::index::NewContent;
use blockyard::index::PutBlob;
use blockyard::index::Router;
use blockyard::index::Write;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::BlobProperties;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;

use crate::bed::Bed;

/// The number of writing tasks, and of concurrent writes of each.
const TASKS: u64 = 8;
const TOGETHER: usize = 256;
/// The pause after a refusal because of overload.
const PAUSE: Duration = Duration::from_millis(2);

/// The blob of a number; numbers and names have one order.
pub(crate) fn key(number: u64) -> BlobKey {
    let name = format!("train/shard-{:06}/sample-{number:010}.jpg", number / 1_000);
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(1),
        collation: Collation::Utf16,
        name: BlobName::new(&name).expect("a short name"),
    }
}

/// The lower bound of a partition that begins with a blob.
pub(crate) fn border(number: u64) -> RoutingKey {
    RoutingKey::blob(&key(number))
}

/// Put Blob.
pub(crate) fn put(number: u64) -> Write {
    let body = Bytes::from(format!("{:032x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let metadata = vec![
        pair("label", format!("class-{:04}", number % 1_000)),
        pair("source", "camera-07".to_owned()),
        pair("width", "640".to_owned()),
    ];
    Write::PutBlob(PutBlob {
        key: key(number),
        guard: Guard::default(),
        properties: BlobProperties {
            content_type: Some("image/jpeg".to_owned()),
            ..BlobProperties::default()
        },
        metadata: Metadata::new(metadata).expect("three pairs"),
        kind: NewKind::Block,
        tags: Tags::default(),
        crc64: Crc64::of(&body),
        content: NewContent::Inline(body),
        tier: None,
        fields: NewBlobFields::default(),
    })
}

/// Writes blobs 0 to `count`, as an upload in order by several tasks.
pub(crate) async fn fill(bed: &Bed, count: u64, what: &str) -> Result<(), String> {
    send(bed, count, what, put).await
}

/// Removes blobs 0 to `count`.
pub(crate) async fn remove(bed: &Bed, count: u64) -> Result<(), String> {
    send(bed, count, "tombstones", delete).await
}

/// Delete Blob.
fn delete(number: u64) -> Write {
    let (guard, scope) = (Guard::default(), DeleteScope::Blob);
    Write::DeleteBlob(DeleteBlob { key: key(number), guard, scope })
}

/// Sends one write for each number.
async fn send(bed: &Bed, count: u64, what: &str, make: fn(u64) -> Write) -> Result<(), String> {
    let style = ProgressStyle::with_template(
        "{msg} {bar:40} {human_pos} of {human_len}, {per_sec}, {eta} left",
    );
    let bar = ProgressBar::new(count);
    bar.set_style(style.map_err(|e| e.to_string())?);
    bar.set_message(format!("filling {what}"));
    let tasks = (0..TASKS).map(|task| {
        let (router, bar, clock) =
            (Arc::clone(&bed.router), bar.clone(), Arc::clone(&bed.env.clock));
        bed.env.tasks.spawn("filler", async move {
            let write = |number: u64| {
                let (router, clock) = (Arc::clone(&router), Arc::clone(&clock));
                async move {
                    loop {
                        match router.write(make(number)).await {
                            Err(Error::Overloaded) => clock.sleep(PAUSE).await,
                            done => return done,
                        }
                    }
                }
            };
            let from = count * task / TASKS;
            let to = count * (task + 1) / TASKS;
            let mut writes = stream::iter(from..to).map(write).buffer_unordered(TOGETHER);
            while let Some(done) = writes.next().await {
                drop(done?);
                bar.inc(1);
                tell(&bar, count);
            }
            Ok::<_, Error>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    }
    bar.finish_and_clear();
    eprintln!("filled {what}: {count} rows in {:.0} s", bar.elapsed().as_secs_f64());
    Ok(())
}

/// Prints a line for every tenth if there is no terminal.
fn tell(bar: &ProgressBar, count: u64) {
    let tenth = (count / 10).max(1);
    if bar.is_hidden() && bar.position().is_multiple_of(tenth) {
        eprintln!("{} of {count} rows, {:.0} s", bar.position(), bar.elapsed().as_secs_f64());
    }
}

/// Writes one.
pub(crate) async fn write(router: &Router, number: u64) -> Result<(), Error> {
    router.write(put(number)).await.map(drop)
}
