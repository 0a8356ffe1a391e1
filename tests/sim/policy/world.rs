//! The synthetic load, second by second.

use super::*;

/// Load on a range of names: requests per second, evenly distributed.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) writes: f64,
    pub(super) lists: f64,
}

impl Part {
    pub(super) const fn of_writes(from: usize, to: usize, writes: f64) -> Self {
        Self { from, to, writes, lists: 0.0 }
    }
}

/// The load at a time, in seconds from the start.
#[derive(Debug)]
pub(super) struct World {
    /// Bursts: begin, end, first name.
    pub(super) bursts: Vec<(f64, f64, usize)>,
    /// The cumulative weights of the names in the daily load.
    pub(super) daily: Vec<f64>,
    /// Requests per second to all names, if that does not depend on the time.
    rate: Option<f64>,
}

impl World {
    pub(super) fn new(seed: u64, days: u64) -> Self {
        let draw = Draw::new(seed);
        let mut bursts = Vec::new();
        let mut at = 600.0;
        while at < days as f64 * 24.0 * HOUR {
            let len = draw.between(20, 120) as f64;
            bursts.push((at, at + len, usize::try_from(draw.between(0, 60)).unwrap() * 64));
            at += len + draw.between(300, 5_000) as f64;
        }
        Self { bursts, daily: Self::weights(), rate: None }
    }

    /// A load of this many requests per second, and nothing else.
    pub(super) fn steady(rate: f64) -> Self {
        Self { bursts: Vec::new(), daily: Self::weights(), rate: Some(rate) }
    }

    /// The cumulative weights of the names.
    fn weights() -> Vec<f64> {
        let mut sum = 0.0;
        let mut daily = vec![0.0];
        for place in 0..ALL {
            // A few names have most of the load.
            let weight = 1.0 / (1.0 + (place * 2_654_435_761 % PLACES) as f64 / 40.0);
            sum += if place < PLACES { weight } else { 0.0 };
            daily.push(sum);
        }
        daily.iter_mut().for_each(|weight| *weight /= sum);
        daily
    }

    /// The load in addition to the daily one.
    pub(super) fn parts(&self, at: f64) -> Vec<Part> {
        let mut parts = Vec::new();
        for (begin, end, place) in &self.bursts {
            if (*begin..*end).contains(&at) {
                parts.push(Part::of_writes(*place, place + 64, 60_000.0));
            }
        }
        // A prefix that moves every three hours, by day.
        let turn = (at / (3.0 * HOUR)) as usize;
        if !turn.is_multiple_of(3) {
            let from = turn * 997 % (PLACES - 256);
            parts.push(Part::of_writes(from, from + 256, 15_000.0));
        }
        // For an hour a day there are new names in ascending order.
        let of_day = at % (24.0 * HOUR);
        if (10.0 * HOUR..11.0 * HOUR).contains(&of_day) {
            let day = (at / (24.0 * HOUR)) as usize;
            let grown = day as f64 * HOUR + of_day - 10.0 * HOUR;
            let place = PLACES + (grown * GROWN as f64) as usize;
            parts.push(Part::of_writes(place, place + GROWN / 4, 14_000.0));
        }
        // For two hours a day a client lists, which takes 2.5 processors.
        if (15.0 * HOUR..17.0 * HOUR).contains(&of_day) {
            parts.push(Part { from: 500, to: 1_012, writes: 0.0, lists: 600.0 });
        }
        parts.push(Part::of_writes(FILLS.start, FILLS.end, FILL_RATE));
        parts
    }

    /// Requests per second to all names in the daily load, from few to many.
    pub(super) fn daily(at: f64) -> f64 {
        let day = (at / (24.0 * HOUR) * std::f64::consts::TAU).sin();
        1_500.0 + 12_000.0 * (day + 1.0)
    }

    pub(super) fn load(&self, at: f64, parts: &[Part], from: usize, to: usize) -> Load {
        let rate = self.rate.unwrap_or_else(|| Self::daily(at));
        let daily = rate * (self.daily[to] - self.daily[from]);
        let mut load = Load { writes: daily, ..Load::default() };
        for part in parts {
            let common = to.min(part.to).saturating_sub(from.max(part.from));
            let share = common as f64 / (part.to - part.from) as f64;
            load.writes += part.writes * share;
            load.lists += part.lists * share;
        }
        load.cpu = load.writes * WRITE_COST + load.lists * LIST_COST;
        // A partition can use one processor.
        load.queue_age = Duration::from_millis(if load.cpu > 0.9 { 100 } else { 0 });
        load
    }
}

pub(super) fn key(place: usize) -> RoutingKey {
    let first = RoutingKey::blob(&BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(5),
        collation: Collation::Utf16,
        name: BlobName::new(&format!("{place:07}")).unwrap(),
    });
    if place + 1 < ALL { first } else { first.rest_of_container().unwrap().high().unwrap().clone() }
}

pub(super) fn place(key: &RoutingKey) -> usize {
    key.name(Collation::Utf16).map_or(ALL - 1, |name| name.parse().unwrap())
}
