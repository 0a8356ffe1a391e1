//! The line of the audit log for a change of the partition map that the manager made.

use serde_json::Value;
use serde_json::json;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::index;
use crate::index::ChangeError;
use crate::index::Changed;
use crate::index::Plan;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;

/// The task that changes the map.
pub(super) const TASK: &str = "index balancer";

/// Adds the line of a plan that was or may have been carried out. A plan that certainly changed
/// nothing has no line.
pub(super) fn add(log: &AuditLog, plan: &Plan, done: &Result<Changed, ChangeError>) {
    match done {
        Ok(_) => line(log, plan, None),
        Err(ChangeError::Failed(_)) => line(log, plan, Some("unknown")),
        Err(ChangeError::PartlyDone(_)) => line(log, plan, Some("partly")),
        Err(
            ChangeError::NoSuchPartition
            | ChangeError::BadKeys
            | ChangeError::Striped
            | ChangeError::NotStripable
            | ChangeError::NotNeighbours
            | ChangeError::NoSuchHost
            | ChangeError::Busy(_)
            | ChangeError::Refused(_),
        ) => {}
    }
}

/// Adds the line of a move to a host of another node, which this error may have ended.
pub(super) fn of_a_move(
    log: &AuditLog,
    partition: PartitionId,
    to: HostId,
    error: Option<&index::Error>,
) {
    let plan = Plan::Move(partition, to);
    match error {
        None => line(log, &plan, None),
        Some(index::Error::Unavailable(_) | index::Error::NoAnswer(_)) => {
            line(log, &plan, Some("unknown"));
        }
        Some(
            index::Error::WrongPartition
            | index::Error::Overloaded
            | index::Error::Full(_)
            | index::Error::Corrupt(_)
            | index::Error::Refused(_),
        ) => {}
    }
}

/// Without an outcome the whole plan was carried out.
fn line(log: &AuditLog, plan: &Plan, outcome: Option<&str>) {
    if !log.is_on() {
        return;
    }
    let one = |partition: &PartitionId| partition.get().to_string();
    let (operation, resource, mut detail) = match plan {
        Plan::Split(id, keys) => ("SplitPartition", one(id), json!({ "ways": keys.len() + 1 })),
        Plan::SplitEvenly(id, ways) => ("SplitPartition", one(id), json!({ "ways": ways })),
        Plan::Stripe(id, _, stripes) => ("StripePartition", one(id), json!({ "stripes": stripes })),
        Plan::Move(id, host) => {
            let mut to = json!({ "host": host.number() });
            if host.node() != NodeId::new(0) {
                to["node"] = host.node().get().into();
            }
            ("MovePartition", one(id), to)
        }
        Plan::Merge(ids) => {
            let all: Vec<String> = ids.iter().map(one).collect();
            ("MergePartitions", all.join(","), Value::Null)
        }
    };
    if let Some(outcome) = outcome {
        detail["outcome"] = outcome.into();
    }
    let entry = Entry {
        principal: Principal::Node { task: TASK },
        operation: operation.into(),
        resource: Some(resource),
        ..Entry::default()
    };
    log.change_now(&entry, &Change { of: Thing::PartitionMap, detail });
}
