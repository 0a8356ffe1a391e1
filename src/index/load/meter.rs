//! Counts and samples the requests of a partition.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::env::Clock;
use crate::index::load::class::Class;
use crate::index::load::cpu;
use crate::index::load::rates::Counts;

/// The number of keys kept. Their quantiles are accurate to a few percent.
const SAMPLES: usize = 256;
/// Keys older than this say nothing about the current load.
const SAMPLE_AGE: Duration = Duration::from_secs(5);
/// About this many requests a second are sampled.
const SAMPLES_PER_SECOND: f64 = 2_560.0;
/// If at least this many keys were sampled since the last call of `samples`, it returns only these.
/// They show whether names grow.
const FRESH: usize = 64;
/// One in this many requests is sampled while `samples` is not called. That is nearly free, and the
/// first tick of a burst has keys.
const RESTING: u64 = 64;
/// One in this many lookups is timed, because lookups are short.
const TIMED: u64 = 16;

/// The counts and samples of one partition. All methods may be called from any thread. Most
/// requests cost one atomic addition.
#[derive(Debug)]
pub struct Meter {
    /// Requests of each class.
    requests: [AtomicU64; Class::ALL.len()],
    refused: AtomicU64,
    log_bytes: AtomicU64,
    /// Processor time, nanoseconds.
    cpu: AtomicU64,
    /// The longest wait since the last tick, nanoseconds.
    waited: AtomicU64,
    /// The longest wait of the last tick, nanoseconds.
    queue_age: AtomicU64,
    /// One in this many requests of a class is sampled.
    stride: AtomicU64,
    samples: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    keys: Vec<(Bytes, Duration)>,
    next: usize,
    /// The time of the last call of `samples`.
    looked: Duration,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            requests: Default::default(),
            refused: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            queue_age: AtomicU64::new(0),
            stride: AtomicU64::new(RESTING),
            samples: Mutex::default(),
        }
    }
}

impl Meter {
    /// Counts a request when it arrives, before it waits for anything. `key` is called only if the
    /// request is sampled. Returns for how many requests the processor time of this one stands, an
    /// argument of [`Self::timed`].
    pub fn note(
        &self,
        class: Class,
        now: impl FnOnce() -> Duration,
        key: impl FnOnce() -> Option<Bytes>,
    ) -> u64 {
        let Some(count) = self.requests.get(class as usize) else { return 0 };
        let number = count.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(self.stride.load(Ordering::Relaxed))
            && let Some(key) = key()
        {
            let mut ring = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            ring.push((key, now()));
        }
        match class {
            Class::Read if number.is_multiple_of(TIMED) => TIMED,
            Class::Read => 0,
            Class::Write | Class::List => 1,
        }
    }

    /// Counts a write that was refused because too many wait, or because it waited for too long.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the bytes of a log record that was made durable.
    pub fn logged(&self, bytes: usize) {
        self.log_bytes.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Notes how long the oldest write of a batch waited behind others.
    pub fn waited(&self, behind_others: Duration) {
        if !behind_others.is_zero() {
            self.waited.fetch_max(nanoseconds(behind_others), Ordering::Relaxed);
        }
    }

    /// Runs `work` and adds `times` its processor time.
    pub async fn timed<T>(
        &self,
        clock: &dyn Clock,
        times: u64,
        work: impl Future<Output = T>,
    ) -> T {
        cpu::timed(clock, (&self.cpu, times), work).await
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let [reads, writes, lists] = &self.requests;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            reads: of(reads),
            writes: of(writes),
            lists: of(lists),
            refused: of(&self.refused),
            log_bytes: of(&self.log_bytes),
            cpu: Duration::from_nanos(of(&self.cpu)),
        }
    }

    /// Ends the tick and returns its longest queue wait.
    pub fn tick(&self) -> Duration {
        let waited = self.waited.swap(0, Ordering::Relaxed);
        self.queue_age.store(waited, Ordering::Relaxed);
        Duration::from_nanos(waited)
    }

    /// The longest wait in the last tick.
    #[must_use]
    pub fn queue_age(&self) -> Duration {
        Duration::from_nanos(self.queue_age.load(Ordering::Relaxed))
    }

    /// The keys since the last call or, if these are few, of the last seconds, in order. Adapts the
    /// sampling to `per_second` requests.
    #[must_use]
    pub fn samples(&self, now: Duration, per_second: f64) -> Vec<Bytes> {
        let thin = (per_second / SAMPLES_PER_SECOND).clamp(1.0, 65_536.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        self.stride.store(thin as u64, Ordering::Relaxed);
        let mut ring = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut ring.looked, now);
        let oldest = now.saturating_sub(SAMPLE_AGE);
        let fresh = ring.since(last.max(oldest));
        if fresh.len() >= FRESH { fresh } else { ring.since(oldest) }
    }

    /// The keys of the last seconds, in order. Does not change the sampling.
    #[must_use]
    pub fn recent(&self, now: Duration) -> Vec<Bytes> {
        let ring = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        ring.since(now.saturating_sub(SAMPLE_AGE))
    }
}

