use std::collections::BTreeMap;

use super::*;
use crate::env::Rand;
use crate::env::SeededRand;

const LIMITS: Limits = Limits {
    open_max: 16,
    peer_max: 8,
    loopback_max: usize::MAX,
    reserved: 2,
    leaving_max: 4,
    refused_max: 4,
    refused_peer_max: 2,
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn peer(number: usize) -> PeerKey {
    PeerKey::V4(0xc000_0200 + u32::try_from(number).unwrap())
}

/// Opens a connection; panics when it is refused.
fn open(table: &mut Table, of: PeerKey, now: Duration) -> (Id, Arc<Activity>) {
    match table.admit(of, now) {
        Decision::Open(id, activity) => (id, activity),
        refused @ (Decision::Refuse | Decision::Close) => panic!("{refused:?}"),
    }
}

fn is_leaving(table: &Table, id: Id) -> bool {
    table.rows[&id].leaving
}

fn authenticate(table: &mut Table, (id, activity): &(Id, Arc<Activity>), now: Duration) {
    assert!(activity.is_due(now, KNOWN_FOR));
    table.authenticated(*id, now);
}

#[test]
fn peer_beyond_its_cap_is_refused_and_others_are_served() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let first = open(&mut table, peer(1), at(0));
    for _ in 1..LIMITS.peer_max {
        open(&mut table, peer(1), at(0));
    }
    for _ in 0..LIMITS.refused_peer_max {
        assert!(matches!(table.admit(peer(1), at(1)), Decision::Refuse));
    }
    assert!(matches!(table.admit(peer(1), at(1)), Decision::Close), "its refusals are taken");
    open(&mut table, peer(2), at(1));
    table.close(first.0);
    open(&mut table, peer(1), at(1));
    table.refused(peer(1));
    assert!(matches!(table.admit(peer(1), at(1)), Decision::Refuse));
}

#[test]
fn connections_of_this_machine_give_way_to_each_other() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let here = PeerKey::V4(0x7f00_0001);
    let first = open(&mut table, here, at(0));
    authenticate(&mut table, &first, at(0));
    let silent = open(&mut table, here, at(1));
    for _ in 2..LIMITS.open_max {
        open(&mut table, here, at(2));
    }
    open(&mut table, here, at(3));
    assert!(is_leaving(&table, silent.0) && !is_leaving(&table, first.0));
}

#[test]
fn longest_idle_stranger_leaves_for_a_new_connection() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let count = LIMITS.open_max - LIMITS.reserved;
    let all: Vec<_> = (0..count).map(|n| open(&mut table, peer(n), at(n as u64))).collect();
    all[0].1.begin();
    all[1].1.begin();
    all[1].1.end(at(50));
    open(&mut table, peer(100), at(60));
    assert!(!is_leaving(&table, all[0].0), "a request is in progress");
    assert!(!is_leaving(&table, all[1].0), "it asked something since");
    assert!(is_leaving(&table, all[2].0));
    // The order was found before this one asked something.
    all[3].1.begin();
    all[3].1.end(at(61));
    open(&mut table, peer(101), at(62));
    assert!(!is_leaving(&table, all[3].0) && is_leaving(&table, all[4].0));
}

#[test]
fn connection_with_a_request_in_progress_never_leaves() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    for n in 0..LIMITS.open_max - LIMITS.reserved {
        open(&mut table, peer(n), at(0)).1.begin();
    }
    assert!(matches!(table.admit(peer(100), at(9)), Decision::Refuse));
}

#[test]
fn reserved_slots_are_for_peers_that_have_authenticated() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let friend = open(&mut table, peer(1), at(0));
    friend.1.begin();
    authenticate(&mut table, &friend, at(0));
    for n in 0..LIMITS.open_max - LIMITS.reserved {
        open(&mut table, peer(10 + n), at(1)).1.begin();
    }
    assert!(matches!(table.admit(peer(100), at(2)), Decision::Refuse), "a stranger");
    open(&mut table, peer(1), at(2)).1.begin();
    assert!(matches!(table.admit(peer(1), at(2)), Decision::Refuse), "all are taken");
}

#[test]
fn peer_is_known_for_a_time_only() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let friend = open(&mut table, peer(1), at(0));
    authenticate(&mut table, &friend, at(0));
    assert!(table.is_known(peer(1), at(10)));
    assert!(!table.is_known(peer(1), KNOWN_FOR));
}

#[test]
fn known_peers_are_bounded_and_the_oldest_is_forgotten() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    for n in 0..=KNOWN_MAX {
        let one = open(&mut table, peer(n), at(n as u64 % 60));
        authenticate(&mut table, &one, Duration::from_millis(n as u64));
        table.close(one.0);
    }
    assert_eq!(table.known.len(), KNOWN_MAX);
    let now = at(60);
    assert!(!table.is_known(peer(0), now) && table.is_known(peer(1), now));
}

#[test]
fn authenticated_connections_leave_last() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let friend = open(&mut table, peer(1), at(0));
    authenticate(&mut table, &friend, at(0));
    let silent = open(&mut table, peer(1), at(1));
    let strangers: Vec<_> =
        (0..LIMITS.open_max - 2).map(|n| open(&mut table, peer(10 + n), at(2))).collect();
    open(&mut table, peer(1), at(3)).1.begin();
    assert!(
        is_leaving(&table, strangers[0].0),
        "strangers first, though the others are idle for longer"
    );
    strangers.iter().for_each(|(_, activity)| activity.begin());
    open(&mut table, peer(1), at(4)).1.begin();
    assert!(is_leaving(&table, silent.0));
    open(&mut table, peer(1), at(5)).1.begin();
    assert!(is_leaving(&table, friend.0));
    assert!(matches!(table.admit(peer(1), at(6)), Decision::Refuse));
}

