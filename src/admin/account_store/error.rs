//! Why commands on accounts are refused.

use thiserror::Error as ThisError;

use crate::auth::KeyError;
use crate::auth::UnsealError;
use crate::coordinator;
use crate::index;
use crate::types::NoSuchType;

/// Why a command is refused; the text says what to do.
#[derive(Debug, ThisError)]
pub enum StoreError {
    /// The name breaks the rule.
    #[error("`{0}` is not an account name: 3 to 24 lower-case letters and digits")]
    Name(String),
    /// A key is refused.
    #[error("{0}; leave the key out and the node makes a good one")]
    Key(#[from] KeyError),
    /// The key is the published development key.
    #[error(
        "this is the published development key: leave the key out and the node makes a good one"
    )]
    Published,
    /// There is no such account.
    #[error("there is no account {0}: `blockyard account list` shows them")]
    NotFound(String),
    /// The account exists already.
    #[error(
        "account {0} exists: `blockyard account show --keys {0}` has its keys, `account rotate` makes new ones"
    )]
    Exists(String),
    /// Its keys come from the configuration, so commands cannot change them.
    #[error(
        "account {0} has its keys from the configuration (--account): change them there and restart"
    )]
    Configured(String),
    /// There is no such role.
    #[error("`{0}` is not a role: reader, contributor or owner")]
    Role(String),
    /// The container's name breaks the rule.
    #[error("`{0}` is not a container name")]
    ContainerName(String),
    /// A user's name breaks the rule.
    #[error("`{0}` is not a user name: 1 to 64 letters, digits and +=,.@_-")]
    UserName(String),
    /// A user's display name breaks the rule.
    #[error("a display name has 1 to 128 characters, and no control characters")]
    DisplayName,
    /// The name of an encryption scope breaks the rule.
    #[error("`{0}` is not the name of an encryption scope: 3 to 63 letters, digits and hyphens")]
    ScopeName(String),
    /// There is no such encryption scope with a key.
    #[error(
        "account {0} has no encryption scope {1} with a key: `blockyard scope list {0}` shows them"
    )]
    NoScope(String, String),
    /// The encryption scope exists already.
    #[error("account {0} has the encryption scope {1} already; its key cannot be replaced")]
    ScopeExists(String, String),
    /// The account has too many.
    #[error("account {0} has as many encryption scopes as an account may have, 1000")]
    TooManyScopes(String),
    /// The id of an access key breaks the rule.
    #[error(
        "`{0}` is not an access key id: 3 to 128 letters, digits and ._-, and not an account name; leave it out and the \
         node makes one"
    )]
    AccessKeyId(String),
    /// An access key of this id exists.
    #[error("the access key id {0} is in use: leave it out and the node makes a new one")]
    AccessKeyTaken(String),
    /// A secret of an access key breaks the rule.
    #[error(
        "a secret key has 16 to 128 printable characters of ASCII; leave it out and the node makes a good one"
    )]
    SecretKey,
    /// There is no such user.
    #[error("account {0} has no user {1}: `blockyard user list {0}` shows them")]
    NoUser(String, String),
    /// There is such a user already.
    #[error("account {0} has a user {1}: `blockyard user show --keys {0}/{1}` has its keys")]
    UserExists(String, String),
    /// The user comes from the configuration, so commands cannot change it.
    #[error("user {0}/{1} is in the configuration (--user): change it there and restart")]
    UserConfigured(String, String),
    /// The account has the most users.
    #[error(
        "account {0} has 1,000 users, more are not kept: delete some with `blockyard user delete`"
    )]
    TooManyUsers(String),
    /// An issuer was named for a user of the account.
    #[error("a user of the account has no issuer: leave the issuer out")]
    UserIssuer,
    /// The issuer, subject or group is empty or too long.
    #[error("an issuer, a subject or a group has 1 to 512 bytes")]
    Principal,
    /// The node has no issuer of bearer tokens.
    #[error("the node takes no tokens: start it with --oidc 'issuer=URL', or name an issuer")]
    NoIssuer,
    /// Several issuers are configured, and the request names none.
    #[error("the node has several issuers, say which one with --issuer: {0}")]
    WhichIssuer(String),
    /// The node does not accept tokens of this issuer.
    #[error("the node takes no tokens of {0}; its issuers are, as --oidc has them: {1}")]
    UnknownIssuer(String, String),
    /// The account has the most role assignments.
    #[error(
        "account {0} has 1,000 role assignments, more are not kept: revoke some with `blockyard account ungrant`, or \
         assign roles to groups"
    )]
    TooManyAssignments(String),
    /// There is no such role assignment.
    #[error("account {0} has no such role assignment: `blockyard account grants {0}` shows them")]
    NoAssignment(String),
    /// The account still has containers.
    #[error(
        "account {0} still has containers, such as {1}: delete them first, or give --force to delete all of its data"
    )]
    NotEmpty(String, String),
    /// A container has object lock, so it is not deleted by force.
    #[error(
        "container {1} of account {0} has object lock: --force does not delete it; delete its blobs and \
         versions once their retention has ended, then the container"
    )]
    Locked(String, String),
    /// Object lock needs versions.
    #[error(
        "account {0} does not keep versions, which object lock needs: give --versioning on too"
    )]
    NotVersioned(String),
    /// The service has no such account.
    #[error("{0}: name both with --kind and --sku")]
    Type(#[from] NoSuchType),
    /// Blobs of the account may have tiers that accounts of the other type do not have.
    #[error(
        "account {0} has containers, such as {1}, and an account of this type has other tiers: make a new account of \
         this type"
    )]
    OtherTiers(String, String),
    /// A container cannot be deleted.
    #[error("container {0} cannot be deleted: {1}")]
    Container(String, index::Error),
    /// A stored key cannot be shown.
    #[error("a secret of account {0} cannot be read: {1}")]
    Sealed(String, UnsealError),
    /// The operating system returned no random bytes.
    #[error("no random bytes for a key can be read: {0}")]
    Random(String),
    /// The index failed or refused the change.
    #[error("the index refuses: {0}")]
    Index(#[from] index::Error),
    /// The coordinator issued no account id.
    #[error("the coordinator refuses: {0}")]
    Coordinator(coordinator::Error),
}

impl StoreError {
    /// Whether it is known that nothing was changed in the end.
    pub(super) const fn is_answered(&self) -> bool {
        let (Self::Index(error) | Self::Container(_, error)) = self else { return true };
        matches!(error, index::Error::Refused(_) | index::Error::Overloaded | index::Error::Full(_))
    }
}

impl From<coordinator::Error> for StoreError {
    fn from(error: coordinator::Error) -> Self {
        if error.is_full() {
            index::Error::Full(index::Full::Coordinator(error.to_string())).into()
        } else {
            Self::Coordinator(error)
        }
    }
}
