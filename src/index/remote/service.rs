//! The side of a process that serves partitions.

use std::sync::Arc;

use async_trait::async_trait;

use super::calls::AccountsAfter;
use super::calls::Answer;
use super::calls::Change;
use super::calls::Changes;
use super::calls::Counts;
use super::calls::EvenCuts;
use super::calls::EvenCutsCall;
use super::calls::Give;
use super::calls::GiveCall;
use super::calls::IndexClientsOf;
use super::calls::Read;
use super::calls::ReadCall;
use super::calls::RowSpread;
use super::calls::RowSpreadCall;
use super::calls::Served;
use super::calls::Write;
use super::calls::WriteCall;
use super::served::IndexClients;
use super::served::ServedIndex;
use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::PartitionControl;
use crate::index::api::Plan;
use crate::rpc::Incoming;
use crate::rpc::Method;
use crate::rpc::NodeIdentity;
use crate::rpc::Refusal;
use crate::rpc::Reply;
use crate::rpc::Service;
use crate::types::RoutingKey;

/// The upper byte of the methods of the index.
pub const INDEX_SERVICE: u8 = 2;

/// The most parts that a command divides a range into.
const PARTS_MAX: usize = 256;
/// The most keys of a spread of rows, for each part.
const KEYS_PER_PART: usize = 64;

/// Answers the calls of other processes.
#[derive(Debug)]
pub struct IndexService {
    served: Arc<ServedIndex>,
    index_clients: Arc<dyn IndexClients>,
    clock: Arc<dyn Clock>,
}

impl IndexService {
    /// The service of the index that this process serves, or will serve.
    #[must_use]
    pub fn new(
        served: Arc<ServedIndex>,
        index_clients: Arc<dyn IndexClients>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { served, index_clients, clock }
    }

    /// The partitions, for a caller that has a session.
    fn host_for(&self, caller: NodeIdentity) -> Option<&dyn IndexHost> {
        // Reclaim frees what the requests of the others may need.
        let host = self.served.host().filter(|_| self.index_clients.has(caller))?;
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

    /// The control of the partitions, for a caller that has a session. A node that is no manager
    /// could do no harm but move and divide partitions.
    fn control_for(&self, caller: NodeIdentity) -> Option<&dyn PartitionControl> {
        let control = self.served.control().filter(|_| self.index_clients.has(caller))?;
        Some(&**control)
    }

    async fn give(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let GiveCall { target, to } = call.decode::<Give>()?;
        let Some(control) = self.control_for(call.from) else { return Ok(not_here::<Give, _>()) };
        let answer = answered(control.give(target, to).await);
        Ok(Reply::of::<Give>(&answer, Vec::new()))
    }

    async fn change(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let plan = call.decode::<Change>()?;
        if matches!(plan, Plan::SplitEvenly(_, parts) if parts > PARTS_MAX) {
            return Err(Refusal::Malformed);
        }
        let Some(control) = self.control_for(call.from) else {
            return Ok(not_here::<Change, _>());
        };
        Ok(Reply::of::<Change>(&Answer::Done(control.change(plan).await), Vec::new()))
    }

    async fn show(&self, call: &Incoming) -> Result<Reply, Refusal> {
        let Some(control) = self.control_for(call.from) else {
            // Each answer says that in the same bytes.
            return Ok(not_here::<Served, _>());
        };
        let most = call.answer_bytes_max;
        match call.method {
            Served::NUMBER => {
                call.decode::<Served>()?;
                Ok(within::<Served, _>(&answered(control.served().await), most))
            }
            Counts::NUMBER => {
                call.decode::<Counts>()?;
                Ok(within::<Counts, _>(&answered(control.counts().await), most))
            }
            Changes::NUMBER => {
                let known = call.decode::<Changes>()?;
                Ok(within::<Changes, _>(&answered(control.changes(&known).await), most))
            }
            EvenCuts::NUMBER => {
                let EvenCutsCall { partition, parts } = call.decode::<EvenCuts>()?;
                let cuts = control.even_cuts(partition, parts_of(parts)?).await;
                Ok(within::<EvenCuts, _>(&Answer::Done(cuts), most))
            }
            RowSpread::NUMBER => {
                let RowSpreadCall { range, parts } = call.decode::<RowSpread>()?;
                let parts = parts_of(parts)?;
                let spread = control.row_spread(&range, parts).await;
                let spread = spread.map(|spread| thinned(&spread, parts * KEYS_PER_PART));
                Ok(within::<RowSpread, _>(&answered(spread), most))
            }
            _ => Err(Refusal::UnknownMethod),
        }
    }

    fn index_clients(&self, call: &Incoming) -> Result<Reply, Refusal> {
        call.decode::<IndexClientsOf>()?;
        // A process that begins or stops to serve knows that too.
        if !self.index_clients.has(call.from) {
            return Ok(not_here::<IndexClientsOf, _>());
        }
        let all = self.served.index_clients(&*self.index_clients);
        Ok(Reply::of::<IndexClientsOf>(&Answer::Done(all), Vec::new()))
    }
}

/// At most so many keys, each with the weights up to the next one.
fn thinned(spread: &[(RoutingKey, u64)], keys_max: usize) -> Vec<(RoutingKey, u64)> {
    let together = spread.len().div_ceil(keys_max.max(1)).max(1);
    let weight = |some: &[(RoutingKey, u64)]| some.iter().map(|(_, weight)| weight).sum();
    let groups = spread.chunks(together);
    groups.filter_map(|some| Some((some.first()?.0.clone(), weight(some)))).collect()
}

/// How many parts a caller wants, if it is a number that a command takes.
fn parts_of(parts: u32) -> Result<usize, Refusal> {
    let parts = usize::try_from(parts).map_err(|_| Refusal::Malformed)?;
    if parts <= PARTS_MAX { Ok(parts) } else { Err(Refusal::Malformed) }
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
        !matches!(method, Write::NUMBER | Give::NUMBER | Change::NUMBER)
    }

    async fn serve(&self, call: Incoming) -> Result<Reply, Refusal> {
        match call.method {
            Read::NUMBER => self.read(&call).await,
            Write::NUMBER => self.write(&call).await,
            IndexClientsOf::NUMBER => self.index_clients(&call),
            AccountsAfter::NUMBER => self.accounts_after(&call).await,
            Give::NUMBER => self.give(&call).await,
            Change::NUMBER => self.change(&call).await,
            _ => self.show(&call).await,
        }
    }
}