#[test]
fn connections_that_leave_are_bounded() {
    let mut table = Table::new(LIMITS, ConnectionMetrics::default());
    let mut all = Vec::new();
    for n in 0..100 {
        match table.admit(peer(n), at(0)) {
            Decision::Open(id, _) => all.push(id),
            Decision::Refuse | Decision::Close => break,
        }
    }
    assert_eq!(all.len(), LIMITS.open_max - LIMITS.reserved + LIMITS.leaving_max);
    let left = *all.iter().find(|id| is_leaving(&table, **id)).unwrap();
    table.close(left);
    open(&mut table, peer(200), at(1));
}

/// Any order of events: the counts are those of the rows, and the limits hold.
#[test]
fn counts_stay_true_through_any_order_of_events() {
    for seed in 0..50 {
        let rand = SeededRand::new(seed);
        let random = |below: usize| usize::try_from(rand.next_u64() % below as u64).unwrap();
        let mut table = Table::new(LIMITS, ConnectionMetrics::default());
        let mut open: BTreeMap<u64, (Id, Arc<Activity>, u32)> = BTreeMap::new();
        for step in 0..2_000 {
            let now = Duration::from_millis(step * 10);
            let pick = |open: &BTreeMap<u64, (Id, Arc<Activity>, u32)>| {
                let keys: Vec<u64> = open.keys().copied().collect();
                (!keys.is_empty()).then(|| keys[random(keys.len())])
            };
            match random(8) {
                0..=2 => match table.admit(peer(random(6)), now) {
                    Decision::Open(id, activity) => {
                        open.insert(id.0, (id, activity, 0));
                    }
                    Decision::Refuse | Decision::Close => {}
                },
                3 => {
                    if let Some(key) = pick(&open) {
                        table.close(open.remove(&key).unwrap().0);
                    }
                }
                4 => {
                    let Some(key) = pick(&open) else { continue };
                    let one = open.get_mut(&key).unwrap();
                    one.1.begin();
                    one.2 += 1;
                }
                5 => {
                    let Some(key) = pick(&open) else { continue };
                    let one = open.get_mut(&key).unwrap();
                    if one.2 > 0 {
                        one.1.end(now);
                        one.2 -= 1;
                    }
                }
                6 => {
                    let Some(key) = pick(&open) else { continue };
                    let one = &open[&key];
                    if one.1.is_due(now, at(1)) {
                        table.authenticated(one.0, now);
                    }
                }
                _ => {
                    let given_back: Vec<PeerKey> = table
                        .peers
                        .iter()
                        .filter(|(_, of_peer)| of_peer.refused > 0)
                        .map(|(peer, _)| *peer)
                        .collect();
                    given_back.iter().for_each(|peer| table.refused(*peer));
                }
            }
            check(&table);
        }
    }
}

fn check(table: &Table) {
    let rows = table.rows.values();
    assert_eq!(table.leaving, rows.clone().filter(|row| row.leaving).count());
    let strangers = rows.clone().filter(|row| row.unknown && !row.leaving).count();
    assert_eq!(table.unknown, strangers);
    assert!(strangers <= LIMITS.open_max - LIMITS.reserved);
    assert!(table.rows.len() - table.leaving <= LIMITS.open_max);
    assert!(table.leaving <= LIMITS.leaving_max);
    assert_eq!(table.refused, table.peers.values().map(|of_peer| of_peer.refused).sum::<usize>());
    assert!(table.refused <= LIMITS.refused_max);
    for (peer, of_peer) in &table.peers {
        assert_eq!(of_peer.open, rows.clone().filter(|row| row.peer == *peer).count());
        assert!(of_peer.open <= LIMITS.peer_max && of_peer.refused <= LIMITS.refused_peer_max);
        assert!(of_peer.open + of_peer.refused > 0, "forgotten when nothing of it is left");
    }
}

#[test]
fn what_becomes_of_connections_is_counted() {
    let metrics = ConnectionMetrics::default();
    let limits = Limits { open_max: 3, peer_max: 2, refused_peer_max: 1, reserved: 0, ..LIMITS };
    let mut table = Table::new(limits, metrics.clone());
    let (first, activity) = open(&mut table, peer(1), at(0));
    activity.begin();
    open(&mut table, peer(1), at(1)).1.begin();
    assert!(matches!(table.admit(peer(1), at(2)), Decision::Refuse));
    assert!(matches!(table.admit(peer(1), at(2)), Decision::Close));
    let (idle, other) = open(&mut table, peer(2), at(2));
    open(&mut table, peer(3), at(3)).1.begin();
    assert!(is_leaving(&table, idle) && other.is_leaving());
    assert!(matches!(table.admit(peer(4), at(4)), Decision::Refuse));
    table.close(first);
    let counts = (metrics.open.get(), metrics.accepted.get(), metrics.gave_way.get());
    assert_eq!(counts, (3, 4, 1));
    assert_eq!(metrics.refusals(), [1, 1, 1], "of the peer, of all, without an answer");
}
