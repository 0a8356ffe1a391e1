//! A file: its content on the disk, its content for its users, and the changes between the two.

use std::collections::VecDeque;

use fastrand::Rng;

use crate::content::Change;
use crate::content::Content;
use crate::cut::Mode;
use crate::cut::Report;
use crate::cut::sectors;

/// One regular file.
#[derive(Debug, Default)]
pub struct File {
    volatile: Content,
    durable: Content,
    /// Changes the disk does not have yet, oldest first, numbered without gaps.
    pending: VecDeque<Change>,
    /// Changes ever made.
    issued: u64,
}

impl File {
    /// What readers see.
    pub fn content(&self) -> &Content {
        &self.volatile
    }

    pub fn change(&mut self, change: Change) {
        self.volatile.apply(&change);
        self.pending.push_back(change);
        self.issued += 1;
    }

    /// The moment a sync begins: it covers the changes made before, and no others.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Changes a power failure may lose.
    pub fn unsynced(&self) -> usize {
        self.pending.len()
    }

    /// Makes everything durable that was made before the moment `issued`.
    pub fn sync(&mut self, issued: u64) {
        let first = self.issued - self.pending.len() as u64;
        for _ in first..issued {
            let Some(change) = self.pending.pop_front() else { break };
            self.durable.apply(&change);
        }
    }

    /// The power fails: of the unsynced changes those survive that `mode` and `rng` choose.
    pub fn cut(&mut self, mode: Mode, rng: &mut Rng, report: &mut Report) {
        let pending: Vec<Change> = self.pending.drain(..).collect();
        report.changes += pending.len();
        let surviving = mode.survivors(&pending, rng);
        report.survived += surviving.len();
        for change in &surviving {
            self.durable.apply(change);
        }
        self.volatile = self.durable.clone();
    }
}

impl Mode {
    /// What of a file's unsynced changes reached the disk.
    fn survivors(self, pending: &[Change], rng: &mut Rng) -> Vec<Change> {
        match self {
            Mode::Forget => Vec::new(),
            Mode::Torn if rng.bool() => {
                // Written back in order; the power failed during one of them.
                let whole = rng.usize(..=pending.len());
                let mut kept = pending[..whole].to_vec();
                if let Some(Change::Write { offset, bytes }) = pending.get(whole) {
                    let count = sectors(*offset, bytes).len();
                    let (reached, gaps) = (rng.usize(..=count), rng.bool());
                    let keep =
                        |number: usize, rng: &mut Rng| number < reached || gaps && rng.bool();
                    kept.extend(torn(*offset, bytes, rng, keep));
                }
                kept
            }
            Mode::Torn => {
                // Written back in any order, sector by sector.
                let likely = rng.f64();
                let keep = |_: usize, rng: &mut Rng| rng.f64() < likely;
                let mut kept = Vec::new();
                for change in pending {
                    match change {
                        Change::Write { offset, bytes } => {
                            kept.extend(torn(*offset, bytes, rng, keep));
                        }
                        _ if rng.bool() => kept.push(change.clone()),
                        _ => {}
                    }
                }
                kept
            }
            Mode::Reordered => {
                let likely = rng.f64();
                let mut kept = Vec::new();
                for change in pending {
                    if rng.f64() < likely {
                        kept.push(change.clone());
                    } else if let Change::Write { offset, bytes } = change
                        && rng.u8(..10) == 0
                    {
                        // The new length reached the disk, the bytes did not.
                        let len = bytes.len() as u64;
                        kept.push(Change::Allocate { offset: *offset, len, keep_length: false });
                    }
                }
                kept
            }
        }
    }
}

/// The sectors of one write that `keep` chooses, by their number in it.
fn torn(
    offset: u64,
    bytes: &[u8],
    rng: &mut Rng,
    keep: impl Fn(usize, &mut Rng) -> bool,
) -> Vec<Change> {
    let mut kept = Vec::new();
    for (number, range) in sectors(offset, bytes).into_iter().enumerate() {
        if keep(number, rng) {
            let bytes = bytes[range.clone()].into();
            kept.push(Change::Write { offset: offset + range.start as u64, bytes });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, fill: u8, len: usize) -> Change {
        Change::Write { offset, bytes: vec![fill; len].into() }
    }

    fn cut(file: &mut File, mode: Mode, seed: u64) -> Vec<u8> {
        file.cut(mode, &mut Rng::with_seed(seed), &mut Report::default());
        assert_eq!(file.unsynced(), 0);
        file.content().read(0, 1 << 20)
    }

    #[test]
    fn synced_changes_survive_every_mode() {
        for mode in Mode::ALL {
            for seed in 0..100 {
                let mut file = File::default();
                file.change(write(0, 1, 2000));
                file.change(Change::Punch { offset: 0, len: 512 });
                file.change(Change::Length(1500));
                file.sync(file.issued());
                file.change(write(5000, 2, 2000));
                let found = cut(&mut file, mode, seed);
                assert_eq!(found[..512], [0; 512]);
                assert_eq!(found[512..1500], [1; 988]);
            }
        }
    }

    #[test]
    fn forgotten_is_all_that_was_not_synced() {
        let mut file = File::default();
        file.change(write(0, 1, 1000));
        file.sync(file.issued());
        file.change(write(0, 2, 500));
        file.change(Change::Length(700));
        assert_eq!(file.content().read(0, 4), [2; 4]);
        assert_eq!(cut(&mut file, Mode::Forget, 0), [1; 1000]);
    }

    #[test]
    fn sync_covers_only_what_was_there_when_it_began() {
        let mut file = File::default();
        file.change(write(0, 1, 10));
        let began = file.issued();
        file.change(write(10, 2, 10));
        file.sync(began);
        // A second sync of the same moment covers nothing more.
        file.sync(began);
        assert_eq!(cut(&mut file, Mode::Forget, 0), [1; 10]);
    }

    #[test]
    fn torn_sectors_are_whole() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut file = File::default();
            file.change(write(0, 1, 4096));
            file.sync(file.issued());
            file.change(write(100, 2, 3000));
            let found = cut(&mut file, Mode::Torn, seed);
            assert_eq!(found[..100], [1; 100]);
            assert_eq!(found[3100..], [1; 996]);
            for sector in found[512..3072].chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]));
            }
            lengths.insert(found.iter().filter(|byte| **byte == 2).count());
        }
        assert!(lengths.len() > 4, "{lengths:?}");
    }

    #[test]
    fn reordered_changes_survive_without_those_before() {
        let (mut later_alone, mut longer_alone) = (0, 0);
        for seed in 0..400 {
            let mut file = File::default();
            file.change(write(0, 1, 512));
            file.change(write(512, 2, 512));
            let found = cut(&mut file, Mode::Reordered, seed);
            later_alone += usize::from(found.len() == 1024 && found[0] == 0 && found[512] == 2);
            longer_alone += usize::from(found.len() == 1024 && found[512] == 0);
        }
        assert!(later_alone > 20 && longer_alone > 5, "{later_alone} {longer_alone}");
    }
}
