//! Changes that are a variant of [`Write`] with several fields: those of accounts, and of reclaim.

use bytes::Bytes;

use crate::index::api::AccountChange;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::api::typed::WriteRequest;
use crate::index::record::AccountRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Declares a request for each of these variants of [`Write`], with the same fields.
macro_rules! commands {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* } => $reply:ty:
            $answer:pat => $value:expr;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $name {
                $($(#[$of])* pub $field: $type,)*
            }

            impl From<$name> for Write {
                fn from($name { $($field),* }: $name) -> Self {
                    Self::$name { $($field),* }
                }
            }

            impl WriteRequest for $name {
                type Reply = $reply;

                fn reply(answer: WriteReply) -> Option<$reply> {
                    if let $answer = answer { Some($value) } else { None }
                }
            }
        )*

        /// Whether an answer has the type that callers of the change expect.
        #[cfg(test)]
        pub(super) fn is_answer(change: &Write, answer: WriteReply) -> bool {
            $(
                if let Write::$name { .. } = change {
                    return $name::reply(answer).is_some();
                }
            )*
            true
        }
    };
}

commands! {
    /// Makes an account under an id already issued; one that exists is left as it is and returned.
    CreateAccount {
        /// The name.
        name: AccountName,
        /// A fresh id.
        id: AccountId,
        /// Whether its containers may have public access.
        anonymous: bool,
    } => AccountRecord: WriteReply::Account(record) => *record;
    /// Changes an account.
    UpdateAccount {
        /// The name.
        name: AccountName,
        /// The change.
        change: AccountChange,
    } => AccountRecord: WriteReply::Account(record) => *record;
    /// Removes an account's row, if it is still that account's. Answers the row.
    DeleteAccount {
        /// The name.
        name: AccountName,
        /// The account.
        id: AccountId,
    } => AccountRecord: WriteReply::Account(record) => *record;
    /// Drops staged blocks of a blob last staged to before `before`.
    ExpireStaged {
        /// The blob's routing key.
        key: RoutingKey,
        /// Only if still not staged to since.
        before: Timestamp,
    } => (): WriteReply::Done => ();
    /// Removes soft-deleted rows that can no longer be restored.
    ExpireDeleted {
        /// The routing key of the blob or the container.
        key: RoutingKey,
        /// Also what can be restored.
        all: bool,
    } => (): WriteReply::Done => ();
    /// Removes up to `limit` blobs' rows of a deleted container. Answers where to go on; `None`
    /// when the container has no rows left in this partition.
    PurgeContainer {
        /// The account.
        account: AccountId,
        /// The dead container.
        container: ContainerId,
        /// Where to start: a position inside the partition.
        from: Bytes,
        /// Blobs at most.
        limit: usize,
    } => Option<Bytes>: WriteReply::Purged { next } => next;
    /// Forgets that a container was deleted, after all its rows are gone.
    ForgetContainer {
        /// The account.
        account: AccountId,
        /// The dead container.
        container: ContainerId,
    } => (): WriteReply::Done => ();
    /// The tag index shows what these work rows say.
    ForgetTagWork {
        /// Rows of one partition.
        rows: Vec<Bytes>,
    } => (): WriteReply::Done => ();
    /// These garbage rows have been freed.
    ForgetGarbage {
        /// Row keys of one partition. One that stands for a layer of pages comes alone.
        keys: Vec<Bytes>,
    } => (): WriteReply::Done => ();
    /// Commits an empty change, with which a process settles earlier writes: the partition does not
    /// carry them out any more (ADR 0058).
    Settle {
        /// A key of the partition.
        key: RoutingKey,
    } => (): WriteReply::Done => ();
    /// Commits an empty change, which decides earlier writes of unknown outcome.
    Prove {} => (): WriteReply::Done => ();
}
