//! Frees that a copy of this node has missed, and extents of which nothing is used any more.

use std::ops::Range;

use futures_util::future::join_all;

use super::At;
use super::ClusterCapacity;
use crate::capacity::Error;
use crate::capacity::LocalMember;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

impl ClusterCapacity {
    /// Frees in a copy of this node what all other members have freed in theirs: a node that is
    /// away is not asked to free. What only some of them have freed stays: what one copy says
    /// wrongly must not spread to all. Returns how many bytes were freed.
    ///
    /// # Errors
    /// As of the coordinator and the local disk.
    pub async fn catch_up_frees(
        &self,
        extent: ExtentId,
        local: &LocalMember,
    ) -> Result<u64, Error> {
        let found = match self.find(extent).await {
            Err(Error::NoSuchExtent { .. }) => return Ok(0),
            found => found?,
        };
        let asked = self.others(&found).into_iter().map(|At { node, member }| async move {
            let dead = self.soon(node, member.dead(extent)).await;
            dead.ok()
        });
        let heard: Vec<Vec<Range<u64>>> = join_all(asked).await.into_iter().flatten().collect();
        if heard.len() + 1 < found.record.members().len() {
            return Ok(0);
        }
        let freed = heard.into_iter().reduce(|one, other| common(&one, &other));
        let Some(freed) = freed else { return Ok(0) };
        match local.free_ranges(extent, &freed).await {
            Err(Error::NoSuchExtent { .. }) => Ok(0),
            freed => freed,
        }
    }

    /// Removes the extents of which all bytes are freed, in the copy of this node and in those of
    /// all other members. Returns how many were removed.
    pub async fn remove_dead(&self, local: &LocalMember) -> usize {
        let mut removed = 0;
        for (extent, end) in local.dead_extents() {
            if !self.is_dead_elsewhere(extent, end).await {
                continue;
            }
            match self.remove_all(extent).await {
                Ok(()) => removed += 1,
                Err(error) => tracing::debug!(%extent, %error, "a dead extent is removed later"),
            }
        }
        removed
    }

    /// Whether all other members have freed all bytes of an extent that ends there.
    async fn is_dead_elsewhere(&self, extent: ExtentId, end: ExtentOffset) -> bool {
        let Ok(found) = self.find(extent).await else { return false };
        let others = self.others(&found);
        let are_all = others.len() + 1 == found.record.members().len();
        let dead = others.into_iter().map(|At { node, member }| async move {
            let dead = self.soon(node, member.dead(extent)).await.ok()?;
            Some(dead.iter().map(|range| range.end - range.start).sum::<u64>())
        });
        let is_dead = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes >= end.get());
        are_all && join_all(dead).await.into_iter().all(is_dead)
    }
}

/// The ranges that two sorted lists share.
fn common(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut common = Vec::new();
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        let shared = a.start.max(b.start)..a.end.min(b.end);
        if !shared.is_empty() {
            common.push(shared);
        }
        if a.end <= b.end {
            one.next();
        } else {
            other.next();
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_two_lists_are_compared() {
        let (one, other) = ([0..10, 20..30, 40..41], [5..25, 29..50]);
        assert_eq!(common(&one, &other), [5..10, 20..25, 29..30, 40..41]);
        assert_eq!(common(&other, &one), common(&one, &other));
        assert_eq!(common(&one, &[]), []);
        assert_eq!(common(&one, &[10..20, 30..40]), []);
    }
}
