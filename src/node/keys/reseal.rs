//! Seals secrets in rows under the active master key: plain secrets of older releases, and after a
//! rotation secrets under the retired key. Content is never rewritten.

use bytes::Bytes;

use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::frontend::Secrets;
use crate::frontend::accounts::AccountRows;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::PendingCopy;
use crate::index::ReadCopyJobs;
use crate::index::ResealCopy;
use crate::index::Router;
use crate::index::UpdateAccount;
use crate::index::WriteRequest;
use crate::node::error::NodeError;
use crate::types::AccountName;
use crate::types::Secret;

/// Pending copies read at a time.
const PAGE: usize = 1000;

/// The result of resealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resealed {
    /// Secrets that were sealed.
    pub secrets: usize,
    /// Damaged secrets, which stay as they are.
    pub damaged: usize,
    /// Whether a partition that could not be read or changed may have more such secrets.
    pub incomplete: bool,
}

/// Seals all secrets that are not under the active key. Safe while the node serves: a secret that
/// is replaced meanwhile is not changed. Partitions that cannot be read or changed now are skipped:
/// [`Resealed::incomplete`].
///
/// # Errors
/// [`NodeError::Secret`] for a secret under a key that the ring lacks, [`NodeError::Index`].
pub(crate) async fn reseal(router: &Router, secrets: &Secrets) -> Result<Resealed, NodeError> {
    let mut done = Resealed::default();
    let found = AccountRows::read(router, &[AccountRows::table()]).await?;
    for unread in &found.unread {
        let partition = unread.partition;
        tracing::warn!(
            %partition,
            "accounts cannot be read; their secrets are sealed later: {unread}"
        );
        done.incomplete = true;
    }
    for (name, record) in found.rows {
        let pairs = account(&name, &record, secrets, &mut done)?;
        if !pairs.is_empty() {
            let count = pairs.len();
            let change = AccountChange::Reseal(pairs);
            let write = UpdateAccount { name, change };
            if changed(router, write, &mut done).await? {
                done.secrets += count;
            }
        }
    }
    copies(router, secrets, &mut done).await?;
    Ok(done)
}

/// The secrets of an account to replace, each with its replacement.
fn account(
    name: &AccountName,
    record: &AccountRecord,
    secrets: &Secrets,
    done: &mut Resealed,
) -> Result<Vec<(Secret, Secret)>, NodeError> {
    let (key, delegation) =
        (SecretContext::account_key(name, record.id), SecretContext::delegation(name, record.id));
    let keys = record.keys.iter().map(|secret| (&key, secret));
    let all = keys.chain(record.delegation_secret.iter().map(|secret| (&delegation, secret)));
    let mut pairs = Vec::new();
    for (context, secret) in all {
        let of = || format!("account {name}");
        pairs.extend(anew(context, secret, secrets, of, done)?.map(|to| (secret.clone(), to)));
    }
    for user in record.users() {
        let of = || format!("user {name}/{}", user.name);
        for key in &user.keys {
            let context = SecretContext::user_key(name, record.id, &key.id);
            let again = anew(&context, &key.secret, secrets, of, done)?;
            pairs.extend(again.map(|to| (key.secret.clone(), to)));
        }
    }
    for scope in record.scopes() {
        let of = || format!("encryption scope {name}/{}", scope.name);
        let context = SecretContext::scope_key(name, record.id, &scope.name);
        let again = anew(&context, &scope.key, secrets, of, done)?;
        pairs.extend(again.map(|to| (scope.key.clone(), to)));
    }
    Ok(pairs)
}

async fn copies(router: &Router, secrets: &Secrets, done: &mut Resealed) -> Result<(), NodeError> {
    let mut from = Some(Bytes::new());
    while let Some(start) = from {
        let read = ReadCopyJobs { from: start.clone(), limit: PAGE };
        let (high, answers) = match router.ask_each(&start, read).await {
            Ok(answers) => answers,
            Err(error @ index::Error::Refused(_)) => return Err(error.into()),
            Err(error) => (router.end_of_range(&start), vec![Err(error)]),
        };
        let (mut jobs, mut nexts) = (Vec::new(), Vec::new());
        for answer in answers {
            match answer {
                Ok(page) => {
                    jobs.extend(page.jobs);
                    nexts.push(page.next);
                }
                Err(error @ index::Error::Refused(_)) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "pending copies cannot be read; their secrets are sealed later"
                    );
                    done.incomplete = true;
                }
            }
        }
        for PendingCopy { blob, job } in jobs {
            let context = SecretContext::copy_source(&blob, job.id);
            let of = || format!("pending copy {}", job.id);
            if let Some(to) = anew(&context, &job.source, secrets, of, done)? {
                let from = job.source;
                let write = ResealCopy { blob, from, to };
                if changed(router, write, done).await? {
                    done.secrets += 1;
                }
            }
        }
        // The stripes of a range continue together. If none has answered, the next range follows.
        from = if nexts.is_empty() { high } else { nexts.into_iter().flatten().min() };
    }
    Ok(())
}

/// Writes a sealed secret. Returns whether it was written; a later try writes it if a partition
/// cannot do so now.
async fn changed(
    router: &Router,
    write: impl WriteRequest,
    done: &mut Resealed,
) -> Result<bool, NodeError> {
    match router.tell(write).await {
        Ok(_) => Ok(true),
        Err(index::Error::Refused(index::Refused::AccountNotFound)) => Ok(false),
        Err(error @ index::Error::Refused(_)) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "a sealed secret could not be written; it is sealed later");
            done.incomplete = true;
            Ok(false)
        }
    }
}

/// The replacement of a secret; `None` if it stays as it is. Anything that a damaged secret
/// protects is lost.
fn anew(
    context: &SecretContext,
    secret: &Secret,
    secrets: &Secrets,
    of: impl Fn() -> String,
    done: &mut Resealed,
) -> Result<Option<Secret>, NodeError> {
    match secrets.reseal(context, secret) {
        Ok(to) => Ok(to),
        Err(error @ UnsealError::Damaged) => {
            tracing::error!(of = of(), %error, "a secret cannot be unsealed");
            done.damaged += 1;
            Ok(None)
        }
        Err(error) => Err(NodeError::Secret { of: of(), error }),
    }
}

#[cfg(test)]
mod tests;
