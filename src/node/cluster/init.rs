//! Makes a cluster.

use std::path::PathBuf;

use crate::coordinator::cluster::ClusterRecord;
use crate::env::Env;
use crate::node::error::NodeError;
use crate::node::keys::master_key;
use crate::node::paths::absolute;
use crate::types::ClusterNumber;

use super::authority::Authority;
use super::coordinator::connect;
use super::settings::CoordinatorSettings;

/// What a new cluster is.
#[derive(Clone, Debug)]
pub struct Init {
    /// Its number; drawn if `None`.
    pub number: Option<ClusterNumber>,
    /// Copies of each extent.
    pub copies: u8,
    /// Where its master keys are. The file is made if it does not exist.
    pub master_key_file: PathBuf,
}

/// Makes a cluster, its key ring and its authority.
///
/// # Errors
/// [`NodeError`]: no cluster was made, and the same call may be made again.
pub async fn init(
    settings: &CoordinatorSettings,
    init: &Init,
    env: &Env,
) -> Result<ClusterRecord, NodeError> {
    let coordinator = connect(settings, env).await?;
    let record = new_record(env, init.number, init.copies);
    ClusterRecord::none(&*coordinator).await?;
    // The cluster is made after its key ring, without which no node can serve it. If the authority
    // is not made, the first node makes it.
    let (file, now) = (absolute(&init.master_key_file), env.clock.now());
    let ring = master_key::open(&file, &*coordinator, true, now).await?.ring;
    record.make(&*coordinator).await?;
    Authority::open(&*coordinator, &ring, &record, now).await?;
    Ok(record)
}

/// The record of a new cluster. Without a number, one is drawn.
pub(super) fn new_record(env: &Env, number: Option<ClusterNumber>, copies: u8) -> ClusterRecord {
    let number = number.unwrap_or_else(|| drawn(env.rand.next_u64()));
    let id = u128::from(env.rand.next_u64()) << 64 | u128::from(env.rand.next_u64());
    ClusterRecord { number, id, generation: 1, copies }
}

/// A number from 1 to 65,535.
fn drawn(random: u64) -> ClusterNumber {
    let [.., high, low] = (random % u64::from(u16::MAX) + 1).to_be_bytes();
    ClusterNumber::new(u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cluster_gets_the_number_of_stores_that_were_made_alone() {
        let numbers = [0, 1, 65_533, 65_534, 65_535, u64::MAX].map(|random| drawn(random).get());
        assert_eq!(numbers, [1, 2, 65_534, 65_535, 1, 1]);
    }
}
