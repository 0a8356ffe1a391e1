//! Garbage rows: locations that no other row names any more. The change that drops the locations
//! writes the rows.

use std::collections::HashSet;

use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::GarbageValue;
use crate::index::rows::Family;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::RoutingKey;

/// The most locations of one garbage row.
pub(super) const LOCATIONS_MAX: usize = 1_000;

/// Writes garbage rows for the locations of `dropped` that are not in `kept`, each location once. A
/// block list may name a block many times, and a retried request may name locations that rows name
/// already.
pub(super) fn write<'a>(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    dropped: &[Location],
    kept: impl IntoIterator<Item = &'a Location>,
) {
    if dropped.is_empty() {
        return;
    }
    let mut seen: HashSet<(ExtentId, ExtentOffset)> = kept.into_iter().map(place).collect();
    let garbage: Vec<Location> =
        dropped.iter().filter(|location| seen.insert(place(location))).copied().collect();
    for (n, locations) in (0u32..).zip(garbage.chunks(LOCATIONS_MAX)) {
        let value = GarbageValue { since: eval.now, locations: locations.to_vec() };
        eval.out.put(Family::Garbage, keys::garbage(blob, eval.now, n), values::encode(&value));
    }
}

fn place(location: &Location) -> (ExtentId, ExtentOffset) {
    (location.extent, location.offset)
}
