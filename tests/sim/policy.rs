//! The policy that changes the partition map, with a week of synthetic load: days and nights,
//! bursts after idle time, a prefix that moves, names in ascending order, few but long lists, a
//! folder that fills slowly. The map must not oscillate, load that can be shared must be
//! distributed over the hosts, and no partition may grow too large.
//!
//! `DAYS` sets the length (default 1), `PLOT` a file for the picture.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places and turns of a made-up load are small and positive"
)]

mod plot;
mod steady;
mod world;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use blockyard::index::Load;
use blockyard::index::PartitionLoad;
use blockyard::index::Plan;
use blockyard::manager::Policy;
use blockyard::manager::PolicyConfig;
use blockyard::manager::TICK;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::HostId;
use blockyard::types::KeyRange;
use blockyard::types::PartitionId;
use blockyard::types::RoutingKey;
use blockyard::types::Stripe;
use bytes::Bytes;

use crate::draw::Draw;
use crate::policy::plot::plot;
use crate::policy::world::Part;
use crate::policy::world::World;
use crate::policy::world::key;
use crate::policy::world::place;

/// The number of fixed names, in order.
const PLACES: usize = 4096;
/// New names per second in ascending order, after all others, for an hour a day of the week.
const GROWN: usize = 64;
const DAYS_MAX: u64 = 7;
/// The number of all names. The last is after the container.
const ALL: usize = PLACES + GROWN * 3_600 * 7 + GROWN + 1;
const HOSTS: u64 = 4;
const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
/// Seconds after a change of the load in which hosts may be uneven.
const EVEN_AFTER: f64 = 10.0;

/// Processor time of a write, and of a list, seconds.
const WRITE_COST: f64 = 30e-6;
const LIST_COST: f64 = 4e-3;
/// The folder that fills, and its writes per second: too few to count as load.
const FILLS: std::ops::Range<usize> = 3_000..3_200;
const FILL_RATE: f64 = 400.0;
/// How long a partition may be too large, seconds.
const LARGE_FOR: f64 = 2.0 * MINUTE;

#[derive(Clone, Debug)]
struct Piece {
    id: PartitionId,
    host: HostId,
    from: usize,
    to: usize,
    range: KeyRange,
    stripe: Option<Stripe>,
    /// The loads of the last minutes, each with its time.
    recent: VecDeque<(f64, f64)>,
    rows: f64,
    /// Since when it is too large.
    large: Option<f64>,
}

impl Piece {
    fn new(id: PartitionId, host: HostId, (from, to): (usize, usize)) -> Self {
        let recent = VecDeque::new();
        let low = if from == 0 { RoutingKey::min() } else { key(from) };
        let range = KeyRange::new(low, (to < ALL).then(|| key(to)));
        Self { id, host, from, to, range, stripe: None, recent, rows: 0.0, large: None }
    }

    /// How many stripes share the range.
    fn stripes(&self) -> f64 {
        self.stripe.map_or(1.0, |stripe| f64::from(stripe.of()))
    }
}

/// One point of the plot.
struct Point {
    at: f64,
    load: f64,
    pieces: usize,
    uneven: f64,
    changes: [usize; 3],
}

/// The result of a replay.
#[derive(Default)]
struct Replay {
    points: Vec<Point>,
    splits: usize,
    /// How many of them because of size.
    even: usize,
    moves: usize,
    merges: usize,
    stripings: usize,
    unstripings: usize,
    /// The highest load of a host as a multiple of the mean, while hosts must be even.
    worst: f64,
    checked: usize,
}

struct Run<'a> {
    world: &'a World,
    config: PolicyConfig,
    pieces: Vec<Piece>,
    /// The rows of each name.
    rows: Vec<f64>,
    next: u64,
    draw: Draw,
    out: Replay,
}

impl<'a> Run<'a> {
    /// A map with one partition.
    fn new(world: &'a World, config: PolicyConfig, seed: u64) -> Self {
        let whole = Piece::new(PartitionId::new(0), HostId::new(0), (0, ALL));
        let (pieces, rows) = (vec![whole], vec![0.0; ALL]);
        let (draw, out) = (Draw::new(seed + 1), Replay::default());
        Self { world, config, pieces, rows, next: 1, draw, out }
    }

