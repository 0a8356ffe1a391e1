//! What may go wrong on a simulated disk, and how often.

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A read fails; the bytes are there.
    ReadError,
    /// A write, or a change of a name or shape, fails; a write may have written its first bytes.
    WriteError,
    /// A sync fails, and what it should have written may be lost although reads still show it.
    SyncError,
    /// A sync answers well and does nothing: what a dishonest device does, and what code that
    /// forgets to sync does.
    SyncLie,
    /// A write or reservation that needs more space meets a full disk, whatever the capacity says.
    Full,
}

/// Chances of the faults, each in a million operations of its kind.
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
