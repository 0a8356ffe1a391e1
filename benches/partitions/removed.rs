//! A list over names that were all deleted: how long it occupies a worker of the runtime, and how
//! long a page takes.

use std::future::Future;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use std::time::Instant;

use blockyard::index;
use blockyard::index::ListBlobs;
use blockyard::types::AccountId;
use blockyard::types::Collation;
use blockyard::types::ContainerId;

use crate::args::Args;
use crate::bed::Bed;
use crate::report::Section;
use crate::report::quantile;
use crate::rows;

/// Pages after which a list that does not end is aborted.
const PAGES_MAX: usize = 1_000_000;

/// A limit with which memtables hold all tombstones and no flush happens while they are made, so
/// that no compaction drops them before the list.
const MEMTABLE_BYTES_MAX: usize = 16 << 30;
const LOG_EXTENT_BYTES: u64 = 16 << 30;

/// Runs the scene.
pub(crate) async fn run(args: &Args, folder: &Path) -> Result<Section, String> {
    let folder = folder.join("removed");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let bed = Bed::open(&folder).await?;
    rows::fill(&bed, args.removed, "names to remove").await?;
    bed.close().await;
    let limits = index::Config {
        memtable_bytes_max: MEMTABLE_BYTES_MAX,
        log_extent_bytes: LOG_EXTENT_BYTES,
        ..index::Config::default()
    };
    let bed = Bed::open_with(&folder, limits).await?;
    rows::remove(&bed, args.removed).await?;
    let mut list =
        ListBlobs::first_page(AccountId::new(1), ContainerId::new(1), Collation::Utf16, 5_000);
    let (mut pages, mut held, mut seen, mut shown) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..PAGES_MAX {
        let began = Instant::now();
        let (page, longest) = longest_turn(bed.router.list(&list)).await;
        pages.push(began.elapsed().as_secs_f64() * 1_000.0);
        held.push(longest.as_secs_f64() * 1_000.0);
        let page = page.map_err(|e| e.to_string())?;
        seen += page.seen;
        shown += page.entries.len();
        list.from = page.next;
        if list.from.is_none() {
            break;
        }
    }
    bed.close().await;
    std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    if (seen as u64) < args.removed {
        return Err(format!("only {seen} removed rows were left for the list to look at"));
    }
    let mut section = Section {
        about: format!(
            "A list over {} names that were put and removed again, page by page to the end. The removed names are in runs, their \
             tombstones in memtables, so the list walks over all of them. A worker is held from one poll of the request to its \
             return.",
            args.removed
        ),
        columns: vec!["figure".to_owned()],
        ..Section::default()
    };
    section.row("pages", &[pages.len() as f64]);
    section.row("names shown", &[shown as f64]);
    section.row("removed rows looked at", &[seen as f64]);
    section.row("a page, p50, ms", &[quantile(&pages, 0.5)]);
    section.row("a page, longest, ms", &[quantile(&pages, 1.0)]);
    section.row("a worker held within a page, p50 of the pages, ms", &[quantile(&held, 0.5)]);
    section.row("a worker held, longest, ms", &[quantile(&held, 1.0)]);
    Ok(section)
}

/// The result, and the longest time between two waits of the work.
async fn longest_turn<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = pin!(work);
    let mut longest = Duration::ZERO;
    let done = poll_fn(|context| {
        let began = Instant::now();
        let polled = work.as_mut().poll(context);
        longest = longest.max(began.elapsed());
        polled
    })
    .await;
    (done, longest)
}
