//! The cost of a sync on the measured disk: 4 KiB written in place, then `fdatasync`, as the
//! journal does at least once for every durable write.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// The number of pages, which are written in turn.
const PAGES: u64 = 256;
/// The content of a page.
const PAGE: [u8; 4096] = [7; 4096];

/// A file whose blocks are all allocated.
pub(crate) struct Floor {
    file: File,
    next: u64,
    /// Durations of the syncs, milliseconds.
    pub(crate) taken: Vec<f64>,
}

impl Floor {
    /// Makes the file in `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        let file = File::create_new(folder.join("floor")).map_err(|e| e.to_string())?;
        for page in 0..PAGES {
            file.write_all_at(&PAGE, page * 4096).map_err(|e| e.to_string())?;
        }
        file.sync_all().map_err(|e| e.to_string())?;
        Ok(Self { file, next: 0, taken: Vec::new() })
    }

    /// Measures one sync.
    pub(crate) fn take(&mut self) -> Result<(), String> {
        let start = Instant::now();
        self.file.write_all_at(&PAGE, self.next % PAGES * 4096).map_err(|e| e.to_string())?;
        self.file.sync_data().map_err(|e| e.to_string())?;
        self.taken.push(start.elapsed().as_secs_f64() * 1_000.0);
        self.next += 1;
        Ok(())
    }
}