    fn loads(&mut self, at: f64, parts: &[Part]) -> Vec<PartitionLoad> {
        let (world, config) = (self.world, self.config);
        self.pieces
            .iter_mut()
            .map(|piece| {
                let mut load = world.load(at, parts, piece.from, piece.to);
                load.writes /= piece.stripes();
                load.lists /= piece.stripes();
                load.cpu /= piece.stripes();
                piece.recent.push_back((at, config.weight(&load)));
                while piece.recent.front().is_some_and(|(then, _)| at - then > 10.0 * MINUTE) {
                    piece.recent.pop_front();
                }
                let range = piece.range.clone();
                let rows = piece.rows as u64;
                piece.large = (rows > config.rows_max).then(|| piece.large.unwrap_or(at));
                let large = piece.large.map_or(0.0, |since| at - since);
                assert!(large < LARGE_FOR, "{rows} rows for {large} s");
                let (id, stripe, host) = (piece.id, piece.stripe, piece.host);
                let (bytes, changing) = (0, false);
                PartitionLoad { id, range, stripe, host, load, rows, bytes, changing }
            })
            .collect()
    }

    /// Adds the rows written in `seconds`.
    fn fill(&mut self, parts: &[Part], seconds: f64) {
        for part in parts.iter().filter(|part| part.from >= PLACES || part.from == FILLS.start) {
            let each = part.writes * seconds / (part.to - part.from) as f64;
            self.rows[part.from..part.to].iter_mut().for_each(|rows| *rows += each);
            for piece in &mut self.pieces {
                let common = piece.to.min(part.to).saturating_sub(piece.from.max(part.from));
                piece.rows += each * common as f64 / piece.stripes();
            }
        }
    }

    /// The names at which a piece is split into parts with equal numbers of rows.
    fn even(&self, from: usize, to: usize, ways: usize) -> Vec<usize> {
        let all: f64 = self.rows[from..to].iter().sum();
        let (mut cuts, mut before) = (Vec::new(), 0.0);
        for place in from..to {
            if place > from && before >= all * (cuts.len() + 1) as f64 / ways as f64 {
                cuts.push(place);
            }
            before += self.rows[place];
        }
        cuts.truncate(ways - 1);
        cuts
    }

    /// The keys of 128 requests to a piece.
    fn samples(&self, at: f64, parts: &[Part], id: PartitionId) -> Vec<Bytes> {
        let piece = self.pieces.iter().find(|piece| piece.id == id).unwrap();
        let all = self.world.load(at, parts, piece.from, piece.to).requests();
        let mut samples: Vec<usize> = (0..128)
            .map(|_| {
                let wanted = all * self.draw.between(0, 999_999) as f64 / 1e6;
                let (mut low, mut high) = (piece.from, piece.to);
                while high - low > 1 {
                    let middle = low.midpoint(high);
                    let below = self.world.load(at, parts, piece.from, middle).requests();
                    if below <= wanted { low = middle } else { high = middle }
                }
                low
            })
            .collect();
        samples.sort_unstable();
        samples.into_iter().map(|place| key(place).as_bytes().clone()).collect()
    }

    fn carry_out(&mut self, at: f64, plan: &Plan) -> usize {
        match plan {
            Plan::Split(id, keys) => {
                self.split(*id, keys.iter().map(place).collect());
                0
            }
            Plan::SplitEvenly(id, ways) => {
                let piece = self.pieces.iter().find(|piece| piece.id == *id).unwrap();
                let cuts = self.even(piece.from, piece.to, *ways);
                assert!(!cuts.is_empty());
                self.split(*id, cuts);
                self.out.even += 1;
                0
            }
            Plan::Stripe(id, range, of) => {
                self.stripe(*id, range, *of);
                0
            }
            Plan::Move(id, host) => {
                let piece = self.pieces.iter_mut().find(|piece| piece.id == *id).unwrap();
                assert_ne!(piece.host, *host);
                piece.host = *host;
                self.out.moves += 1;
                1
            }
            Plan::Merge(ids) => {
                self.merge(at, ids);
                2
            }
        }
    }

