//! Role assignments. They are kept in the account's row and apply from the next request on.

use serde::Deserialize;
use serde::Serialize;

use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::types::ContainerName;
use crate::types::PrincipalKind;
use crate::types::Role;
use crate::types::RoleAssignment;
use crate::types::USER_ISSUER;

use super::AccountStore;
use super::StoreError;
use super::parse;

/// The largest length in bytes of an issuer, a subject or a group.
const TEXT_BYTES_MAX: usize = 512;

/// The kind of the holder of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssigneeKind {
    /// A subject of tokens of an issuer.
    Subject,
    /// A group of an issuer.
    Group,
    /// A user of the account.
    User,
}

/// A role assignment in requests and answers of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssignmentView {
    /// `reader`, `contributor` or `owner`; Azure's names are accepted too.
    pub role: String,
    /// The kind of `principal`.
    pub kind: AssigneeKind,
    /// The subject, the group, or the user's name.
    pub principal: String,
    /// The issuer of the principal's tokens; `None` for a user. Optional while one issuer is
    /// configured.
    #[serde(default)]
    pub issuer: Option<String>,
    /// The container the role is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl AssignmentView {
    /// The view of an assignment.
    fn of(assignment: &RoleAssignment) -> Self {
        let is_user = assignment.issuer == USER_ISSUER;
        Self {
            role: assignment.role.name().to_owned(),
            kind: match assignment.kind {
                PrincipalKind::Subject if is_user => AssigneeKind::User,
                PrincipalKind::Subject => AssigneeKind::Subject,
                PrincipalKind::Group => AssigneeKind::Group,
            },
            principal: assignment.principal.clone(),
            issuer: (!is_user).then(|| assignment.issuer.clone()),
            container: assignment.container.as_ref().map(|name| name.as_str().to_owned()),
        }
    }
}

impl AccountStore {
    /// The role assignments of an account, in the order they were made.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn assignments(&self, name: &str) -> Result<Vec<AssignmentView>, StoreError> {
        let record = self.record(&parse(name)?).await?;
        Ok(record.assignments.iter().map(AssignmentView::of).collect())
    }

    /// Gives a role. Giving it again changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn assign(
        &self,
        name: &str,
        wanted: &AssignmentView,
    ) -> Result<AssignmentView, StoreError> {
        let name = parse(name)?;
        let assignment = self.assignment(wanted)?;
        // Before the user is looked up, which may be deleted meanwhile.
        let turn = self.turn().await;
        if assignment.issuer == USER_ISSUER {
            self.check_user(&name, &assignment.principal).await?;
        } else if !self.issuers.contains(&assignment.issuer) {
            let configured = self.issuers.join(", ");
            return Err(StoreError::UnknownIssuer(assignment.issuer, configured));
        }
        let given = self.record(&name).await?.assignments;
        if given.len() >= AccountRecord::ASSIGNMENTS_MAX && !given.contains(&assignment) {
            return Err(StoreError::TooManyAssignments(name.as_str().to_owned()));
        }
        self.change(&turn, &name, AccountChange::Assign(assignment.clone())).await?;
        let role = assignment.role.name();
        tracing::info!(account = name.as_str(), role, who = assignment.principal, "role assigned");
        Ok(AssignmentView::of(&assignment))
    }

    /// Revokes a role. Signatures that its holder made with user delegation keys lose it too.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn unassign(
        &self,
        name: &str,
        unwanted: &AssignmentView,
    ) -> Result<AssignmentView, StoreError> {
        let name = parse(name)?;
        // The issuer may have left the configuration since.
        let assignment = self.assignment(unwanted)?;
        let turn = self.turn().await;
        if !self.record(&name).await?.assignments.contains(&assignment) {
            return Err(StoreError::NoAssignment(name.as_str().to_owned()));
        }
        self.change(&turn, &name, AccountChange::Unassign(assignment.clone())).await?;
        let role = assignment.role.name();
        tracing::info!(account = name.as_str(), role, who = assignment.principal, "role revoked");
        Ok(AssignmentView::of(&assignment))
    }

    /// Checks and converts an assignment from a request.
    fn assignment(&self, sent: &AssignmentView) -> Result<RoleAssignment, StoreError> {
        let role = Role::named(&sent.role).ok_or_else(|| StoreError::Role(sent.role.clone()))?;
        let container = sent.container.as_deref().map(|text| {
            ContainerName::new(text).map_err(|_| StoreError::ContainerName(text.to_owned()))
        });
        let issuer = match (sent.kind, &sent.issuer, self.issuers.as_ref()) {
            (AssigneeKind::User, None, _) => USER_ISSUER.to_owned(),
            (AssigneeKind::User, Some(_), _) => return Err(StoreError::UserIssuer),
            (_, Some(issuer), _) if issuer == USER_ISSUER => return Err(StoreError::UserIssuer),
            (_, Some(issuer), _) => issuer.clone(),
            (_, None, [only]) => only.clone(),
            (_, None, []) => return Err(StoreError::NoIssuer),
            (_, None, several) => return Err(StoreError::WhichIssuer(several.join(", "))),
        };
        for text in [&issuer, &sent.principal] {
            if text.is_empty() || text.len() > TEXT_BYTES_MAX {
                return Err(StoreError::Principal);
            }
        }
        let kind = match sent.kind {
            AssigneeKind::Subject | AssigneeKind::User => PrincipalKind::Subject,
            AssigneeKind::Group => PrincipalKind::Group,
        };
        let principal = sent.principal.clone();
        Ok(RoleAssignment { issuer, kind, principal, role, container: container.transpose()? })
    }
}
