//! The faults of a simulated disk and their probabilities.

/// A fault of a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A read fails; the bytes are intact.
    ReadError,
    /// A write, or a change of a name or of a file's shape, fails. A write may have written its
    /// first bytes.
    WriteError,
    /// A sync fails. The bytes that it should have written may be lost, although reads still return
    /// them.
    SyncError,
    /// A sync succeeds without effect, as on a device that lies, or in code that omits the sync.
    SyncLie,
    /// A write or reservation that needs more space fails as on a full disk, even if there is
    /// space.
    Full,
}

/// The probability of each fault, per million operations that it can affect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of [`Fault::ReadError`].
    pub read_error: u32,
    /// Of [`Fault::WriteError`].
    pub write_error: u32,
    /// Of [`Fault::SyncError`].
    pub sync_error: u32,
    /// Of [`Fault::SyncLie`].
    pub sync_lie: u32,
    /// Of [`Fault::Full`].
    pub full: u32,
}

impl Faults {
    pub(super) const fn chance(&self, fault: Fault) -> u32 {
        match fault {
            Fault::ReadError => self.read_error,
            Fault::WriteError => self.write_error,
            Fault::SyncError => self.sync_error,
            Fault::SyncLie => self.sync_lie,
            Fault::Full => self.full,
        }
    }
}
