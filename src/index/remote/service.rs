//! The side of a process that serves partitions.

use std::sync::Arc;

use async_trait::async_trait;

use super::calls::AccountsAfter;
use super::calls::Answer;
use super::calls::FrontEndsOf;
use super::calls::Give;
use super::calls::GiveCall;
use super::calls::Read;
use super::calls::ReadCall;
use super::calls::Write;
use super::calls::WriteCall;
use super::served::FrontEnds;
use super::served::ServedIndex;
use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::rpc::Incoming;
use crate::rpc::Method;
use crate::rpc::NodeIdentity;
use crate::rpc::Refusal;
use crate::rpc::Reply;
use crate::rpc::Service;

/// The upper byte of the methods of the index.
pub const INDEX_SERVICE: u8 = 2;

/// Answers the calls of front ends of other processes.
#[derive(Debug)]
pub struct IndexService {
    served: Arc<ServedIndex>,
    front_ends: Arc<dyn FrontEnds>,
    clock: Arc<dyn Clock>,
}

impl IndexService {
    /// The service of the index that this process serves, or will serve.
    #[must_use]
    pub fn new(
        served: Arc<ServedIndex>,
        front_ends: Arc<dyn FrontEnds>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { served, front_ends, clock }
    }

    /// The partitions, for a caller that has a session.
    fn host_for(&self, caller: NodeIdentity) -> Option<&dyn IndexHost> {
        // Reclaim frees what the requests of the others may need.
        let host = self.served.host().filter(|_| self.front_ends.has(caller))?;
        Some(&**host)
    }

    async fn read(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let ReadCall { target, read } = call.decode::<Read>()?;
        let Some(host) = self.host_for(call.from) else { return Ok(not_here::<Read, _>()) };
        let answer = answered(host.read_kept(target, &read.0).await);
        Ok(within::<Read, _>(&answer, call.answer_bytes_max))
    }

    async fn write(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let WriteCall { target, id, write } = call.decode::<Write>()?;
        if id.is_some_and(|id| id.process != call.from) {
            return Err(Refusal::Malformed);
        }
        // Before its session is looked at: whoever finds it ended afterwards finds the note.
        let _noted = self.served.writing(call.from);
        let Some(host) = self.host_for(call.from) else { return Ok(not_here::<Write, _>()) };
        let answer = answered(self.served.write(host, (target, id), write.0).await);
        Ok(within::<Write, _>(&answer, call.answer_bytes_max))
    }

    async fn accounts_after(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let after = call.decode::<AccountsAfter>()?;
        if self.host_for(call.from).is_none() {
            return Ok(not_here::<AccountsAfter, _>());
        }
        let changed = self.served.accounts.after_or_soon(&*self.clock, after).await;
        Ok(Reply::of::<AccountsAfter>(&Answer::Done(changed), Vec::new()))
    }

    /// Only a manager asks for it. A node that is none could do no harm but move partitions.
    async fn give(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let GiveCall { target, to } = call.decode::<Give>()?;
        let giver = self.served.giver().filter(|_| self.front_ends.has(call.from));
        let Some(giver) = giver else { return Ok(not_here::<Give, _>()) };
        let answer = answered(giver.give(target, to).await);
        Ok(Reply::of::<Give>(&answer, Vec::new()))
    }

    fn front_ends(&self, call: &Incoming) -> Result<Reply, Refusal> {
        call.decode::<FrontEndsOf>()?;
        // A process that begins or stops to serve knows that too.
        if !self.front_ends.has(call.from) {
            return Ok(not_here::<FrontEndsOf, _>());
        }
        let all = self.served.front_ends(&*self.front_ends);
        Ok(Reply::of::<FrontEndsOf>(&Answer::Done(all), Vec::new()))
    }
}

fn answered<T>(answer: Result<T, Error>) -> Answer<T> {
    match answer {
        Ok(answer) => Answer::Done(answer),
        Err(error) => Answer::Failed(error),
    }
}

/// An answer, if the caller takes so many bytes.
fn within<M, T>(answer: &Answer<T>, answer_bytes_max: u32) -> Reply
where
    M: Method<Answer = Answer<T>>,
{
    let reply = Reply::of::<M>(answer, Vec::new());
    match u32::try_from(reply.message.len()) {
        Ok(bytes) if bytes <= answer_bytes_max => reply,
        bytes => Reply::of::<M>(&Answer::TooLarge(bytes.unwrap_or(u32::MAX)), Vec::new()),
    }
}

fn not_here<M: Method<Answer = Answer<T>>, T>() -> Reply {
    Reply::of::<M>(&Answer::NotHere, Vec::new())
}

#[async_trait]
impl Service for IndexService {
    fn is_read(&self, method: u16) -> bool {
        method != Write::NUMBER && method != Give::NUMBER
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        match call.method {
            Read::NUMBER => self.read(&call).await,
            Write::NUMBER => self.write(&call).await,
            FrontEndsOf::NUMBER => self.front_ends(&call),
            AccountsAfter::NUMBER => self.accounts_after(&call).await,
            Give::NUMBER => self.give(&call).await,
            _ => Err(Refusal::UnknownMethod),
        }
    }
}
