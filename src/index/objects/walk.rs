//! Walks blobs over several families at once.

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::keys;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::types::RoutingKey;

/// Walks routing keys that have rows in any of several families.
pub(crate) struct Blobs<'a> {
    cursors: Vec<(Family, Cursor<'a>)>,
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
        Self { cursors }
    }

    /// The lowest routing key at the cursors.
    pub(crate) async fn next(&mut self) -> Result<Option<RoutingKey>, Error> {
        let mut lowest: Option<RoutingKey> = None;
        for (family, cursor) in &mut self.cursors {
            while cursor.peek().await?.is_some_and(|row| keys::parse_purge(&row.key).is_some()) {
                cursor.take().await?;
            }
            if let Some(row) = cursor.peek().await? {
                let key = keys::routing_key(*family, &row.key)?;
                lowest = Some(lowest.map_or(key.clone(), |low| low.min(key)));
            }
        }
        Ok(lowest)
    }

    /// The next row of `key`, which is the lowest.
    pub(crate) async fn take_of(
        &mut self,
        key: &RoutingKey,
    ) -> Result<Option<(Family, Row)>, Error> {
        for (family, cursor) in &mut self.cursors {
            let here = cursor.peek().await?.is_some_and(|row| row.key.starts_with(key.as_bytes()));
            if here && let Some(row) = cursor.take().await? {
                return Ok(Some((*family, row)));
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
