//! Sealing the secrets of rows under the active master key: those of releases that kept them plain,
//! and after a rotation those under the key of before. Content is never rewritten.

use bytes::Bytes;

use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::frontend::Router;
use crate::frontend::Secrets;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::ListAccounts;
use crate::index::PendingCopy;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::ResealCopy;
use crate::index::Write;
use crate::types::AccountName;
use crate::types::Secret;

use super::error::NodeError;

/// Rows read at a time.
const PAGE: usize = 1000;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Secrets sealed anew.
    pub secrets: usize,
    /// Secrets that do not open: they are left as they are.
    pub damaged: usize,
    /// Whether a partition is out of service, and what lies there was not looked at.
    pub incomplete: bool,
}

/// Seals all secrets that are not under the active key. Safe while the node serves: a secret that
/// is replaced meanwhile stays as it is.
///
/// # Errors
/// [`NodeError::Secret`] for a secret under a key that the ring lacks, [`NodeError::Index`].
pub async fn reseal(router: &Router, secrets: &Secrets) -> Result<Resealed, NodeError> {
    let mut done = Resealed::default();
    let mut list = ListAccounts { from: None, limit: PAGE };
    loop {
        let reply = router.read(&list.position(), Read::Accounts(list.clone())).await?;
        let ReadReply::Accounts(page) = reply else { return Err(mismatched()) };
        for (name, record) in page.entries {
            let Ok(name) = AccountName::new(&name) else { continue };
            let pairs = account(&name, &record, secrets, &mut done)?;
            if !pairs.is_empty() {
                done.secrets += pairs.len();
                let change = AccountChange::Reseal(pairs);
                match router.write(Write::UpdateAccount { name, change }).await {
                    Ok(_) | Err(index::Error::AccountNotFound) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        list.from = page.next;
        if list.from.is_none() {
            break;
        }
    }
    copies(router, secrets, &mut done).await?;
    Ok(done)
}

/// The secrets of an account that are to be replaced, with what replaces them.
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
    Ok(pairs)
}

async fn copies(router: &Router, secrets: &Secrets, done: &mut Resealed) -> Result<(), NodeError> {
    let mut from = Some(Bytes::new());
    while let Some(start) = from {
        let read = Read::CopyJobs { from: start.clone(), limit: PAGE };
        let (mut jobs, mut nexts) = (Vec::new(), Vec::new());
        let answers = match router.read_from(&start, read).await {
            Err(error @ index::Error::Quarantined(_)) => {
                tracing::warn!(%error, "secrets of pending copies are sealed by a later start");
                done.incomplete = true;
                return Ok(());
            }
            answers => answers?,
        };
        for answer in answers {
            let ReadReply::CopyJobs(some, next) = answer else { return Err(mismatched()) };
            jobs.extend(some);
            nexts.extend(next);
        }
        for PendingCopy { blob, job } in jobs {
            let context = SecretContext::copy_source(&blob, job.id);
            let of = || format!("pending copy {}", job.id);
            if let Some(to) = anew(&context, &job.source, secrets, of, done)? {
                done.secrets += 1;
                let from = job.source;
                router.write(Write::ResealCopy(ResealCopy { blob, from, to })).await?;
            }
        }
        from = nexts.into_iter().min();
    }
    Ok(())
}

/// What replaces a secret; `None` when it is to stay. One that is damaged costs what it opens.
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
            tracing::error!(of = of(), %error, "a secret does not open");
            done.damaged += 1;
            Ok(None)
        }
        Err(error) => Err(NodeError::Secret { of: of(), error }),
    }
}

fn mismatched() -> NodeError {
    NodeError::System { what: "the index's answer", reason: "not what was asked".to_owned() }
}
