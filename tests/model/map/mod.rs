//! Splits, merges, moves and takeovers of partitions, model-checked: every interleaving of a small
//! world.
//!
//! The world: two keys, two hosts, a coordinator, log extents with a fence. Hosts write, change the
//! map, crash and take over at any time; an answer of the coordinator may be lost. What is modelled
//! is the protocol of `src/index/engine/change/` and `recover.rs`, a durable step an action.
//!
//! Checked in every state: the descriptors tile the keys (I5); the next owner of a key finds every
//! acknowledged write to it (I1, I2, I8); the owner that the coordinator names, when it
//! serves, shows it (I6).

mod steps;

use stateright::Checker;
use stateright::Model;
use stateright::Property;

const KEYS: u8 = 2;
const HOSTS: u8 = 2;

/// Writes, by number, as bits. Write `n` is of key `n % KEYS`.
type Writes = u8;

/// What the coordinator holds of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Descriptor {
    id: u8,
    low: u8,
    high: u8,
    epoch: u8,
    host: u8,
    log: Vec<usize>,
    revision: u8,
}

impl Descriptor {
    fn has(&self, write: u8) -> bool {
        (self.low..self.high).contains(&(write % KEYS))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Record {
    /// Where the extent before ends, and rows that are in runs or were copied.
    Manifest {
        link: Option<(usize, usize)>,
        rows: Writes,
    },
    Write(u8),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Extent {
    fence: u8,
    records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Mode {
    Serving,
    /// Held for a change whose first records are durable: those it replaces, and what it will be.
    Held(Vec<Descriptor>, Vec<Descriptor>),
    /// Claimed, not yet fenced.
    Claimed,
    /// Fenced and replayed up to there; needs an extent of its own to write to.
    Replayed(Option<(usize, usize)>),
}

/// A partition open at a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    descriptor: Descriptor,
    rows: Writes,
    mode: Mode,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    map: Vec<Descriptor>,
    extents: Vec<Extent>,
    hosts: Vec<Vec<Open>>,
    written: u8,
    acknowledged: Writes,
    next_id: u8,
    changes: u8,
    takeovers: u8,
    crashes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The host appends the next write, and answers it.
    Write(u8, u8),
    Split(u8, u8),
    Merge(u8, u8, u8),
    Move(u8, u8, u8),
    /// The coordinator carries the transaction of a held change out, or refuses it; the host learns
    /// of it.
    Decide(u8, u8),
    /// The same, but the answer is lost: the host stops what it held.
    DecideUnheard(u8, u8),
    /// The coordinator cannot be reached: the change is given up.
    GiveUp(u8, u8),
    Claim(u8, u8),
    FenceAndReplay(u8, u8),
    Roll(u8, u8),
    Crash(u8),
}

/// How much may happen.
struct Bounds {
    writes: u8,
    changes: u8,
    takeovers: u8,
    crashes: u8,
    /// A fault planted to see that the properties can fail.
    broken: Option<Broken>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// Taking over replays without fencing.
    Unfenced,
    /// Children do not look at the log of their parent.
    Unlinked,
    /// A merge forgets what is in memory only.
    Forgetful,
}

impl World {
    fn descriptor(&self, id: u8) -> Option<&Descriptor> {
        self.map.iter().find(|descriptor| descriptor.id == id)
    }

    fn open(&self, host: u8, id: u8) -> Option<&Open> {
        self.hosts[usize::from(host)].iter().find(|open| open.descriptor.id == id)
    }

    fn open_mut(&mut self, host: u8, id: u8) -> Option<&mut Open> {
        self.hosts[usize::from(host)].iter_mut().find(|open| open.descriptor.id == id)
    }

    fn close(&mut self, host: u8, id: u8) {
        self.hosts[usize::from(host)].retain(|open| open.descriptor.id != id);
    }

    /// Ends what was held; the host may have taken the same partition over anew meanwhile.
    fn close_held(&mut self, host: u8, held: &Descriptor) {
        self.hosts[usize::from(host)].retain(|open| open.descriptor != *held);
    }

    fn rows_of(&self, host: u8, held: &Descriptor) -> Writes {
        let open = self.hosts[usize::from(host)].iter().find(|open| open.descriptor == *held);
        open.map_or(0, |open| open.rows)
    }

    /// What replaying a partition's log gives.
    fn replay(&self, descriptor: &Descriptor) -> Writes {
        let mut rows = 0;
        for (number, extent) in descriptor.log.iter().enumerate() {
            let records = &self.extents[*extent].records;
            let end = descriptor.log.get(number + 1).and_then(|next| {
                match self.extents[*next].records.first() {
                    Some(Record::Manifest { link: Some((before, end)), .. })
                        if before == extent =>
                    {
                        Some(*end)
                    }
                    Some(_) | None => None,
                }
            });
            for record in records.iter().take(end.unwrap_or(records.len())) {
                match record {
                    Record::Manifest { rows: more, .. } => rows |= more,
                    Record::Write(write) => rows |= 1 << write,
                }
            }
        }
        clip(rows, descriptor)
    }

    fn new_extent(&mut self, epoch: u8, first: Record) -> usize {
        self.extents.push(Extent { fence: epoch, records: vec![first] });
        self.extents.len() - 1
    }

    /// Where a log ends now.
    fn end(&self, descriptor: &Descriptor) -> Option<(usize, usize)> {
        descriptor.log.last().map(|extent| (*extent, self.extents[*extent].records.len()))
    }

    /// Replaces descriptors if none of them has changed.
    fn decide(&mut self, old: &[Descriptor], new: &[Descriptor]) -> bool {
        let unchanged = old
            .iter()
            .all(|old| self.descriptor(old.id).is_some_and(|now| now.revision == old.revision));
        if unchanged {
            self.map.retain(|now| old.iter().all(|old| old.id != now.id));
            self.map.extend(new.iter().cloned());
            self.map.sort_by_key(|descriptor| descriptor.low);
        }
        unchanged
    }
}

fn clip(rows: Writes, descriptor: &Descriptor) -> Writes {
    (0..8)
        .filter(|write| rows & (1 << write) != 0 && descriptor.has(*write))
        .fold(0, |r, w| r | 1 << w)
}

impl Model for Bounds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let first = Record::Manifest { link: None, rows: 0 };
        let descriptor =
            Descriptor { id: 0, low: 0, high: KEYS, epoch: 1, host: 0, log: vec![0], revision: 0 };
        let open = Open { descriptor: descriptor.clone(), rows: 0, mode: Mode::Serving };
        vec![World {
            map: vec![descriptor],
            extents: vec![Extent { fence: 1, records: vec![first] }],
            hosts: vec![vec![open], Vec::new()],
            written: 0,
            acknowledged: 0,
            next_id: 1,
            changes: 0,
            takeovers: 0,
            crashes: 0,
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for host in 0..HOSTS {
            let open = &world.hosts[usize::from(host)];
            if !open.is_empty() && world.crashes < self.crashes {
                steps.push(Step::Crash(host));
            }
            for one in open {
                let id = one.descriptor.id;
                match &one.mode {
                    Mode::Serving => {
                        if world.written < self.writes && one.descriptor.has(world.written) {
                            steps.push(Step::Write(host, id));
                        }
                        if world.changes < self.changes {
                            if one.descriptor.high - one.descriptor.low > 1 {
                                steps.push(Step::Split(host, id));
                            }
                            steps.push(Step::Move(host, id, 1 - host));
                            let right = open.iter().find(|right| {
                                right.mode == Mode::Serving
                                    && right.descriptor.low == one.descriptor.high
                            });
                            steps.extend(right.map(|r| Step::Merge(host, id, r.descriptor.id)));
                        }
                    }
                    Mode::Held(held, _) if held.first() == Some(&one.descriptor) => {
                        steps.push(Step::Decide(host, id));
                        steps.push(Step::DecideUnheard(host, id));
                        steps.push(Step::GiveUp(host, id));
                    }
                    Mode::Held(..) => {}
                    Mode::Claimed => steps.push(Step::FenceAndReplay(host, id)),
                    Mode::Replayed(_) => steps.push(Step::Roll(host, id)),
                }
            }
            if world.takeovers < self.takeovers {
                steps.extend(world.map.iter().map(|now| Step::Claim(host, now.id)));
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        self.take(&mut next, &step)?;
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the descriptors tile the keys", |_, world: &World| {
                let mut at = 0;
                let tiles = world.map.iter().all(|descriptor| {
                    let joins = descriptor.low == at;
                    at = descriptor.high;
                    joins
                });
                tiles && at == KEYS
            }),
            Property::always(
                "the next owner finds every acknowledged write",
                |_, world: &World| {
                    let found = world.map.iter().fold(0, |rows, now| rows | world.replay(now));
                    world.acknowledged & !found == 0
                },
            ),
            Property::always("the owner shows every acknowledged write", |_, world: &World| {
                world.map.iter().all(|now| {
                    world.open(now.host, now.id).is_none_or(|open| {
                        let serves = matches!(open.mode, Mode::Serving)
                            && open.descriptor.revision == now.revision;
                        !serves || clip(world.acknowledged, now) & !open.rows == 0
                    })
                })
            }),
            Property::sometimes("a key is written after it moved", |_, world: &World| {
                world.written > 0
                    && world.hosts[1].iter().any(|o| o.mode == Mode::Serving && o.rows != 0)
            }),
            Property::sometimes("a merge after a split", |_, world: &World| {
                world.map.len() == 1 && world.next_id > 3
            }),
        ]
    }
}

fn sound() -> Bounds {
    Bounds { writes: 3, changes: 3, takeovers: 1, crashes: 1, broken: None }
}

#[test]
fn every_interleaving_keeps_the_map_whole_and_every_acknowledged_write() {
    let checker = sound().checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn takeovers_by_both_hosts_race() {
    let bounds = Bounds { changes: 1, takeovers: 3, ..sound() };
    let checker = bounds.checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    for property in [
        "the descriptors tile the keys",
        "the next owner finds every acknowledged write",
        "the owner shows every acknowledged write",
    ] {
        checker.assert_no_discovery(property);
    }
}

/// A property that cannot fail proves nothing.
#[test]
fn planted_faults_are_found() {
    for broken in [Broken::Unfenced, Broken::Unlinked, Broken::Forgetful] {
        let bounds = Bounds { broken: Some(broken), changes: 2, ..sound() };
        let checker = bounds.checker().threads(2).spawn_bfs().join();
        let lost = checker.discovery("the next owner finds every acknowledged write");
        let hidden = checker.discovery("the owner shows every acknowledged write");
        assert!(lost.is_some() || hidden.is_some());
    }
}
