//! Which request a thread works on.
//!
//! Log lines take the id from here. A span of `tracing` would cost every request allocations and
//! locks, for lines that few requests write.

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

/// The thread works on a request until this is dropped, after a panic too.
#[derive(Debug)]
pub struct Entered {
    before: Option<Uuid>,
}

/// Has the thread work on the request `id`, or on none, until what is returned is dropped.
#[must_use]
pub fn enter(id: Option<Uuid>) -> Entered {
    Entered { before: CURRENT.replace(id) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}
