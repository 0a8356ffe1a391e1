//! The numbers of a front end's writes. A write whose outcome is unknown is sent again under its
//! number (ADR 0058).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::rpc::NodeIdentity;

/// How long a write is sent again whose outcome is unknown. A takeover takes seconds.
const DOUBT_MAX: Duration = Duration::from_secs(15);
/// The first pause before it is sent again. It doubles each time.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(320);

/// Numbers the writes of one process, so that each is carried out once however often it is sent.
#[derive(Debug)]
pub struct WriteNumbers {
    process: NodeIdentity,
    numbers: Mutex<Numbers>,
}

#[derive(Debug)]
struct Numbers {
    next: u64,
    /// Those that may be sent, or sent again.
    open: BTreeSet<u64>,
}

impl WriteNumbers {
    /// The numbers of this process, none of which is used.
    #[must_use]
    pub fn new(process: NodeIdentity) -> Self {
        Self { process, numbers: Mutex::new(Numbers { next: 1, open: BTreeSet::new() }) }
    }

    /// Numbers a write. It is settled when the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Numbered {
        let mut numbers = self.lock();
        let number = numbers.next;
        numbers.next += 1;
        numbers.open.insert(number);
        drop(numbers);
        Numbered { all: Arc::clone(self), number, is_repeated: false }
    }

    /// All numbers that were used are lower.
    pub(super) fn next(&self) -> u64 {
        self.lock().next
    }

    /// Lower numbers are not sent any more.
    pub(super) fn settled(&self) -> u64 {
        let numbers = self.lock();
        numbers.open.first().copied().unwrap_or(numbers.next)
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write that is not settled.
#[derive(Debug)]
pub(super) struct Numbered {
    all: Arc<WriteNumbers>,
    number: u64,
    is_repeated: bool,
}

impl Numbered {
    /// What the next attempt carries.
    pub(super) fn id(&self) -> WriteId {
        let settled = self.all.lock().open.first().copied().unwrap_or(self.number);
        let (number, is_repeated) = (self.number, self.is_repeated);
        WriteId { process: self.all.process, number, settled, is_repeated }
    }

    /// Sends attempts, one after the other, until the outcome of the write is known. Once it is in
    /// doubt, not for longer than [`DOUBT_MAX`].
    ///
    /// # Errors
    /// The last answer. [`Error::NoAnswer`] if the outcome is unknown.
    pub(super) async fn send<F>(
        mut self,
        clock: &dyn Clock,
        attempt: impl Fn(WriteId) -> F,
    ) -> Result<WriteReply, Error>
    where
        F: Future<Output = Result<WriteReply, Error>>,
    {
        let mut doubt: Option<Doubt> = None;
        loop {
            let answer = match &doubt {
                None => attempt(self.id()).await,
                Some(doubt) => tokio::select! {
                    biased;
                    answer = attempt(self.id()) => answer,
                    () = clock.sleep(doubt.until.saturating_sub(clock.monotonic())) => {
                        return Err(doubt.error());
                    }
                },
            };
            match (answer, &doubt) {
                (Err(Error::NoAnswer(why)), None) => {
                    self.is_repeated = true;
                    doubt = Some(Doubt { why, until: clock.monotonic() + DOUBT_MAX, pause: PAUSE });
                }
                (answer @ (Ok(_) | Err(Error::Refused(_))), _) | (answer, None) => return answer,
                // This attempt was not carried out, or that is unknown. One before it may have
                // been.
                (
                    Err(
                        Error::WrongPartition
                        | Error::Overloaded
                        | Error::Full(_)
                        | Error::Corrupt(_)
                        | Error::Unavailable(_)
                        | Error::NoAnswer(_),
                    ),
                    Some(_),
                ) => {}
            }
            if let Some(doubt) = &mut doubt {
                if clock.monotonic() >= doubt.until {
                    return Err(doubt.error());
                }
                clock.sleep(doubt.pause).await;
                doubt.pause = (doubt.pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// The outcome of a write is unknown.
struct Doubt {
    /// Why it became so.
    why: String,
    /// When it is not asked about any more.
    until: Duration,
    /// The next pause.
    pause: Duration,
}

impl Doubt {
    /// The error of a write whose outcome stays unknown.
    fn error(&self) -> Error {
        Error::NoAnswer(format!("it may have happened: {}", self.why))
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.all.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::api::Full;
    use crate::index::api::Refused;
    use crate::index::client::testing::env;
    use crate::types::Incarnation;
    use crate::types::NodeId;

    const EXISTS: Result<WriteReply, Error> = Err(Error::Refused(Refused::ContainerExists));

    fn silent() -> Result<WriteReply, Error> {
        Err(Error::NoAnswer("cut".to_owned()))
    }

    /// Sends a write whose attempts get these answers, and later ones the last of them. Returns the
    /// outcome, and of each attempt whether it was a repetition.
    async fn outcome(
        answers: &[Result<WriteReply, Error>],
    ) -> (Result<WriteReply, Error>, Vec<bool>) {
        let process = NodeIdentity { node: NodeId::new(3), incarnation: Incarnation::new(9) };
        let numbers = Arc::new(WriteNumbers::new(process));
        let (clock, sent) = (env().clock, Mutex::new(Vec::new()));
        let attempt = |id: WriteId| {
            let mut sent = sent.lock().unwrap();
            let answer = answers.get(sent.len()).or(answers.last()).cloned().unwrap();
            sent.push(id.is_repeated);
            async move { answer }
        };
        let outcome = numbers.begin().send(clock.as_ref(), attempt).await;
        assert!(numbers.lock().open.is_empty(), "it is settled");
        (outcome, sent.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn an_only_attempt_is_believed() {
        for answer in [Ok(WriteReply::Done), EXISTS, Err(Error::Overloaded)] {
            let sent = outcome(std::slice::from_ref(&answer)).await;
            assert_eq!(sent, (answer, vec![false]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_in_doubt_is_sent_until_it_has_a_final_answer() {
        let full = || Err(Error::Full(Full::Disks));
        for end in [Ok(WriteReply::Done), EXISTS] {
            let answers = [silent(), Err(Error::Overloaded), full(), silent(), end.clone()];
            assert_eq!(outcome(&answers).await, (end, vec![false, true, true, true, true]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_gets_no_answer_does_not_prolong_the_doubt() {
        let process = NodeIdentity { node: NodeId::new(3), incarnation: Incarnation::new(9) };
        let (numbers, clock) = (Arc::new(WriteNumbers::new(process)), env().clock);
        let began = clock.monotonic();
        let attempt = |id: WriteId| async move {
            if id.is_repeated { std::future::pending().await } else { silent() }
        };
        let outcome = numbers.begin().send(clock.as_ref(), attempt).await;
        assert_eq!(outcome, Err(Error::NoAnswer("it may have happened: cut".to_owned())));
        assert!(clock.monotonic() - began <= DOUBT_MAX + PAUSE);
    }

    /// Their bytes would be freed after another error.
    #[tokio::test(start_paused = true)]
    async fn a_write_that_stays_in_doubt_may_have_happened() {
        for end in [Err(Error::Overloaded), Err(Error::Full(Full::Disks)), silent()] {
            let (outcome, sent) = outcome(&[silent(), end]).await;
            assert_eq!(outcome, Err(Error::NoAnswer("it may have happened: cut".to_owned())));
            assert!((20..100).contains(&sent.len()), "{} attempts in 15 s", sent.len());
        }
    }

    #[test]
    fn what_lies_below_all_open_numbers_is_settled() {
        let process = NodeIdentity { node: NodeId::new(3), incarnation: Incarnation::new(9) };
        let numbers = Arc::new(WriteNumbers::new(process));
        let first = numbers.begin();
        let mut second = numbers.begin();
        assert_eq!(
            first.id(),
            WriteId { process, number: 1, settled: 1, is_repeated: false },
            "nothing is settled"
        );
        assert_eq!((second.id().number, second.id().settled), (2, 1));
        drop(first);
        second.is_repeated = true;
        assert_eq!(second.id(), WriteId { process, number: 2, settled: 2, is_repeated: true });
        let third = numbers.begin();
        drop(second);
        assert_eq!((third.id().number, third.id().settled), (3, 3));
    }
}
