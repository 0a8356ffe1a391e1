//! Shows and changes the partitions of another process, by calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::calls::Answer;
use super::calls::Change;
use super::calls::Changes;
use super::calls::Counts;
use super::calls::EvenCuts;
use super::calls::EvenCutsCall;
use super::calls::Give;
use super::calls::GiveCall;
use super::calls::RowSpread;
use super::calls::RowSpreadCall;
use super::calls::Served;
use super::host::ANSWER_MAX;
use super::host::CALL_TIME;
use super::host::ClusterIndex;
use super::host::NOBODY;
use super::host::SMALL_ANSWER;
use super::host::Unanswered;
use crate::index::api::ChangeError;
use crate::index::api::Changed;
use crate::index::api::ChangesOf;
use crate::index::api::Error;
use crate::index::api::KnownChanges;
use crate::index::api::PartitionControl;
use crate::index::api::PartitionCounts;
use crate::index::api::Plan;
use crate::index::api::ServedPartitions;
use crate::index::api::Target;
use crate::rpc::Method;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// How long it is waited for what is only shown.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// The partitions of the process of another node.
#[derive(Debug)]
pub(super) struct RemotePartitions {
    index: Arc<ClusterIndex>,
    node: NodeId,
}

impl RemotePartitions {
    pub(super) const fn new(index: Arc<ClusterIndex>, node: NodeId) -> Self {
        Self { index, node }
    }

    /// What is only shown.
    async fn shown<M, T>(&self, call: &M::Call) -> Result<T, Error>
    where
        M: Method<Answer = Answer<T>>,
        M::Call: Sync,
    {
        let answer = self.index.call::<M, T>(self.node, call, ANSWER_MAX, SHOWN_WITHIN).await;
        done(answer).map_err(not_answered)
    }
}

/// Why a call has no result.
enum Unmade {
    /// Nothing was done.
    NotDone(String),
    /// It may have been done.
    Unknown(String),
    /// The error of the process.
    Failed(Error),
}

fn done<T>(answer: Result<Answer<T>, Unanswered>) -> Result<T, Unmade> {
    match answer {
        Ok(Answer::Done(result)) => Ok(result),
        Ok(Answer::Failed(error)) => Err(Unmade::Failed(error)),
        Ok(Answer::NotHere) => Err(Unmade::NotDone(NOBODY.to_owned())),
        Ok(Answer::TooLarge(bytes)) => {
            Err(Unmade::Unknown(format!("the answer has {bytes} bytes, which is too many")))
        }
        Err(Unanswered::Again(why) | Unanswered::Never(why)) => Err(Unmade::NotDone(why)),
        Err(Unanswered::Unknown(why)) => Err(Unmade::Unknown(why)),
    }
}

/// The error of a question.
fn not_answered(not: Unmade) -> Error {
    match not {
        Unmade::NotDone(why) | Unmade::Unknown(why) => Error::NoAnswer(why),
        Unmade::Failed(error) => error,
    }
}

fn not_changed(not: Unmade) -> ChangeError {
    match not {
        Unmade::NotDone(why) => ChangeError::Refused(Error::NoAnswer(why)),
        Unmade::Unknown(why) => ChangeError::Failed(Error::NoAnswer(why)),
        Unmade::Failed(error) => ChangeError::Failed(error),
    }
}

fn number(parts: usize) -> u32 {
    u32::try_from(parts).unwrap_or(u32::MAX)
}

#[async_trait]
impl PartitionControl for RemotePartitions {
    async fn served(&self) -> Result<ServedPartitions, Error> {
        self.shown::<Served, _>(&()).await
    }

    async fn counts(&self) -> Result<Vec<PartitionCounts>, Error> {
        self.shown::<Counts, _>(&()).await
    }

    async fn changes(&self, known: &KnownChanges) -> Result<Vec<ChangesOf>, Error> {
        self.shown::<Changes, _>(known).await
    }

    async fn even_cuts(
        &self,
        partition: PartitionId,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, ChangeError> {
        let call = EvenCutsCall { partition, parts: number(parts) };
        let cuts = self.index.call::<EvenCuts, _>(self.node, &call, ANSWER_MAX, CALL_TIME).await;
        // It was only a question.
        done(cuts).map_err(|not| ChangeError::Refused(not_answered(not)))?
    }

    async fn row_spread(
        &self,
        range: &KeyRange,
        parts: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let call = RowSpreadCall { range: range.clone(), parts: number(parts) };
        let spread = self.index.call::<RowSpread, _>(self.node, &call, ANSWER_MAX, CALL_TIME).await;
        done(spread).map_err(not_answered)
    }

    async fn change(&self, plan: Plan) -> Result<Changed, ChangeError> {
        let made = self.index.call::<Change, _>(self.node, &plan, SMALL_ANSWER, CALL_TIME).await;
        done(made).map_err(not_changed)?
    }

    async fn give(&self, target: Target, to: HostId) -> Result<(), Error> {
        let call = GiveCall { target, to };
        let given = self.index.call::<Give, _>(self.node, &call, SMALL_ANSWER, CALL_TIME).await;
        done(given).map_err(|not| match not {
            Unmade::NotDone(why) => {
                tracing::debug!(why, "a partition is not given now");
                Error::Overloaded
            }
            Unmade::Unknown(why) => Error::NoAnswer(why),
            Unmade::Failed(error) => error,
        })
    }

    fn node_name(&self, node: NodeId) -> Option<String> {
        self.index.node_name(node)
    }
}
