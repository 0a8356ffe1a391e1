//! The end of a run: where its parts are and what it holds.

#![deny(clippy::indexing_slicing)]

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Location;
use crate::types::Stripe;

const VERSION: u8 = 2;
/// Before ranges had stripes.
const WITHOUT_STRIPE: u8 = 1;

/// What a reader must know to open a run.
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
    /// A block whose rows are the first keys of the data blocks and where those lie.
    pub(crate) index: Location,
    /// The filter.
    pub(crate) filter: Location,
    /// All rows are of this stripe, if it names one.
    pub(crate) stripe: Option<Stripe>,
}

impl Footer {
    /// The stored footer.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = vec![VERSION];
        bytes.extend(postcard::to_stdvec(self).expect("numbers and bytes always encode"));
        bytes.into()
    }

    /// Reads a footer; `None` when it is malformed or of a version not known here.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, fields) = bytes.split_first()?;
        let fields = match version {
            VERSION => Cow::Borrowed(fields),
            // As if it ended with: no stripe.
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
