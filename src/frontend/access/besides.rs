//! Actions that a sender with a role needs besides the main action of an operation: some parts of
//! operations need a permission of their own.

use crate::auth;
use crate::auth::Action;
use crate::auth::Principal;
use crate::auth::Scope;
use crate::frontend::access::actions::action;
use crate::frontend::access::actions::brings;
use crate::frontend::access::actions::protects;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::user_caller::UserCaller;
use crate::frontend::ops::grants::new_acl;
use crate::protocol::model::Operation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::UploadOperation;
use crate::types::ContainerName;

/// All actions for which an operation needs permission: its main action, and those for tags and
/// access that it sets or shows. A shared access signature has permissions for these.
pub(crate) fn demanded(operation: &Operation) -> impl Iterator<Item = Action> {
    let tags = sets_tags(operation).then_some(Action::WriteTags);
    let opens = new_acl(operation).is_some_and(|acl| acl.is_public());
    let access = opens.then_some(match operation {
        Operation::Container(_) => Action::Policy,
        Operation::Account(_)
        | Operation::Content(_)
        | Operation::Blob(_)
        | Operation::Upload(_) => Action::BlobPolicy,
    });
    let shown = matches!(
        operation,
        Operation::Container(ContainerOperation::ListBlobs(list)) if list.tags
    );
    let shown = shown.then_some(Action::ReadTags);
    let locks = protects(operation).then_some(Action::WriteLock);
    std::iter::once(action(operation)).chain(tags).chain(access).chain(shown).chain(locks)
}

/// Whether the request sets tags. S3 copies the tags of a source by default; this is decided once
/// the source is known.
fn sets_tags(operation: &Operation) -> bool {
    match operation {
        Operation::Content(
            ContentOperation::PutBlob { tags, .. } | ContentOperation::PutBlockList { tags, .. },
        ) => !tags.is_empty(),
        Operation::Content(ContentOperation::PutBlobFromUrl(put)) => put.tags.sets_any(),
        Operation::Content(ContentOperation::CopyBlob(copy)) => copy.tags.sets_any(),
        Operation::Content(ContentOperation::CopyNamed(copy)) => brings(&copy.tags),
        Operation::Upload(UploadOperation::Create(create)) => !create.tags.is_empty(),
        Operation::Account(_)
        | Operation::Container(_)
        | Operation::Content(_)
        | Operation::Blob(_)
        | Operation::Upload(_) => false,
    }
}

/// An optional action, which the operation carries out only if the sender may.
pub(crate) fn optional(operation: &Operation) -> Option<Action> {
    matches!(operation, Operation::Container(ContainerOperation::DeleteBlobs(_)))
        .then_some(Action::DeleteVersion)
}

/// Notes in an operation the permissions that it may need later: to delete versions that the
/// document names, or to copy the tags of a source.
pub(super) fn grant_optional(operation: &mut Operation, caller: &Caller, scope: Scope<'_>) {
    match operation {
        Operation::Container(ContainerOperation::DeleteBlobs(deletions)) => {
            deletions.may_delete_versions = may(caller, Action::DeleteVersion, scope);
        }
        Operation::Content(ContentOperation::CopyNamed(copy)) => {
            let container: &ContainerName = &copy.source.path.container;
            let source = Scope { container: Some(container.as_str()), ..scope };
            copy.may_copy_tags =
                may(caller, Action::ReadTags, source) && may(caller, Action::WriteTags, scope);
        }
        Operation::Account(_)
        | Operation::Container(_)
        | Operation::Content(_)
        | Operation::Blob(_)
        | Operation::Upload(_) => {}
    }
}

fn may(caller: &Caller, action: Action, scope: Scope<'_>) -> bool {
    match caller {
        Caller::Key => true,
        Caller::Principal(principal) => principal.permits(action, scope).is_ok(),
        Caller::User(user) => user.permits(action, scope).is_ok(),
        Caller::Signature(..) | Caller::Outsider | Caller::Anyone => false,
    }
}

/// Whether a principal has all permissions that an operation needs.
///
/// # Errors
/// [`auth::Error`].
pub(super) fn permits(
    principal: &Principal,
    operation: &Operation,
    scope: Scope<'_>,
) -> Result<(), auth::Error> {
    if let Some(deleted) = restored(operation, scope) {
        principal.permits(Action::WriteContainer, deleted)?;
    }
    demanded(operation).try_for_each(|action| principal.permits(action, scope))
}

/// The container that an operation restores, perhaps under another name: the sender needs the same
/// permission for both names.
fn restored<'a>(operation: &'a Operation, scope: Scope<'a>) -> Option<Scope<'a>> {
    let Operation::Container(ContainerOperation::RestoreContainer { deleted, .. }) = operation
    else {
        return None;
    };
    Some(Scope { container: Some(deleted.as_str()), ..scope })
}

/// As [`permits`], for a user. It owns the container that it makes.
///
/// # Errors
/// [`auth::Error`].
pub(super) fn user_permits(
    user: &UserCaller,
    operation: &Operation,
    scope: Scope<'_>,
) -> Result<(), auth::Error> {
    if let Some(deleted) = restored(operation, scope) {
        user.permits(Action::WriteContainer, deleted)?;
    }
    let makes = user.user.is_some()
        && matches!(operation, Operation::Container(ContainerOperation::CreateContainer { .. }));
    let mut demanded = demanded(operation).filter(|action| !makes || *action != Action::Policy);
    demanded.try_for_each(|action| user.permits(action, scope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::TrustedIssuer;
    use crate::types::PrincipalKind;
    use crate::types::Role;
    use crate::types::RoleAssignment;
    use crate::types::Timestamp;

    #[test]
    fn restoring_needs_the_right_to_both_names() {
        let name = |text| ContainerName::new(text).unwrap();
        let principal = Principal {
            issuer: TrustedIssuer { name: "i".to_owned(), accounts: Vec::new() },
            object: "s".to_owned(),
            tenant: String::new(),
            claimed: None,
            groups: Vec::new(),
        };
        let role = |container| RoleAssignment {
            issuer: "i".to_owned(),
            kind: PrincipalKind::Subject,
            principal: "s".to_owned(),
            role: Role::Contributor,
            container: Some(name(container)),
        };
        let restore = |deleted| {
            Operation::Container(ContainerOperation::RestoreContainer {
                container: name("mine"),
                deleted: name(deleted),
                since: Timestamp::ZERO,
            })
        };
        let assignments = [role("mine"), role("also")];
        let scope = Scope { account: "acct", container: Some("mine"), assignments: &assignments };
        assert!(permits(&principal, &restore("mine"), scope).is_ok());
        assert!(permits(&principal, &restore("also"), scope).is_ok());
        assert!(permits(&principal, &restore("secret"), scope).is_err());
    }
}
