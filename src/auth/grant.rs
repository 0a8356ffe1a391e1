//! What a caller may do.

use crate::auth::Error;
use crate::auth::Principal;
use crate::auth::SasPermissions;
use crate::auth::Scope;
use crate::auth::action::Action;
use crate::auth::needs::Level;
use crate::auth::needs::need;
use crate::types::Role;

/// Response headers that a signature puts in the place of a blob's own.
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
}

/// How far a shared access signature reaches.
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
    /// A service or user delegation signature: what the URL names, which was signed.
    Resource {
        /// A container with all blobs in it; else one blob.
        container: bool,
    },
}

/// In whose name a shared access signature grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Of whoever has an account key, who may do everything.
    Key,
    /// Of the holder of a user delegation key, with the role the holder has now where the signature
    /// is used; `None` may do nothing.
    Holder(Option<Role>),
}

/// What a shared access signature grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where.
    pub reach: Reach,
    /// What.
    pub letters: SasPermissions,
    /// In whose name.
    pub authority: Authority,
    /// What answers carry.
    pub overrides: Overrides,
    /// `ses`: the encryption scope of everything that is written with it.
    pub encryption_scope: Option<String>,
}

/// How far an action is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// As it stands.
    Full,
    /// Only if it replaces nothing.
    CreateOnly,
}

impl Principal {
    /// Whether whoever has this token may do it here.
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
    /// Whether the action is permitted.
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
                // A signature of a blob cannot have been made for a container's URL; this is the
                // second lock.
                if need.service.is_empty() || (need.level == Level::Container && !container) {
                    return Err(Error::Unauthorized);
                }
                need.service
            }
        };
        if !self.letters.any(wanted) || !self.letters.all(need.also) {
            return Err(Error::Permission);
        }
        if let Authority::Holder(role) = self.authority {
            let enough = role.zip(need.role).is_some_and(|(role, least)| role >= least);
            if !enough {
                return Err(Error::Permission);
            }
        }
        let replaces = need.replace.is_empty() || self.letters.any(need.replace);
        Ok(if replaces { Permit::Full } else { Permit::CreateOnly })
    }
}