    fn stripe(&mut self, id: PartitionId, range: &KeyRange, of: u8) {
        let (from, to) = (place(range.low()), range.high().map_or(ALL, place));
        let whole = self.pieces.iter().find(|piece| piece.id == id).unwrap();
        let inside = |at: &usize| (whole.from + 1..whole.to).contains(at);
        let cuts: Vec<usize> = [from, to].into_iter().filter(inside).collect();
        self.split(id, cuts);
        let of_it = |piece: &Piece| (piece.from, piece.to) == (from, to);
        let place = self.pieces.iter().position(of_it).unwrap();
        let old = self.pieces.remove(place);
        assert!(old.range.lies_in_a_container());
        for stripe in Stripe::all(of) {
            let id = PartitionId::new(self.next);
            self.next += 1;
            let whole = Piece::new(id, old.host, (old.from, old.to));
            let rows = old.rows / f64::from(of);
            let piece = Piece { stripe: Some(stripe), rows, ..whole };
            self.pieces.insert(place + usize::from(stripe.number()), piece);
        }
        self.out.stripings += 1;
    }

    fn merge(&mut self, at: f64, ids: &[PartitionId]) {
        let place = self.pieces.iter().position(|piece| piece.id == ids[0]).unwrap();
        let parts: Vec<Piece> = self.pieces.drain(place..place + ids.len()).collect();
        assert!(parts.iter().map(|piece| piece.id).eq(ids.iter().copied()));
        for piece in &parts {
            let (first, _) = piece.recent.front().unwrap();
            assert!(at - first > 9.0 * MINUTE, "merged {} s after it was made", at - first);
            let most = piece.recent.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
            assert!(most < 0.25, "merged, but it had {most} times the load of a hot one");
        }
        if let Some(stripe) = parts[0].stripe {
            assert!(parts.iter().map(|piece| piece.stripe).eq(Stripe::all(stripe.of()).map(Some)));
            self.out.unstripings += 1;
        } else {
            assert!(parts.iter().all(|piece| piece.stripe.is_none()));
        }
        let (from, to) = (parts[0].from, parts[parts.len() - 1].to);
        let id = PartitionId::new(self.next);
        self.next += 1;
        let host = parts[0].host;
        let rows = self.rows[from..to].iter().sum();
        let piece = Piece { rows, ..Piece::new(id, host, (from, to)) };
        self.pieces.insert(place, piece);
        self.out.merges += 1;
    }

    fn split(&mut self, id: PartitionId, cuts: Vec<usize>) {
        let place = self.pieces.iter().position(|piece| piece.id == id).unwrap();
        let old = self.pieces.remove(place);
        assert!(old.stripe.is_none());
        let mut from = old.from;
        for (number, to) in cuts.into_iter().chain([old.to]).enumerate() {
            assert!(from < to, "an empty piece");
            let id = PartitionId::new(self.next);
            self.next += 1;
            let rows = self.rows[from..to].iter().sum();
            let piece = Piece { rows, ..Piece::new(id, old.host, (from, to)) };
            self.pieces.insert(place + number, piece);
            from = to;
        }
        self.out.splits += 1;
    }

    /// The load of the busiest host divided by the mean, and the total load.
    fn uneven(&self, loads: &[PartitionLoad]) -> (f64, f64) {
        let mut of_host: BTreeMap<HostId, f64> =
            (0..HOSTS).map(|n| (HostId::new(n), 0.0)).collect();
        for (piece, load) in self.pieces.iter().zip(loads) {
            *of_host.entry(piece.host).or_default() += self.config.weight(&load.load);
        }
        let all: f64 = of_host.values().sum();
        let most = of_host.values().copied().fold(0.0, f64::max);
        (most / (all / HOSTS as f64), all)
    }
}

