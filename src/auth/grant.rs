//! What a caller is granted, and what an operation needs.

use crate::auth::Error;
use crate::auth::Principal;
use crate::auth::SasPermissions;
use crate::auth::Scope;
use crate::types::Role;

/// Response headers of a signature, which replace those of the blob.
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

/// What a shared access signature grants.
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
}

/// The resource that an operation acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The account.
    Service,
    /// A container.
    Container,
    /// A blob.
    Object,
    /// The resource of the URL, whatever it is.
    Any,
}

/// What an operation needs: a row of the front end's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The resource that it acts on.
    pub level: Level,
    /// An account signature must have one of these permissions.
    pub account: SasPermissions,
    /// A service signature must have one of these permissions. If there are none, no service
    /// signature suffices.
    pub service: SasPermissions,
    /// A signature must have all of these permissions too.
    pub also: SasPermissions,
    /// To replace an existing blob, a signature must have one of these permissions; none when the
    /// operation replaces nothing.
    pub replace: SasPermissions,
    /// The lowest role that permits it to a caller with a token; `None` if no token suffices.
    pub role: Option<Role>,
    /// The lowest level of public access that permits it to anonymous callers.
    pub anonymous: Option<Exposure>,
}

/// A level of public access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// Blobs can be read.
    Blob,
    /// The container can be read and listed too.
    Container,
}

/// How far an operation is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Without a condition.
    Full,
    /// Only if it replaces no existing blob.
    CreateOnly,
}

impl Principal {
    /// Checks that the holder of this token may carry out the operation here.
    ///
    /// # Errors
    /// [`Error::Unauthorized`], [`Error::Permission`].
    pub fn permits(&self, need: &Need, scope: Scope<'_>) -> Result<(), Error> {
        let least = need.role.ok_or(Error::Unauthorized)?;
        let role = self.role(scope);
        if role.is_some_and(|role| role >= least) { Ok(()) } else { Err(Error::Permission) }
    }
}

impl Grant {
    /// Checks that the operation is permitted.
    ///
    /// # Errors
    /// [`Error::Service`], [`Error::ResourceType`], [`Error::Permission`], [`Error::Unauthorized`].
    pub fn permits(&self, need: &Need) -> Result<Permit, Error> {
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
        };
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
