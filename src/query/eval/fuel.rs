//! The cost of evaluation. A unit is about the cost of examining a byte.

use std::cell::Cell;

use crate::query::trouble::Trouble;

/// Units of one record. All text that is made is paid for, so it bounds memory too.
const RECORD_MAX: u64 = 64 << 20;
/// Units of an expression, apart from its text.
pub(crate) const NODE: u64 = 8;
/// Units of a calculation with a decimal, apart from that.
pub(crate) const DECIMAL: u64 = 256;

/// The fuel of a record.
#[derive(Debug, Default)]
pub(crate) struct Fuel {
    spent: Cell<u64>,
}

impl Fuel {
    pub(crate) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Takes `units`, before the work is done if it may be much.
    pub(crate) fn spend(&self, units: u64) -> Result<(), Trouble> {
        let spent = self.spent.get().saturating_add(units);
        self.spent.set(spent);
        if spent > RECORD_MAX { Err(Trouble::too_expensive()) } else { Ok(()) }
    }
}
