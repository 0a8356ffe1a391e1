//! The permissions of a caller.

use crate::auth::Error;
use crate::auth::Principal;
use crate::auth::SasPermissions;
use crate::auth::Scope;
use crate::auth::action::Action;
use crate::auth::needs::Level;
use crate::auth::needs::need;
use crate::types::Role;

/// Response headers of a signature or of a signed query, which replace those of the blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `rscc`.
    pub cache_control: Option<String>,
    /// `rscd`.
    pub content_disposition: Option<String>,
    /// `rsce`.
    pub content_encoding: Option<String>,
    /// `rscl`.
    pub content_language: Option<String>,
    /// `rsct`.
    pub content_type: Option<String>,
    /// `Expires`. A signature does not have it; the query of an S3 request has.
    pub expires: Option<String>,
}

/// The scope of a shared access signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// An account signature: the services and resource types it names.
    Account {
        /// `ss` has b.
        blob: bool,
        /// `srt` has s: operations on the account.
        service: bool,
        /// `srt` has c: operations on containers.
        container: bool,
        /// `srt` has o: operations on blobs.
        object: bool,
    },
    /// A service or user delegation signature: the signed resource, which is that of the URL.
    Resource {
        /// A container with all of its blobs; otherwise one blob.
        container: bool,
    },
    /// A user delegation signature of a directory: the blob of that name, those below it, and lists
    /// of them.
    Directory,
}

/// On whose authority a shared access signature grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The holder of an account key, who may do everything.
    Key,
    /// The holder of a user delegation key, with the holder's current role where the signature is
    /// used; `None` may do nothing.
    Holder(Option<Role>),
}

/// The permissions of a shared access signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The scope.
    pub reach: Reach,
    /// The permissions.
    pub permissions: SasPermissions,
    /// On whose authority.
    pub authority: Authority,
    /// Headers of the responses.
    pub overrides: Overrides,
    /// `ses`: the encryption scope of all writes with the signature.
    pub encryption_scope: Option<String>,
    /// The name of the directory. Lists have to have a prefix below it.
    pub directory: Option<String>,
    /// Whether `c` is enough for Put Block, as since `sv=2026-04-06`.
    pub stages_with_create: bool,
}

/// How far an action is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Without a condition.
    Full,
    /// Only if it replaces no existing blob.
    CreateOnly,
}

impl Principal {
    /// Checks that the holder of this token may do this here.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::Permission`].
    pub fn permits(&self, action: Action, scope: Scope<'_>) -> Result<(), Error> {
        let least = need(action).role.ok_or(Error::Unauthorized)?;
        let role = self.role(scope);
        if role.is_some_and(|role| role >= least) { Ok(()) } else { Err(Error::Permission) }
    }
}

impl Grant {
    /// Checks that a list with this prefix shows only blobs below its directory, if it has one.
    ///
    /// # Errors
    /// [`Error::Unauthorized`].
    pub fn permits_prefix(&self, prefix: &str) -> Result<(), Error> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let below = prefix.strip_prefix(directory.as_str());
        if below.is_some_and(|rest| rest.starts_with('/')) {
            Ok(())
        } else {
            Err(Error::Unauthorized)
        }
    }

    /// Checks that the action is permitted. For a list, see also [`Self::permits_prefix`].
    ///
    /// # Errors
    /// [`Error::Service`], [`Error::ResourceType`], [`Error::Permission`], [`Error::Unauthorized`].
    pub fn permits(&self, action: Action) -> Result<Permit, Error> {
        let need = need(action);
        let wanted = match self.reach {
            Reach::Account { blob, service, container, object } => {
                if !blob {
                    return Err(Error::Service);
                }
                let typed = match need.level {
                    Level::Service => service,
                    Level::Container => container,
                    Level::Object => object,
                    Level::Any => true,
                };
                if !typed {
                    return Err(Error::ResourceType);
                }
                if need.account.is_empty() {
                    return Err(Error::Unauthorized);
                }
                need.account
            }
            Reach::Resource { container } => {
                // The signature of a blob does not match for a container's URL anyway; this is a
                // second check.
                if need.service.is_empty() || (need.level == Level::Container && !container) {
                    return Err(Error::Unauthorized);
                }
                need.service
            }
            Reach::Directory => {
                let lists = matches!(action, Action::ListBlobs { .. });
                // A search is not bounded by a directory.
                let searches = matches!(action, Action::FilterByTags);
                let below = (need.level == Level::Object && !searches)
                    || matches!(action, Action::DescribeAccount);
                if need.service.is_empty() || !(below || lists) {
                    return Err(Error::Unauthorized);
                }
                need.service
            }
        };
        let of_old = matches!(action, Action::StageBlock) && !self.stages_with_create;
        let wanted = if of_old { SasPermissions::of("w") } else { wanted };
        if !self.permissions.any(wanted) || !self.permissions.all(need.also) {
            return Err(Error::Permission);
        }
        if let Authority::Holder(role) = self.authority {
            let enough = role.zip(need.role).is_some_and(|(role, least)| role >= least);
            if !enough {
                return Err(Error::Permission);
            }
        }
        let replaces = need.replace.is_empty() || self.permissions.any(need.replace);
        Ok(if replaces { Permit::Full } else { Permit::CreateOnly })
    }
}
