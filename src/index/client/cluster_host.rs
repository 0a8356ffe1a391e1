//! An index host that another process may take over from.

use std::sync::Arc;

use async_trait::async_trait;

use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::types::ExtentId;

/// A host of a cluster. What it cannot answer now, another process may answer soon: so clients are
/// asked to try again.
#[derive(Debug)]
pub struct ClusterHost(pub Arc<dyn IndexHost>);

fn or_again<T>(answer: Result<T, Error>) -> Result<T, Error> {
    match answer {
        Err(Error::Unavailable(why)) => Err(Error::NoAnswer(why)),
        answer => answer,
    }
}

#[async_trait]
impl IndexHost for ClusterHost {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        or_again(self.0.read(target, read).await)
    }

    async fn read_kept(&self, target: Target, read: &Read) -> Result<ReadReply, Error> {
        or_again(self.0.read_kept(target, read).await)
    }

    async fn write_shared(&self, target: Target, write: Arc<Write>) -> Result<WriteReply, Error> {
        or_again(self.0.write_shared(target, write).await)
    }

    async fn write_once(
        &self,
        target: Target,
        id: WriteId,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        or_again(self.0.write_once(target, id, write).await)
    }

    async fn write(&self, target: Target, write: Write) -> Result<WriteReply, Error> {
        or_again(self.0.write(target, write).await)
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        self.0.owned_extents().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Refused;
    use crate::types::AccountName;
    use crate::types::Epoch;
    use crate::types::HostId;
    use crate::types::PartitionId;

    /// Answers everything with this error.
    #[derive(Debug)]
    struct Says(Error);

    #[async_trait]
    impl IndexHost for Says {
        async fn read(&self, _: Target, _: Read) -> Result<ReadReply, Error> {
            Err(self.0.clone())
        }

        async fn write_shared(&self, _: Target, _: Arc<Write>) -> Result<WriteReply, Error> {
            Err(self.0.clone())
        }

        async fn owned_extents(&self) -> Vec<ExtentId> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn clients_try_again_what_a_host_that_stops_cannot_answer() {
        let (partition, epoch) = (PartitionId::new(1), Epoch::new(1));
        let target = Target { partition, epoch, host: HostId::new(0) };
        let stopping = "stopping".to_owned();
        let refused = Error::Refused(Refused::AccountNotFound);
        for (says, answer) in [
            (Error::Unavailable(stopping.clone()), Error::NoAnswer(stopping)),
            (refused.clone(), refused),
        ] {
            let host = ClusterHost(Arc::new(Says(says)));
            let name = AccountName::new("account").unwrap();
            let answered = host.read(target, Read::Account(name)).await.unwrap_err();
            assert_eq!(answered, answer);
        }
    }
}
