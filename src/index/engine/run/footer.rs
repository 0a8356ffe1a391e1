//! The footer of a run: the locations of its index and filter, and a summary of its rows.

#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Location;
use crate::types::Stripe;

const VERSION: u8 = 2;
/// The version before there were stripes.
const WITHOUT_STRIPE: u8 = 1;

/// The data that a reader needs to open a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footer {
    /// Number of its family.
    pub(crate) family: u8,
    /// Rows, tombstones included.
    pub(crate) rows: u64,
    /// Tombstones among them.
    pub(crate) tombstones: u64,
    /// Lowest key.
    pub(crate) first: Bytes,
    /// Highest key.
    pub(crate) last: Bytes,
    /// The location of the index: a block with the first key and the location of each data block.
    pub(crate) index: Location,
    /// The location of the filter.
    pub(crate) filter: Location,
    /// The stripe of all rows; `None` if rows may be of any stripe.
    pub(crate) stripe: Option<Stripe>,
}

impl Footer {
    /// The bytes to store.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = vec![VERSION];
        bytes.extend(postcard::to_stdvec(self).expect("numbers and bytes always encode"));
        bytes.into()
    }

    /// Decodes a footer; `None` if it is malformed or of an unknown version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, fields) = bytes.split_first()?;
        let fields = match version {
            VERSION => Cow::Borrowed(fields),
            // The byte that is missing at its end means "no stripe".
            WITHOUT_STRIPE => Cow::Owned([fields, &[0]].concat()),
            _ => return None,
        };
        let footer: Self = match postcard::take_from_bytes(&fields) {
            Ok((footer, [])) => footer,
            Ok(_) | Err(_) => return None,
        };
        let is_one = |read: Stripe| Stripe::new(read.number(), read.of()).is_some();
        footer.stripe.is_none_or(is_one).then_some(footer)
    }
}
