use bytes::Bytes;

use super::*;
use crate::types::RoutingKey;

const ORIGIN: Duration = Duration::from_secs(1_893_456_000);

fn at(seconds: u64) -> (Timestamp, Duration) {
    let taken = Duration::from_secs(seconds);
    (Timestamp::from_unix(ORIGIN + taken), taken)
}

fn key(number: u64) -> RoutingKey {
    RoutingKey::from_bytes(Bytes::copy_from_slice(&number.to_be_bytes()))
}

fn partition(id: u64, host: u64, requests: u64) -> PartitionCounts {
    let range = KeyRange::new(key(id), Some(key(id + 1)));
    PartitionCounts {
        id: PartitionId::new(id),
        host: HostId::new(host),
        range,
        stripe: None,
        requests,
        cpu: Duration::ZERO,
    }
}

/// Takes a sample of these partitions; each is a number, a host and its requests so far.
fn sample(history: &LoadHistory, seconds: u64, partitions: &[(u64, u64, u64)]) {
    let (now, taken) = at(seconds);
    let all = partitions.iter().map(|(id, host, requests)| partition(*id, *host, *requests));
    history.note(now, taken, all.collect());
}

fn rates(part: &LoadPart) -> Vec<Vec<(u32, f32)>> {
    part.samples.iter().map(|sample| sample.rates.clone()).collect()
}

#[test]
fn rates_are_differences_and_stays_follow_the_map() {
    let history = LoadHistory::default();
    assert!(history.is_due(Duration::ZERO));
    sample(&history, 0, &[(1, 0, 900)]);
    assert!(!history.is_due(Duration::from_secs(1)) && history.is_due(TICK));
    sample(&history, 2, &[(1, 0, 1_147)]);
    // Split: the halves count from nothing.
    sample(&history, 4, &[(2, 0, 10), (3, 0, 0)]);
    // One moves, and counts from nothing on its new host.
    sample(&history, 6, &[(2, 1, 4), (3, 0, 1)]);
    let all = history.after(None);
    assert_eq!((all.began, all.after, all.every), (Some(at(0).0), None, TICK));
    // Requests before the first sample are in no rate; 123.5 has two digits.
    let expected = [vec![], vec![(0, 120.0)], vec![(1, 5.0)], vec![(3, 2.0), (2, 0.5)]];
    assert_eq!(rates(&all), expected);
    let number: Vec<u64> = all.samples.iter().map(|sample| sample.number).collect();
    let stays = all.stays.iter().map(|s| (s.id.get(), s.host.number(), s.since, s.until));
    let expected = [
        (1, 0, number[0], Some(number[2])),
        (2, 0, number[2], Some(number[3])),
        (3, 0, number[2], None),
        (2, 1, number[3], None),
    ];
    assert_eq!(stays.collect::<Vec<_>>(), expected);
}

#[test]
fn later_answers_have_only_what_is_new() {
    let history = LoadHistory::default();
    sample(&history, 0, &[(1, 0, 0), (5, 0, 0)]);
    let first = history.after(None);
    let seen = first.samples[0].number;
    sample(&history, 2, &[(1, 0, 0), (5, 0, 8)]);
    sample(&history, 4, &[(2, 0, 0), (3, 0, 0), (5, 0, 8)]);
    let part = history.after(Some(seen));
    assert_eq!((part.after, part.samples.len()), (Some(seen), 2));
    assert_eq!(part.stays.iter().map(|stay| stay.id.get()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(part.ended, [(0, part.samples[1].number)]);
    let last = part.samples[1].number;
    let none = history.after(Some(last));
    assert_eq!((none.after, none.samples.len(), none.stays.len()), (Some(last), 0, 0));
    assert!(none.ended.is_empty());
    // Of another process, or dropped long ago: the answer has everything.
    for unknown in [0, seen + 1, last + 1] {
        let all = history.after(Some(unknown));
        assert_eq!((all.after, all.samples.len(), all.stays.len()), (None, 3, 4), "{unknown}");
        assert!(all.ended.is_empty());
    }
}

#[test]
fn ten_minutes_are_kept_and_what_no_look_has_is_forgotten() {
    let history = LoadHistory::default();
    sample(&history, 0, &[(1, 0, 0)]);
    for second in (2..=800).step_by(2) {
        sample(&history, second, &[(2, 0, second), (3, 0, 0)]);
    }
    let all = history.after(None);
    assert_eq!(all.samples.first().unwrap().at, at(200).0);
    assert_eq!(all.samples.len(), 301);
    assert_eq!(all.stays.len(), 2, "the partition of the first sample is forgotten");
    assert_eq!(all.began, Some(at(0).0));
    // The wall clock goes back: numbers still grow.
    history.note(at(100).0, at(802).1, vec![partition(2, 0, 802)]);
    let numbers: Vec<u64> =
        history.after(None).samples.iter().map(|sample| sample.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert!(numbers.iter().all(|number| *number < 1 << 53));
}

#[test]
fn many_busy_partitions_are_looked_at_less_often() {
    let history = LoadHistory::default();
    let busy = |second: u64| -> Vec<(u64, u64, u64)> {
        (1..=10_000).map(|id| (id, 0, second * 100)).collect()
    };
    let mut second = 0;
    for _ in 0..400 {
        if history.is_due(Duration::from_secs(second)) {
            sample(&history, second, &busy(second));
        }
        second += 2;
    }
    let part = history.after(None);
    assert_eq!(part.every, WINDOW * 10_000 / RATES_MAX);
    assert_eq!(part.samples.iter().map(|sample| sample.rates.len()).max(), Some(10_000));
    let count: usize = part.samples.iter().map(|sample| sample.rates.len()).sum();
    let max = usize::try_from(RATES_MAX).unwrap();
    assert!(count <= max && count > max / 2, "{count} rates");
    let reach = part.samples.last().unwrap().taken - part.samples.first().unwrap().taken;
    assert!(reach > Duration::from_secs(580), "{reach:?}");
}

#[test]
fn a_burst_of_load_or_of_changes_drops_the_oldest_looks() {
    let history = LoadHistory::default();
    let busy = |second: u64, first: u64, count: u64| -> Vec<(u64, u64, u64)> {
        (first..first + count).map(|id| (id, 0, second)).collect()
    };
    // Samples come in a row however many partitions are busy.
    for second in 0..12 {
        sample(&history, second, &busy(second, 1, 100_000));
    }
    let count: usize = history.after(None).samples.iter().map(|sample| sample.rates.len()).sum();
    assert!(count <= usize::try_from(RATES_MAX).unwrap(), "{count} rates");
    let changing = LoadHistory::default();
    for second in 0..40 {
        sample(&changing, second, &busy(second, second * 1_000, 1_000));
    }
    let ended = changing.after(None).stays.iter().filter(|stay| stay.until.is_some()).count();
    assert!((9_000..=ENDED_MAX).contains(&ended), "{ended} stays that have ended");
}
