//! Splits, merges, moves, stripes and unstripes partitions while clients work: at any boundary, and
//! any partition, even one that is being recovered.

use std::time::Duration;

use blockyard::index::ChangeError;
use blockyard::index::Changed;
use blockyard::index::NO_EXTENT_ID;
use blockyard::index::PartitionDescriptor;
use blockyard::index::RECORD_CHANGES;
use blockyard::index::TOO_MANY_RUNS;
use blockyard::types::HostId;
use blockyard::types::NodeId;
use blockyard::types::PartitionId;
use blockyard::types::RoutingKey;

use crate::index::CLIENTS;
use crate::index::NAMES;
use crate::index::Session;
use crate::index::key;
use crate::nodes::SERVERS;
use crate::rig::Failing;
use crate::rig::Trouble;
use crate::seeds::Violation;
use crate::stack::Stack;

/// The most partitions. The reserve of a full disk has room for a log of each of these. With two
/// splitters there may be three more.
const PARTITIONS_MAX: usize = 12;

/// The longest time for which a partition may have too many runs for a split.
const COMPACTED_WITHIN_SECONDS: u64 = 60;

/// Changes the map up to `times` times.
pub(crate) async fn run(stack: &Stack, session: &Session<'_>, times: u64) -> Result<(), Violation> {
    let draw = session.draw;
    for _ in 0..times {
        stack.env.clock.sleep(Duration::from_millis(draw.between(1, 60))).await;
        if session.is_down() {
            continue;
        }
        if draw.percent(25) {
            move_one(stack, session).await?;
        } else if draw.percent(45) {
            stripe_or_unstripe(stack, session).await?;
        } else if stack.partitions() > 1 && draw.percent(40) {
            merge(stack, session).await?;
        } else if stack.partitions() < PARTITIONS_MAX {
            split(stack, session).await?;
        }
    }
    Ok(())
}

async fn move_one(stack: &Stack, session: &Session<'_>) -> Result<(), Violation> {
    let map = stack.router.map();
    let one = session.draw.one(map.partitions()).map(|one| (one.id, one.host));
    let Some((id, host)) = one else { return Ok(()) };
    let other = HostId::of(host.node(), 1 - host.number());
    let to = if host.node() == NodeId::new(0) || session.draw.percent(50) {
        other
    } else {
        HostId::of(NodeId::new(*session.draw.one(&SERVERS).unwrap()), host.number())
    };
    let done = stack.change_map(id, async |index| index.move_to(id, to).await).await;
    judge(session, "moves", done)
}

async fn merge(stack: &Stack, session: &Session<'_>) -> Result<(), Violation> {
    let map = stack.router.map();
    let count = session.draw.between(2, 3);
    let first = session.draw.between(0, map.partitions().len() as u64 - 1);
    let first = usize::try_from(first).unwrap();
    let few = map.partitions().iter().skip(first).take(usize::try_from(count).unwrap());
    let ids: Vec<PartitionId> = few.map(|partition| partition.id).collect();
    let done = stack.change_map(ids[0], async |index| index.merge(&ids).await).await;
    judge(session, "merges", done)
}

/// Unstripes a range that has stripes, or stripes one if there is none.
async fn stripe_or_unstripe(stack: &Stack, session: &Session<'_>) -> Result<(), Violation> {
    let map = stack.router.map();
    let is_stripe = |one: &&PartitionDescriptor| one.keys.stripe().is_some();
    let striped: Vec<_> = map.partitions().iter().filter(is_stripe).collect();
    let stripe = session.draw.one(&striped).filter(|_| session.draw.percent(70));
    let one = RoutingKey::blob(&key(&format!("{}/0", session.draw.between(0, CLIENTS - 1))));
    let owners = map.at(stripe.map_or(&one, |stripe| stripe.keys.range().low()).as_bytes());
    let ids: Vec<PartitionId> = owners.iter().map(|owner| owner.id).collect();
    match ids.as_slice() {
        [_] if !owners.iter().all(|one| one.keys.range().lies_in_a_container()) => {
            let name = key("x");
            let container = RoutingKey::container_range(name.account, name.container);
            let mut borders = vec![container.low().clone()];
            borders.extend(container.high().cloned());
            split_at(stack, session, borders).await
        }
        [one] => {
            let stripes = session.draw.between(2, 4);
            if stack.partitions() + usize::try_from(stripes).unwrap() > PARTITIONS_MAX {
                return Ok(());
            }
            let stripes = u8::try_from(stripes).unwrap();
            let stripe = || stack.change_map(*one, async |index| index.stripe(*one, stripes).await);
            let done = once_compacted(stack, session, stripe).await?;
            judge(session, "stripings", done)
        }
        stripes => {
            let done = stack.change_map(stripes[0], async |index| index.merge(stripes).await).await;
            judge(session, "unstripings", done)
        }
    }
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
    split_at(stack, session, keys).await
}