impl Meter {
    /// Samples few requests until [`Self::samples`] is called again.
    pub fn rest(&self) {
        self.stride.store(RESTING, Ordering::Relaxed);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Ring {
    fn push(&mut self, sample: (Bytes, Duration)) {
        if self.keys.len() < SAMPLES {
            self.keys.push(sample);
        } else if let Some(place) = self.keys.get_mut(self.next) {
            *place = sample;
            self.next = (self.next + 1) % SAMPLES;
        }
    }

    /// The keys from `then` on, in order.
    fn since(&self, then: Duration) -> Vec<Bytes> {
        let fresh = self.keys.iter().filter(|(_, at)| *at >= then);
        let mut keys: Vec<Bytes> = fresh.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Bytes {
        Bytes::copy_from_slice(&n.to_be_bytes())
    }

    fn note(meter: &Meter, at: u64, n: u64) {
        meter.note(Class::Write, || Duration::from_secs(at), || Some(key(n)));
    }

    #[test]
    fn samples_that_nobody_asks_for_are_few() {
        let meter = Meter::default();
        let (mut asked, mut timed) = (0, 0);
        for n in 0..1_024 {
            let count = || {
                asked += 1;
                Some(key(n))
            };
            timed += meter.note(Class::Read, || Duration::ZERO, count);
        }
        assert_eq!((asked, meter.counts().requests()), (16, 1_024));
        assert_eq!(timed, 1_024, "those that are timed stand for all");
    }

    #[test]
    fn samples_are_the_newest_keys_in_order_and_grow_old() {
        let meter = Meter::default();
        assert!(meter.samples(Duration::ZERO, 0.0).is_empty());
        (0..300).rev().for_each(|n| note(&meter, 1, n));
        let samples = meter.samples(Duration::from_secs(2), 300.0);
        assert_eq!(samples, (0..256).map(key).collect::<Vec<_>>());
        assert!(meter.samples(Duration::from_secs(7), 0.0).is_empty());
        assert_eq!(meter.counts().writes, 300);
    }

    #[test]
    fn looking_at_samples_does_not_change_how_they_are_taken() {
        let meter = Meter::default();
        for n in 0..64 {
            note(&meter, 0, n);
            assert_eq!(meter.recent(Duration::ZERO), [key(0)]);
        }
        assert!(meter.samples(Duration::from_secs(60), 1.0).is_empty());
        (65..68).for_each(|n| note(&meter, 60, n));
        assert_eq!(meter.recent(Duration::from_secs(61)), [key(65), key(66), key(67)]);
        meter.rest();
        (68..100).for_each(|n| note(&meter, 60, n));
        assert_eq!(meter.recent(Duration::from_secs(61)).len(), 3);
    }

    #[test]
    fn busy_partitions_are_sampled_thinly() {
        let meter = Meter::default();
        assert!(meter.samples(Duration::ZERO, 51_200.0).is_empty());
        (0..1_000).for_each(|n| note(&meter, 0, n));
        assert_eq!(meter.samples(Duration::ZERO, 51_200.0).len(), 50);
    }

    #[test]
    fn a_look_at_a_busy_partition_sees_only_what_came_since_the_last() {
        let meter = Meter::default();
        let per_second = 26_000.0;
        drop(meter.samples(Duration::ZERO, per_second));
        (0..6_500).for_each(|n| note(&meter, 1, n));
        let before = meter.samples(Duration::from_secs(2), per_second).pop().unwrap();
        (6_500..13_000).for_each(|n| note(&meter, 2, n));
        let samples = meter.samples(Duration::from_secs(3), per_second);
        assert_eq!(samples.len(), SAMPLES);
        assert!(samples.iter().all(|sample| *sample > before), "names that grow look like it");
        // So many that the older ones are kept too.
        let before = samples.last().cloned().unwrap();
        (13_000..13_800).for_each(|n| note(&meter, 3, n));
        let samples = meter.samples(Duration::from_secs(4), 1_000.0);
        assert!((64..SAMPLES).contains(&samples.len()), "{}", samples.len());
        assert!(samples.iter().all(|sample| *sample > before));
        (13_800..13_863).for_each(|n| note(&meter, 4, n));
        assert_eq!(meter.samples(Duration::from_secs(5), 1_000.0).len(), SAMPLES, "too few alone");
        // The meter was not read for long: old samples are ignored.
        meter.rest();
        (0..64 * 100).for_each(|n| note(&meter, 6, n));
        assert!(meter.samples(Duration::from_secs(60), 1_000.0).is_empty());
    }

    #[test]
    fn each_thing_is_counted_by_itself_and_waits_by_tick() {
        let meter = Meter::default();
        for (class, times) in [(Class::Read, 3), (Class::Write, 2), (Class::List, 1)] {
            for n in 0..times {
                meter.note(class, || Duration::ZERO, || Some(key(n)));
            }
        }
        meter.refuse();
        meter.logged(70);
        meter.logged(7);
        let counts = Counts {
            reads: 3,
            writes: 2,
            lists: 1,
            refused: 1,
            log_bytes: 77,
            ..Counts::default()
        };
        assert_eq!(meter.counts(), counts);
        meter.waited(Duration::from_millis(5));
        meter.waited(Duration::from_millis(2));
        assert_eq!(meter.queue_age(), Duration::ZERO, "the tick is not over");
        assert_eq!(meter.tick(), Duration::from_millis(5));
        assert_eq!(meter.queue_age(), Duration::from_millis(5));
        assert_eq!((meter.tick(), meter.queue_age()), (Duration::ZERO, Duration::ZERO));
    }
}
