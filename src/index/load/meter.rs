//! What a partition notes of its requests.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

/// Keys kept: quantiles of so many are good to a few percent.
const SAMPLES: usize = 256;
/// Keys older than this say nothing about the load now.
const SAMPLE_AGE: Duration = Duration::from_secs(5);
/// Requests are sampled so thinly that a second brings about this many keys.
const SAMPLES_PER_SECOND: f64 = 512.0;

/// Counts and samples of one partition; all methods may be called from anywhere.
#[derive(Debug)]
pub struct Meter {
    requests: AtomicU64,
    /// Every so-manieth request is sampled; almost none until somebody asks for samples.
    stride: AtomicU64,
    samples: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    keys: Vec<(Bytes, Duration)>,
    next: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            requests: AtomicU64::new(0),
            stride: AtomicU64::new(u64::MAX),
            samples: Mutex::default(),
        }
    }
}

impl Meter {
    /// Notes a request when it comes in, before it waits for anything. `key` is asked for only when it is sampled.
    pub fn note(&self, now: impl FnOnce() -> Duration, key: impl FnOnce() -> Option<Bytes>) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(self.stride.load(Ordering::Relaxed))
            && let Some(key) = key()
        {
            let mut ring = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            ring.push((key, now()));
        }
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The keys of the last seconds, in order; and thins the sampling to what `per_second` requests need.
    #[must_use]
    pub fn samples(&self, now: Duration, per_second: f64) -> Vec<Bytes> {
        let thin = (per_second / SAMPLES_PER_SECOND).clamp(1.0, 65_536.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        self.stride.store(thin as u64, Ordering::Relaxed);
        self.recent(now)
    }

    /// The keys of the last seconds, in order, as thinly as they are sampled already.
    #[must_use]
    pub fn recent(&self, now: Duration) -> Vec<Bytes> {
        let ring = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = ring.keys.iter().filter(|(_, at)| now.saturating_sub(*at) <= SAMPLE_AGE);
        let mut keys: Vec<Bytes> = fresh.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        keys
    }
}

impl Meter {
    /// Stops sampling until somebody asks again.
    pub fn rest(&self) {
        self.stride.store(u64::MAX, Ordering::Relaxed);
    }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Bytes {
        Bytes::copy_from_slice(&n.to_be_bytes())
    }

    #[test]
    fn nobody_pays_for_samples_that_nobody_asks_for() {
        let meter = Meter::default();
        let mut asked = 0;
        for n in 0..1_000 {
            meter.note(
                || Duration::ZERO,
                || {
                    asked += 1;
                    Some(key(n))
                },
            );
        }
        assert_eq!((asked, meter.requests()), (1, 1_000));
    }

    #[test]
    fn samples_are_the_newest_keys_in_order_and_grow_old() {
        let meter = Meter::default();
        assert!(meter.samples(Duration::ZERO, 0.0).is_empty());
        for n in (0..300).rev() {
            meter.note(|| Duration::from_secs(1), || Some(key(n)));
        }
        let samples = meter.samples(Duration::from_secs(2), 300.0);
        assert_eq!(samples, (0..256).map(key).collect::<Vec<_>>());
        assert!(meter.samples(Duration::from_secs(7), 0.0).is_empty());
        assert_eq!(meter.requests(), 300);
    }

    #[test]
    fn looking_at_samples_does_not_change_how_they_are_taken() {
        let meter = Meter::default();
        for n in 0..100 {
            meter.note(|| Duration::ZERO, || Some(key(n)));
            assert_eq!(meter.recent(Duration::ZERO), [key(0)]);
        }
        assert!(meter.samples(Duration::from_secs(60), 1.0).is_empty());
        meter.note(|| Duration::from_secs(60), || Some(key(7)));
        assert_eq!(meter.recent(Duration::from_secs(61)), [key(7)]);
    }

    #[test]
    fn busy_partitions_are_sampled_thinly() {
        let meter = Meter::default();
        assert!(meter.samples(Duration::ZERO, 51_200.0).is_empty());
        for n in 0..1_000 {
            meter.note(|| Duration::ZERO, || Some(key(n)));
        }
        assert_eq!(meter.samples(Duration::ZERO, 51_200.0).len(), 10);
    }
}
