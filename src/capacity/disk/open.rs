//! Opening the disks of a node: formats first, then each disk's recovery.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::capacity::config::CatalogPlace;
use crate::capacity::disk::catalog::{Catalog, MemoryCatalog, SledCatalog};
use crate::capacity::disk::format::{self, Format};
use crate::capacity::disk::open_error::OpenError;
use crate::capacity::disk::opening::{Opened, Opening};
use crate::capacity::disk::recover::Recovery;
use crate::capacity::journal::create::make_journal;
use crate::capacity::journal::layout::RingId;
use crate::env::{Disk, DiskError};

/// Opens all disks concurrently and initializes those that are empty. The result has an error for
/// each disk that cannot be recovered, and for each disk of the store whose format cannot be read.
///
/// # Errors
/// [`OpenError`] if the disks are not those of one store, or none of them can be recovered.
pub(crate) async fn open_all(
    disks: Vec<Arc<dyn Disk>>,
    opening: &Opening,
) -> Result<Vec<Result<Opened, OpenError>>, OpenError> {
    if disks.is_empty() {
        return Err(OpenError::NoDisks);
    }
    let formats = formats(&disks, opening).await?;
    let each = disks.into_iter().zip(formats).enumerate();
    let recoveries = each.map(|(place, (disk, format))| open_one(place, disk, format, opening));
    let opened = join_all(recoveries).await;
    if opened.iter().all(Result::is_err)
        && let Some(error) = opened.iter().find_map(|one| one.as_ref().err())
    {
        return Err(error.clone());
    }
    Ok(opened)
}

async fn open_one(
    place: usize,
    disk: Arc<dyn Disk>,
    format: Result<Format, OpenError>,
    opening: &Opening,
) -> Result<Opened, OpenError> {
    let format = format?;
    let store_id = format.store_id().ok_or(OpenError::FormatDamaged { disk: place })?;
    let catalog = open_catalog(opening, place, store_id).await;
    let number = format.number;
    let recovery = Recovery { disk: Arc::clone(&disk), place, number, store_id, catalog, opening };
    let opened = recovery.run().await?;
    // Recovery has released the space that open extents had reserved, so a full disk has room for
    // this.
    if format.is_older() && !opening.config.keeps_format {
        format::raise(&disk, place, format, &opening.env).await?;
    }
    Ok(opened)
}

/// The format of each disk. Checks that they are exactly the disks of one store, and adds new disks
/// to it. The result has an error for each disk of the store whose format cannot be read.
async fn formats(
    disks: &[Arc<dyn Disk>],
    opening: &Opening,
) -> Result<Vec<Result<Format, OpenError>>, OpenError> {
    let known = |disk: usize| opening.config.numbers.get(disk).copied().flatten();
    let mut found = Vec::new();
    for (disk, file) in disks.iter().enumerate() {
        let format = format::read(file, disk).await;
        match (format, known(disk)) {
            (Err(error), Some(_)) if error.is_unreadable() => found.push(Err(error)),
            (format, _) => found.push(Ok(format?)),
        }
    }
    let store = found.iter().flatten().flatten().find_map(Format::store_id);
    let store = store.or(opening.config.store).unwrap_or_else(|| random(opening));
    let mut numbers = BTreeSet::new();
    for (disk, format) in found.iter().enumerate() {
        let (known, number) = match format {
            Ok(Some(format)) if format.store_id() != Some(store) => {
                return Err(OpenError::OtherStore { disk });
            }
            Ok(Some(format)) => (known(disk), Some(format.number)),
            Ok(None) => continue,
            Err(_) => (None, known(disk)),
        };
        let Some(number) = number else { continue };
        let highest = numbers.last().copied().unwrap_or(0).max(number);
        // A disk whose format could not be read at an earlier start may be another disk than the
        // list says.
        let is_other = known.is_some_and(|known| known != number);
        if is_other || !numbers.insert(number) {
            return Err(OpenError::DiskSet { highest });
        }
    }
    numbers.extend(&opening.config.absent);
    if let Some(&highest) = numbers.last()
        && highest + 1 != numbers.len()
    {
        return Err(OpenError::DiskSet { highest });
    }
    let mut next = numbers.len();
    let mut formats = Vec::new();
    for (place, (disk, format)) in disks.iter().zip(found).enumerate() {
        formats.push(match format {
            Ok(Some(format)) => found_again(disk, place, format).await,
            Ok(None) => {
                let made = make(disk, place, Format::new(store, random(opening), next), opening);
                next += 1;
                Ok(made.await?)
            }
            Err(error) => Err(error),
        });
    }
    Ok(formats)
}

/// Syncs the directory of a known disk. The start that made the disk may have failed before that
/// sync, and the names must be durable before the disk is used.
async fn found_again(
    disk: &Arc<dyn Disk>,
    place: usize,
    format: Format,
) -> Result<Format, OpenError> {
    match disk.sync_dir("").await {
        Ok(()) => Ok(format),
        Err(error) => Err(OpenError::Disk { disk: place, error }),
    }
}

async fn make(
    disk: &Arc<dyn Disk>,
    place: usize,
    format: Format,
    opening: &Opening,
) -> Result<Format, OpenError> {
    let failed = |error| OpenError::Disk { disk: place, error };
    if !disk.list("extents").await.map_err(failed)?.is_empty() {
        return Err(OpenError::NoFormat { disk: place });
    }
    let ring = RingId::new(opening.env.rand.next_u64());
    if let Err(error) = make_journal(disk, opening.config.journal_bytes, ring).await {
        return Err(match (error, disk.space().await) {
            (DiskError::Full, Ok(space)) => {
                let (needed, available) = (opening.config.journal_bytes, space.available);
                OpenError::NoRoom { disk: place, needed, available }
            }
            (error, _) => failed(error),
        });
    }
    format::write(disk, &format).await.map_err(failed)?;
    Ok(format)
}

fn random(opening: &Opening) -> u128 {
    let rand = &opening.env.rand;
    u128::from(rand.next_u64()) << 64 | u128::from(rand.next_u64())
}

async fn open_catalog(opening: &Opening, place: usize, store_id: u128) -> Arc<dyn Catalog> {
    let folders = match &opening.config.catalog {
        CatalogPlace::Folders(folders) => folders,
        CatalogPlace::Simulated(catalogs) => {
            let catalog = catalogs.get(place).cloned();
            return Arc::new(catalog.unwrap_or_default());
        }
        CatalogPlace::Memory => return Arc::new(MemoryCatalog),
    };
    let Some(folder) = folders.get(place) else { return Arc::new(MemoryCatalog) };
    let folder = folder.join("catalog");
    let work = move || SledCatalog::open(&folder, store_id);
    match opening.env.tasks.spawn_blocking("catalog", work).await {
        Ok(catalog) => Arc::new(catalog),
        Err(_) => {
            tracing::error!(
                disk = place,
                "the disk runs without a catalog; this start and the next one examine every extent"
            );
            Arc::new(MemoryCatalog)
        }
    }
}
