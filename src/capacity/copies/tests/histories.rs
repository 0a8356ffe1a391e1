//! Random histories: writers, cuts, crashes, and settlers that end half way. Whatever happens, each
//! extent gets one end, and every answered byte is before it on every sealed copy.

use std::sync::Arc;

use super::cluster::Calls;
use super::cluster::Node;
use super::*;
use crate::capacity::Appended;
use crate::capacity::ExtentState;
use crate::capacity::Member;
use crate::capacity::copies::CopyWriter;
use crate::capacity::copies::EndRecord;
use crate::capacity::copies::GroupEnds;
use crate::capacity::copies::Members;
use crate::capacity::copies::settle;
use crate::capacity::groups::GroupMaker;
use crate::capacity::member::verify;
use crate::capacity::units::index;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::Rand;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::rand::SeededRand;
use crate::types::ClusterNumber;
use crate::types::GroupId;
use crate::types::Incarnation;
use crate::types::NodeId;

const NODES: usize = 3;
const EXTENTS: usize = 6;

/// One payload that was answered.
#[derive(Debug)]
struct Answered {
    appended: Appended,
    bytes: Bytes,
}

struct History {
    seed: u64,
    dice: SeededRand,
    nodes: Vec<Arc<Node>>,
    members: Members,
    group: GroupId,
    record: GroupEnds,
    payloads: u64,
}

impl History {
    async fn new(seed: u64) -> Self {
        let mut nodes = Vec::new();
        for number in 0..NODES as u64 {
            nodes.push(Node::start(seed * 10 + number).await);
        }
        let members = nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Member>).collect();
        let clock = Arc::new(SimClock::new());
        let env = Env { clock, rand: Arc::new(SeededRand::new(seed)), tasks: Tasks::new() };
        let coordinator = Arc::new(SimulatedStore::new().open(&env));
        let record = GroupEnds::new(coordinator.clone());
        let ids = [1, 2, 3].map(NodeId::new);
        let maker = GroupMaker::new(coordinator, ClusterNumber::new(3), Incarnation::new(1));
        let group = maker.make(COPY.kind, &ids).await.unwrap().record.id();
        let dice = SeededRand::new(seed);
        Self { seed, dice, nodes, members, group, record, payloads: 0 }
    }

    fn below(&self, bound: u64) -> u64 {
        self.dice.below(bound)
    }

    /// Cuts links, crashes nodes, mends links.
    async fn disturb(&self, power: bool) {
        for node in &self.nodes {
            match self.below(10) {
                0 => node.set_calls(Calls::Lost),
                1 => node.set_calls(Calls::CutAfter(self.below(4))),
                2 if power => node.crash(true).await,
                2 | 3 => node.crash(false).await,
                4..7 => node.set_calls(Calls::Answered),
                7 => node.cut(),
                _ => {}
            }
        }
    }

    /// A writer appends to a new extent until it gives it up. Returns what was answered.
    async fn write(&mut self, copy: CopyId) -> Vec<Answered> {
        let mut writer = CopyWriter::new(copy, ONE, self.members.clone());
        let mut answered = Vec::new();
        for _ in 0..self.below(12) {
            self.payloads += 1;
            let sizes = [50, 3_000, 20_000, 70_000];
            let len = sizes[index(self.below(4))] + index(self.below(50));
            let bytes = payload(self.payloads, len);
            match writer.append(vec![vec![bytes.clone()]]).await {
                Ok(appended) => answered.push(Answered { appended, bytes }),
                Err(_) => return answered,
            }
            if self.below(5) == 0 {
                self.disturb(true).await;
            }
        }
        if self.below(2) == 0 {
            drop(writer.seal().await);
        }
        answered
    }

    /// Every sealed copy has the same end, and all answered bytes.
    async fn judge(&self, copy: CopyId, answered: &[Answered], all: bool) {
        let seed = self.seed;
        let recorded = self.record.recorded(copy.extent).await.unwrap().end;
        let mut ends: Vec<_> = recorded.into_iter().collect();
        for node in &self.nodes {
            let member = node.member();
            let Some(info) = member.copy(copy.extent).await.unwrap() else { continue };
            if info.state != ExtentState::Sealed {
                assert!(!all, "seed {seed}: {copy:?} is not settled");
                continue;
            }
            ends.push(info.end);
            for Answered { appended, bytes } in answered {
                let (location, range) = (appended.locations[0], 0..bytes.len() as u64);
                let parts = member.read(&location, range.clone()).await;
                let parts = parts.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let read = verify(&location, &range, &parts).unwrap();
                assert_eq!(read.concat(), *bytes, "seed {seed}");
            }
        }
        ends.dedup();
        assert!(ends.len() <= 1, "seed {seed}: {copy:?} ends at {ends:?}");
        let least = answered.last().map(|last| last.appended.end);
        assert!(ends.first().is_none_or(|end| Some(*end) >= least), "seed {seed}");
    }
}

async fn history(seed: u64) -> u64 {
    let mut history = History::new(seed).await;
    let mut written = Vec::new();
    for extent in history.group.extents().take(EXTENTS) {
        let copy = CopyId { extent, ..COPY };
        let answered = history.write(copy).await;
        history.disturb(true).await;
        let epoch = Epoch::new(2 + history.below(2));
        drop(settle(&history.members, copy, epoch, &history.record).await);
        history.judge(copy, &answered, false).await;
        written.push((copy, answered));
    }
    for node in &history.nodes {
        node.set_calls(Calls::Answered);
        node.crash(history.below(2) == 0).await;
    }
    let mut judged = 0;
    for (copy, answered) in &written {
        let done = settle(&history.members, *copy, Epoch::new(9), &history.record).await;
        done.unwrap_or_else(|error| panic!("seed {seed}: {copy:?}: {error}"));
        history.judge(*copy, answered, true).await;
        judged += answered.len() as u64;
    }
    judged
}

#[test]
fn whatever_happens_an_extent_has_one_end_after_all_that_was_answered() {
    let judged: u64 = (0..80).map(|seed| run(history(seed))).sum();
    assert!(judged > 600, "only {judged} payloads were answered");
}
