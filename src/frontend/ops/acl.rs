//! Get and Set Container ACL.

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerChange;
use crate::index::UpdateContainer;
use crate::index::record::StoredPolicy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::AccessPolicy;
use crate::protocol::model::reply::Change;
use crate::types::PublicAccess;

/// Get Container ACL.
pub(crate) async fn get(
    front: &FrontEnd,
    container: &ContainerTarget<'_>,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let record = lookup::container(&front.rows, account, name).await?;
    index::check_lease(precondition.lease, record.lease, front.env.clock.now())
        .map_err(|refusal| errors::from_index(&refusal.into(), Subject::Container))?;
    let policies = record.policies.into_iter().map(|stored| {
        let StoredPolicy { id, start, expiry, permissions } = stored;
        AccessPolicy { id, start, expiry, permissions }
    });
    Ok(Reply::ContainerAcl {
        change: Change { etag: record.etag, last_modified: record.last_modified, version: None },
        public_access: record.public_access,
        policies: policies.collect(),
    })
}

/// The settings with which Set Container ACL replaces the old ones.
#[derive(Debug)]
pub(crate) struct NewAcl {
    pub(crate) public_access: PublicAccess,
    pub(crate) policies: Vec<AccessPolicy>,
}

/// Set Container ACL. It applies to the next request.
pub(crate) async fn set(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
    new: NewAcl,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let policies = new.policies.into_iter().map(|policy| {
        let AccessPolicy { id, start, expiry, permissions } = policy;
        StoredPolicy { id, start, expiry, permissions }
    });
    let change =
        ContainerChange::Access { public_access: new.public_access, policies: policies.collect() };
    let ContainerTarget { account, name, precondition } = container;
    let guard = lookup::guard(precondition);
    let write = UpdateContainer { account: account.id, name, guard, change };
    let answer = commit::commit_holding(&front.rows, write, memory).await;
    commit::changed(answer, Subject::Container).map(Reply::ContainerChanged)
}

/// Refuses public access in an account that does not permit it.
pub(crate) fn check_switch(account: &Account, wanted: PublicAccess) -> Result<(), Refusal> {
    match wanted {
        PublicAccess::Blob | PublicAccess::Container if !account.anonymous => {
            Err(Reason::PublicAccessNotPermitted.into())
        }
        PublicAccess::Private | PublicAccess::Blob | PublicAccess::Container => Ok(()),
    }
}
