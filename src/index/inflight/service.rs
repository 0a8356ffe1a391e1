//! Answers questions of other processes about the running requests of this one.

use async_trait::async_trait;

use super::calls::Asked;
use super::calls::EndWatch;
use super::calls::IsRunning;
use super::calls::Mark;
use super::calls::Marked;
use super::calls::Oldest;
use super::calls::Outcome;
use super::calls::WatchCopies;
use super::calls::Written;
use super::local::LocalRequests;
use crate::index::api::Error;
use crate::index::api::RunningRequests;
use crate::rpc::Incoming;
use crate::rpc::Method;
use crate::rpc::Refusal;
use crate::rpc::Reply;
use crate::rpc::Service;
use crate::types::Incarnation;

/// The upper byte of the methods about running requests.
pub const REQUESTS_SERVICE: u8 = 3;

/// The service of the requests of this process.
#[derive(Debug)]
pub struct RequestsService {
    /// The requests.
    pub requests: LocalRequests,
    /// The life of this node.
    pub incarnation: Incarnation,
}

impl RequestsService {
    /// The question of a call.
    fn asked<M, C, A>(&self, call: &Incoming) -> Result<Outcome<C>, Refusal>
    where
        M: Method<Call = Asked<C>, Answer = Outcome<A>>,
    {
        let Asked { to, about } = call.decode::<M>()?;
        let other = || Error::NoAnswer(format!("this is incarnation {}", self.incarnation));
        Ok(if to == self.incarnation { Ok(about) } else { Err(other()) })
    }

    async fn answer<M, C, A, F>(
        &self,
        call: &Incoming,
        answer: impl FnOnce(C) -> F,
    ) -> Result<Reply, Refusal>
    where
        M: Method<Call = Asked<C>, Answer = Outcome<A>>,
        F: Future<Output = Outcome<A>>,
    {
        let answer = match self.asked::<M, C, A>(call)? {
            Ok(about) => answer(about).await,
            Err(error) => Err(error),
        };
        Ok(Reply::of::<M>(&answer, Vec::new()))
    }
}

#[async_trait]
impl Service for RequestsService {
    fn is_read(&self, method: u16) -> bool {
        ![WatchCopies::NUMBER, EndWatch::NUMBER].contains(&method)
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        let requests = &self.requests;
        match call.method {
            Mark::NUMBER => {
                let marked = |()| async {
                    let (mark, ended) = requests.marks();
                    Ok(Marked { mark, ended })
                };
                self.answer::<Mark, _, _, _>(&call, marked).await
            }
            IsRunning::NUMBER => {
                let runs = |asked| requests.is_running(asked);
                self.answer::<IsRunning, _, _, _>(&call, runs).await
            }
            Written::NUMBER => {
                let written = |()| requests.written_extents();
                self.answer::<Written, _, _, _>(&call, written).await
            }
            Oldest::NUMBER => {
                self.answer::<Oldest, _, _, _>(&call, |()| requests.oldest_read()).await
            }
            WatchCopies::NUMBER => {
                self.answer::<WatchCopies, _, _, _>(&call, |()| requests.watch_copies()).await
            }
            EndWatch::NUMBER => {
                let ended = |watch| async move {
                    requests.end_watch(watch);
                    Ok(())
                };
                self.answer::<EndWatch, _, _, _>(&call, ended).await
            }
            _ => Err(Refusal::UnknownMethod),
        }
    }
}
