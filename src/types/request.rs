//! The id of the request that a thread works on.
//!
//! Log lines read the id from here. A span of `tracing` would cost every request allocations and
//! locks, although few requests are logged.

use std::cell::Cell;

use uuid::Uuid;

thread_local! {
    static CURRENT: Cell<Option<Uuid>> = const { Cell::new(None) };
}

/// The id of the request that this thread works on.
#[must_use]
pub fn current() -> Option<Uuid> {
    CURRENT.get()
}

/// Restores the previous id when it is dropped, also during a panic.
#[derive(Debug)]
pub struct Entered {
    before: Option<Uuid>,
}

/// Sets the id of the request that this thread works on, or none, until the returned value is
/// dropped.
#[must_use]
pub fn enter(id: Option<Uuid>) -> Entered {
    Entered { before: CURRENT.replace(id) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}