fn replay(seed: u64, days: u64) -> Replay {
    let world = World::new(seed, days);
    let config = PolicyConfig::default();
    let mut policy = Policy::new(config);
    let mut run = Run::new(&world, config, seed);
    let hosts: Vec<HostId> = (0..HOSTS).map(HostId::new).collect();
    let (mut at, mut changed, mut busy) = (0.0, 0.0, 0.0);
    let mut shape: Vec<(usize, usize, Option<Stripe>)> = Vec::new();
    let mut changes = [0; 3];
    let mut next_point = 0.0;
    while at < days as f64 * 24.0 * HOUR {
        let parts = world.parts(at);
        // Ascending names that cross a border move their load to another partition, and so does
        // striping. That counts as a change of the load.
        let piece_of = |place: usize| {
            run.pieces.iter().find(|piece| (piece.from..piece.to).contains(&place)).unwrap()
        };
        let now_shape: Vec<(usize, usize, Option<Stripe>)> = parts
            .iter()
            .map(|part| {
                if part.from < PLACES {
                    (part.from, part.to, None)
                } else {
                    let (first, last) = (piece_of(part.from), piece_of(part.to - 1));
                    (first.from, last.to, first.stripe)
                }
            })
            .collect();
        if now_shape != shape {
            (shape, changed) = (now_shape, at);
        }
        let loads = run.loads(at, &parts);
        let (uneven, all) = run.uneven(&loads);
        let mean = all / HOSTS as f64;
        let largest = loads.iter().map(|load| config.weight(&load.load)).fold(0.0, f64::max);
        // The load of one partition can only be on one host.
        if at - changed > EVEN_AFTER && mean > 1.0 && largest <= mean {
            assert!(uneven <= 1.5, "at {at:.0} s: {uneven:.2} times the mean of {mean:.2}");
            run.out.worst = run.out.worst.max(uneven);
            run.out.checked += 1;
        }
        let now = Duration::from_secs_f64(at);
        let plans = {
            let run = &run;
            policy.tick(now, &hosts, &loads, &mut |id| run.samples(at, &parts, id))
        };
        for plan in &plans {
            let kind = run.carry_out(at, plan);
            changes[kind] += 1;
            busy = at;
        }
        if at >= next_point {
            let pieces = run.pieces.len();
            let load = loads.iter().map(|load| load.load.requests()).sum();
            run.out.points.push(Point { at, load, pieces, uneven, changes });
            changes = [0; 3];
            next_point = at + 10.0 * MINUTE;
        }
        // As often as the program while there is load or a change, and rarely otherwise.
        let awake = at - changed < 30.0 || at - busy < 5.0 || largest > 1.0;
        let step = if awake { TICK.as_secs_f64() } else { 2.0 };
        run.fill(&parts, step);
        at += step;
    }
    run.out
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how long a replay is and where its picture goes are the user's choice"
)]
fn policy_follows_days_of_load_without_swinging() {
    let days = std::env::var("DAYS").map_or(1, |days| days.parse().unwrap());
    assert!(days <= DAYS_MAX, "names are made up for a week");
    let week = replay(7, days);
    println!(
        "{days} days: {} splits ({} for size), {} moves, {} merges ({} of stripes), {} \
         stripings; busiest host at worst {:.2} times the mean, {} looks",
        week.splits,
        week.even,
        week.moves,
        week.merges,
        week.unstripings,
        week.stripings,
        week.worst,
        week.checked
    );
    assert!(week.checked > 1_000, "hosts were hardly ever compared");
    // Every burst, every move of the prefix and of the lists is a reason for some changes. More
    // would be oscillation.
    let reasons = usize::try_from(days).unwrap() * (24 * 3 + 8 + 2 + 60);
    assert!(week.even > 0 && week.even < 4 * usize::try_from(days).unwrap(), "{}", week.even);
    assert!(week.splits < 3 * reasons, "{} splits for {reasons} reasons", week.splits);
    assert!(week.moves < 16 * reasons, "{} moves for {reasons} reasons", week.moves);
    assert!(week.merges > 0);
    // Once for each hour of ascending names, and rarely otherwise.
    let hours = usize::try_from(days).unwrap();
    assert!((hours..=4 * hours).contains(&week.stripings), "{} stripings", week.stripings);
    assert!((hours..=week.stripings).contains(&week.unstripings), "{}", week.unstripings);
    if let Ok(file) = std::env::var("PLOT") {
        std::fs::write(file, plot(&week.points)).unwrap();
    }
}

const WIDTH: f64 = 960.0;
const PANEL: f64 = 110.0;

/// A curve: its title, its colour, and its value at a point.
type Panel = (&'static str, &'static str, fn(&Point) -> f64);
