//! Splits of partitions of several sizes. Each split separates a small part at the low end, so that
//! the partition stays about as large as at the start.

use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use blockyard::index::Changed;
use blockyard::types::PartitionId;

use crate::args::Args;
use crate::bed::Bed;
use crate::floor::Floor;
use crate::report::Section;
use crate::report::quantile;
use crate::rows;
use crate::trickle::Trickle;

/// The pause between two splits, in which the trickle writes.
const PAUSE: Duration = Duration::from_millis(50);
/// Parts of a wide split.
const WIDE: u64 = 16;

/// The figures of one size, milliseconds.
#[derive(Debug, Default)]
struct Measured {
    halves: Vec<f64>,
    wide: Vec<f64>,
    whole: Vec<f64>,
    floor: Vec<f64>,
    writes: Vec<f64>,
}

/// Runs the scene.
pub(crate) async fn run(args: &Args, folder: &Path) -> Result<Section, String> {
    let mut all = Vec::new();
    for count in &args.rows {
        let folder = folder.join(format!("rows-{count}"));
        all.push(measure(args, &folder, *count).await?);
        std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    }
    let mut columns: Vec<String> = args.rows.iter().map(|count| format!("{count} rows")).collect();
    let ratio = all.len() > 1;
    if ratio {
        columns.push("last / first".to_owned());
    }
    let mut section = Section {
        about: format!(
            "Pause of splits: how long no write of the range was made durable. {} splits into 2 and {} into {WIDE} of one partition \
             under a trickle of writes; the floor is an fdatasync of 4 KiB in place after each split.",
            args.rounds, args.wide
        ),
        columns,
        ..Section::default()
    };
    let mut row = |what: &str, of: &dyn Fn(&Measured) -> f64| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        if let (true, Some(first), Some(last)) = (ratio, values.first(), values.last()) {
            values.push(last / first);
        }
        section.row(what, &values);
    };
    row("pause of a split into 2, p50, ms", &|m| quantile(&m.halves, 0.5));
    row("pause of a split into 2, p99, ms", &|m| quantile(&m.halves, 0.99));
    row("pause of a split into 16, p50, ms", &|m| quantile(&m.wide, 0.5));
    row("pause of a split into 16, p99, ms", &|m| quantile(&m.wide, 0.99));
    row("from the call to the answer, p50, ms", &|m| quantile(&m.whole, 0.5));
    row("from the call to the answer, p99, ms", &|m| quantile(&m.whole, 0.99));
    row("fdatasync floor, p50, ms", &|m| quantile(&m.floor, 0.5));
    row("fdatasync floor, p99, ms", &|m| quantile(&m.floor, 0.99));
    row("a write of the trickle, p50, ms", &|m| quantile(&m.writes, 0.5));
    row("a write of the trickle, p99, ms", &|m| quantile(&m.writes, 0.99));
    Ok(section)
}

async fn measure(args: &Args, folder: &Path, count: u64) -> Result<Measured, String> {
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let bed = Bed::open(folder).await?;
    rows::fill(&bed, count, &format!("a partition of {count}")).await?;
    let mut floor = Floor::new(folder)?;
    let trickle = Trickle::start(&bed, count);
    let mut measured = Measured::default();
    // At most a quarter of the rows is separated.
    let step = count / 4 / (args.rounds + args.wide * WIDE).max(1);
    let mut at = 0;
    let mut large = largest(&bed)?;
    for round in 0..args.rounds + args.wide {
        let parts = if round < args.rounds { 1 } else { WIDE - 1 };
        let keys: Vec<_> = (1..=parts).map(|part| rows::border(at + part * step)).collect();
        at += parts * step;
        let start = Instant::now();
        let split = bed.index.split(large, &keys).await;
        let Changed { partitions, pause } = split.map_err(|e| format!("a split failed: {e}"))?;
        measured.whole.push(start.elapsed().as_secs_f64() * 1_000.0);
        let pauses = if parts == 1 { &mut measured.halves } else { &mut measured.wide };
        pauses.push(pause.as_secs_f64() * 1_000.0);
        large = *partitions.last().ok_or("a split without children")?;
        floor.take()?;
        if round % 20 == 0 {
            eprintln!(
                "split {round}: {:.2} ms, {:.0} ms in all",
                pause.as_secs_f64() * 1e3,
                start.elapsed().as_secs_f64() * 1e3
            );
        }
        bed.env.clock.sleep(PAUSE).await;
    }
    measured.writes = trickle.end().await?;
    measured.floor = floor.taken;
    bed.close().await;
    Ok(measured)
}

/// The only partition of a new store.
fn largest(bed: &Bed) -> Result<PartitionId, String> {
    let status = bed.index.status();
    status.last().map(|partition| partition.id).ok_or_else(|| "no partition".to_owned())
}
