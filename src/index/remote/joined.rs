//! Look-ups of one hot key share calls to another process, by the rule of the next look-up: a
//! request takes the answer of a call that began after it arrived (ADR 0020, 0059).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::types::Epoch;
use crate::types::PartitionId;

/// A request waits no longer for the call of another one. Then it makes its own.
const JOIN_MAX: Duration = Duration::from_millis(250);

/// What is asked, and whom: the question in postcard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question(PartitionId, Epoch, Vec<u8>);

impl Question {
    /// The question of a read that may be hot: about one container or one blob.
    pub(super) fn of(target: Target, read: &Read) -> Option<Self> {
        if !matches!(read, Read::Container(..) | Read::Blob(_)) {
            return None;
        }
        let encoded = postcard::to_stdvec(read).ok()?;
        Some(Self(target.partition, target.epoch, encoded))
    }
}

/// The questions that are being asked.
#[derive(Debug, Default)]
pub(super) struct JoinedReads {
    asked: Mutex<BTreeMap<Question, Arc<Asked>>>,
    /// Orders arrivals and calls.
    order: AtomicU64,
}

/// A question that some requests ask. The lock is held during a call.
#[derive(Debug, Default)]
struct Asked(tokio::sync::Mutex<Option<Last>>);

/// The last call, if others wait for one.
#[derive(Debug)]
struct Last {
    began: u64,
    answer: Result<ReadReply, Error>,
}

/// A request that asks a question.
struct Asking<'a> {
    all: &'a JoinedReads,
    question: Question,
    asked: Arc<Asked>,
}

impl JoinedReads {
    /// The answer of `call`, or of the call of another request that began after this one arrived.
    ///
    /// Cancel safe: the next request makes a call.
    pub(super) async fn read<F>(
        &self,
        question: Question,
        clock: &dyn Clock,
        call: impl FnOnce() -> F,
    ) -> Result<ReadReply, Error>
    where
        F: Future<Output = Result<ReadReply, Error>>,
    {
        let arrived = self.order.fetch_add(1, Ordering::SeqCst);
        let asked = Arc::clone(self.lock().entry(question.clone()).or_default());
        let asking = Asking { all: self, question, asked };
        let mut last = tokio::select! {
            biased;
            last = asking.asked.0.lock() => last,
            () = clock.sleep(JOIN_MAX) => return call().await,
        };
        if let Some(last) = last.as_ref().filter(|last| last.began > arrived) {
            return last.answer.clone();
        }
        let began = self.order.fetch_add(1, Ordering::SeqCst);
        let answer = call().await;
        if asking.has_others() {
            *last = Some(Last { began, answer: answer.clone() });
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Question, Arc<Asked>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking<'_> {
    /// Whether other requests ask the question. The map has it too.
    fn has_others(&self) -> bool {
        Arc::strong_count(&self.asked) > 2
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut asked = self.all.lock();
        if !self.has_others() {
            asked.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::env::SimClock;
    use crate::types::AccountId;
    use crate::types::ContainerName;
    use crate::types::HostId;

    /// Calls that are answered one by one; each answer says which call it is of.
    #[derive(Debug)]
    struct Calls {
        joined: JoinedReads,
        clock: SimClock,
        made: AtomicUsize,
        answered: Semaphore,
    }

    impl Calls {
        fn new() -> Self {
            let (joined, clock) = (JoinedReads::default(), SimClock::new());
            Self { joined, clock, made: AtomicUsize::new(0), answered: Semaphore::new(0) }
        }

        /// The number of the call whose answer the request gets.
        async fn read(&self) -> String {
            let target = Target {
                partition: PartitionId::new(1),
                epoch: Epoch::new(2),
                host: HostId::new(0),
            };
            let name = ContainerName::new("hot").unwrap();
            let read = Read::Container(AccountId::new(1), name);
            let question = Question::of(target, &read).unwrap();
            let call = || async {
                let number = self.made.fetch_add(1, Ordering::SeqCst);
                self.answered.acquire().await.unwrap().forget();
                Err(Error::Unavailable(number.to_string()))
            };
            match self.joined.read(question, &self.clock, call).await {
                Err(Error::Unavailable(number)) => number,
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_share_the_first_call_that_began_after_they_arrived() {
        let calls = Calls::new();
        let mut first = Box::pin(calls.read());
        assert!(first.as_mut().now_or_never().is_none());
        let mut others: Vec<_> = (0..5).map(|_| Box::pin(calls.read())).collect();
        for other in &mut others {
            assert!(other.as_mut().now_or_never().is_none());
        }
        assert_eq!(calls.made.load(Ordering::SeqCst), 1);
        calls.answered.add_permits(1);
        assert_eq!(first.await, "0");
        let mut answers = Vec::new();
        for (number, mut other) in others.into_iter().enumerate() {
            if number == 0 {
                assert!(other.as_mut().now_or_never().is_none(), "it makes the next call");
                calls.answered.add_permits(1);
            }
            answers.push(other.await);
        }
        assert_eq!(answers, ["1"; 5]);
        calls.answered.add_permits(1);
        assert_eq!(calls.read().await, "2", "who comes later takes no old answer");
        assert!(calls.joined.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn next_request_asks_when_the_one_that_asks_goes() {
        let calls = Calls::new();
        let mut first = Box::pin(calls.read());
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(calls.read());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        calls.answered.add_permits(1);
        assert_eq!(second.await, "1");
        assert!(calls.joined.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn request_does_not_wait_long_for_the_call_of_another() {
        let calls = Calls::new();
        let mut first = Box::pin(calls.read());
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(calls.read());
        assert!(second.as_mut().now_or_never().is_none());
        tokio::time::advance(JOIN_MAX * 2).await;
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(calls.made.load(Ordering::SeqCst), 2, "it makes its own");
        calls.answered.add_permits(2);
        second.await;
        first.await;
    }
}