async fn split_at(
    stack: &Stack,
    session: &Session<'_>,
    mut keys: Vec<RoutingKey>,
) -> Result<(), Violation> {
    let map = stack.router.map();
    let Some(owner) = keys.first().and_then(|key| map.owner(key.as_bytes())) else {
        return Ok(());
    };
    let range = owner.keys.range();
    keys.retain(|key| range.contains(key.as_bytes()) && key != range.low());
    let split = || stack.change_map(owner.id, async |index| index.split(owner.id, &keys).await);
    let done = once_compacted(stack, session, split).await?;
    judge(session, "splits", done)
}

/// Tries a change again while there are more runs than one transaction can share. Compaction
/// reduces their number, unless it waits for stalled syncs or fails because of the session's fault.
async fn once_compacted<F>(
    stack: &Stack,
    session: &Session<'_>,
    change: impl Fn() -> F,
) -> Result<Option<Result<Changed, ChangeError>>, Violation>
where
    F: Future<Output = Option<Result<Changed, ChangeError>>>,
{
    for _ in 0..COMPACTED_WITHIN_SECONDS {
        match change().await {
            Some(Err(ChangeError::Busy(reason))) if reason == TOO_MANY_RUNS => {
                session.counts.add("changes put off for too many runs", 1);
                stack.env.clock.sleep(Duration::from_secs(1)).await;
            }
            done => return Ok(done),
        }
    }
    let stalls = session.plan.trouble == Trouble::Stalls;
    if stalls || session.excuses(Failing::MapChange) || session.is_down() {
        return Ok(Some(Err(ChangeError::Busy(TOO_MANY_RUNS.into()))));
    }
    Err(format!("there were too many runs to share for {COMPACTED_WITHIN_SECONDS} s"))
}

fn judge(
    session: &Session<'_>,
    what: &str,
    done: Option<Result<Changed, ChangeError>>,
) -> Result<(), Violation> {
    // Its process was killed.
    let Some(done) = done else { return Ok(()) };
    match done {
        Ok(changed) => {
            session.counts.add(what, 1);
            session
                .counts
                .add(&format!("partitions made by {what}"), changed.partitions.len() as u64);
            Ok(())
        }
        // The router's map may be stale.
        Err(
            ChangeError::BadKeys
            | ChangeError::NoSuchPartition
            | ChangeError::NotNeighbours
            | ChangeError::Striped
            | ChangeError::NotStripable,
        ) => Ok(()),
        // Ids run out, or their record keeps changing, only when something else fails.
        Err(ChangeError::Busy(reason))
            if [NO_EXTENT_ID, RECORD_CHANGES].contains(&&*reason)
                && !session.excuses(Failing::MapChange)
                && !session.is_down() =>
        {
            Err(format!("{what} failed without cause: {reason}"))
        }
        Err(ChangeError::Busy(_)) => {
            session.counts.add(&format!("{what} put off"), 1);
            Ok(())
        }
        Err(ChangeError::NoSuchHost) => Err("there are two hosts".to_owned()),
        // The cause is judged, as for a merge that moved no partition.
        Err(ChangeError::PartlyDone(cause)) => judge(session, what, Some(Err(*cause))),
        Err(ChangeError::Refused(_) | ChangeError::Failed(_))
            if session.excuses(Failing::MapChange) =>
        {
            session.counts.add(&format!("{what} that failed"), 1);
            Ok(())
        }
        Err(ChangeError::Refused(_) | ChangeError::Failed(_)) if session.is_down() => Ok(()),
        Err(ChangeError::Refused(error) | ChangeError::Failed(error)) => {
            Err(format!("{what} failed without cause: {error}"))
        }
    }
}
