//! Walks over the blobs in several families simultaneously.

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::RoutingKey;

/// A walk over the routing keys that have rows in any of several families.
pub(crate) struct Blobs<'a> {
    view: &'a dyn Rows,
    from: Bytes,
    cursors: Vec<(Family, Cursor<'a>)>,
    pausing: bool,
    paused: Option<Bytes>,
}

impl<'a> Blobs<'a> {
    /// A walk of `[from, to)`; no `to` means to the end of the partition.
    pub(crate) fn new(
        view: &'a dyn Rows,
        families: &[Family],
        from: &Bytes,
        to: Option<&Bytes>,
    ) -> Self {
        let cursors = families
            .iter()
            .map(|&family| (family, Cursor::new(view, family, from.clone(), to.cloned())))
            .collect();
        Self { view, from: from.clone(), cursors, pausing: false, paused: None }
    }

    /// Makes the walk stop when the view is spent, as if there were no more blobs. [`Self::paused`]
    /// then returns the position.
    pub(crate) fn pausing(mut self) -> Self {
        self.pausing = true;
        self
    }

    /// Where the walk stopped because the view is spent.
    pub(crate) fn paused(&self) -> Option<&Bytes> {
        self.paused.as_ref()
    }

    /// The lowest routing key at the cursors.
    pub(crate) async fn next(&mut self) -> Result<Option<RoutingKey>, Error> {
        loop {
            // Only the cursor with the lowest position reads on, so that the cursors stay close
            // together.
            let behind = self.cursors.iter_mut().filter(|(_, cursor)| cursor.bound().is_some());
            let behind = behind.min_by(|(_, a), (_, b)| a.bound().cmp(&b.bound()));
            let Some((family, cursor)) = behind else { return Ok(None) };
            match cursor.known() {
                Some(row) if keys::parse_purge(&row.key).is_some() => drop(cursor.take().await?),
                Some(row) => return keys::routing_key(*family, &row.key).map(Some),
                None => {
                    // The walk stops between two blobs, not among the removed rows of one. Before
                    // the walk is continued, a new row of the blob may be written before that
                    // position.
                    let place = cursor.bound().map(start_of_blob);
                    // The walk does not stop where it began: each part of a walk must make
                    // progress.
                    let place = place.filter(|place| *place > self.from);
                    if self.pausing && place.is_some() && self.view.is_spent() {
                        self.paused = place;
                        return Ok(None);
                    }
                    cursor.step().await?;
                }
            }
        }
    }

    /// The next row of `key`, which must be the lowest routing key.
    pub(crate) async fn take_of(
        &mut self,
        key: &RoutingKey,
    ) -> Result<Option<(Family, Row)>, Error> {
        for (family, cursor) in &mut self.cursors {
            while let Some(bound) = cursor.bound()
                && bound.starts_with(key.as_bytes())
            {
                if cursor.known().is_some() {
                    return Ok(cursor.take().await?.map(|row| (*family, row)));
                }
                cursor.step().await?;
            }
        }
        Ok(None)
    }

    /// Moves past all rows of `key`.
    pub(crate) fn skip(&mut self, key: &RoutingKey) {
        for (_, cursor) in &mut self.cursors {
            cursor.seek(&keys::after(key));
        }
    }
}

/// The first position that a row of the blob at `position` can have.
fn start_of_blob(position: &Bytes) -> Bytes {
    RoutingKey::of_row(position).map_or_else(|| position.clone(), |key| key.as_bytes().clone())
}
