//! Splits partitions while clients work: at any border, of any partition, also one that is being recovered or full.

use std::time::Duration;

use blockyard::index::SplitError;
use blockyard::types::RoutingKey;

use crate::index::CLIENTS;
use crate::index::NAMES;
use crate::index::Session;
use crate::index::key;
use crate::rig::Trouble;
use crate::seeds::Violation;
use crate::stack::Stack;

/// The reserve of a full disk holds a log for each of so many.
const PARTITIONS_MAX: usize = 14;

/// Splits up to `times` times.
pub(crate) async fn run(stack: &Stack, session: &Session<'_>, times: u64) -> Result<(), Violation> {
    let draw = session.draw;
    for _ in 0..times {
        stack.env.clock.sleep(Duration::from_millis(draw.between(1, 60))).await;
        if stack.host.partitions() < PARTITIONS_MAX && !session.is_down() {
            split(stack, session).await?;
        }
    }
    Ok(())
}

async fn split(stack: &Stack, session: &Session<'_>) -> Result<(), Violation> {
    let draw = session.draw;
    let border = |_| {
        let (client, name) = (draw.between(0, CLIENTS - 1), draw.between(0, NAMES - 1));
        RoutingKey::blob(&key(&format!("{client}/{name}")))
    };
    let mut keys: Vec<RoutingKey> = (0..draw.between(1, 3)).map(border).collect();
    keys.sort();
    keys.dedup();
    let map = stack.router.map();
    let Some(owner) = keys.first().and_then(|key| map.owner(key.as_bytes())) else {
        return Ok(());
    };
    keys.retain(|key| owner.range.contains(key.as_bytes()) && key != owner.range.low());
    match stack.host.split(owner.id, &keys).await {
        Ok(report) => {
            session.counts.add("splits", 1);
            session.counts.add("children", report.children.len() as u64);
            Ok(())
        }
        // The router's map is as old as its last request.
        Err(SplitError::BadKeys | SplitError::NoSuchPartition) => Ok(()),
        Err(SplitError::Failed(_)) if session.plan.trouble != Trouble::None => {
            session.counts.add("splits that failed", 1);
            Ok(())
        }
        Err(SplitError::Failed(error)) if session.is_down() => {
            drop(error);
            Ok(())
        }
        Err(SplitError::Failed(error)) => Err(format!("a split failed without cause: {error}")),
    }
}
