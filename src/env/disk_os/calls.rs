//! System calls on one file: those of Linux, and for development those of other systems.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{allocate, data_sync, forget, punch, read_cached, read_rest, write_all};
#[cfg(target_os = "linux")]
pub(super) use linux::{allocate, data_sync, forget, punch, read_cached, read_rest, write_all};

/// The result of a read from the page cache.
pub(super) enum Cached {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "other systems do not say what is cached")
    )]
    /// All requested bytes up to the end of the file.
    All(Vec<u8>),
    /// The first bytes. The rest must be read from the device.
    Start(Vec<u8>),
}
