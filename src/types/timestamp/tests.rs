use super::*;

#[test]
fn ticks_count_from_the_year_one() {
    let epoch = Timestamp::from_unix(Duration::ZERO);
    assert_eq!(epoch.ticks(), 621_355_968_000_000_000);
    assert_eq!(epoch.to_string(), "Thu, 01 Jan 1970 00:00:00 GMT");
    let time = Timestamp::from_unix(Duration::new(1_795_227_198, 131_000_099));
    assert_eq!(time.to_string(), "Sat, 21 Nov 2026 02:13:18 GMT");
    // A tick is 100 ns; shorter times are lost.
    assert_eq!(time.since_unix(), Duration::new(1_795_227_198, 131_000_000));
    assert_eq!(time.whole_seconds().since_unix(), Duration::from_secs(1_795_227_198));
    assert_eq!(Timestamp::from_ticks(time.ticks()), time);
    assert_eq!(time.to_system_time(), UNIX_EPOCH + time.since_unix());
}

#[test]
fn arithmetic_stops_at_the_ends() {
    let time = Timestamp::from_ticks(1_000);
    let tick = Duration::from_nanos(100);
    assert_eq!(time.next(), time.plus(tick));
    assert_eq!(time.plus(tick * 5).since(time), tick * 5);
    assert_eq!(time.since(time.next()), Duration::ZERO);
    assert_eq!(time.minus(tick * 1_000), Some(Timestamp::ZERO));
    assert_eq!(time.minus(tick * 1_001), None);
    assert_eq!(Timestamp::ZERO.since_unix(), Duration::ZERO);
    let last = Timestamp::from_ticks(u64::MAX);
    assert_eq!(last.plus(Duration::from_secs(1)), last);
    assert_eq!((time.plus(Duration::MAX), Timestamp::from_unix(Duration::MAX)), (last, last));
    assert_eq!(last.to_string(), "Fri, 31 Dec 9999 23:59:59 GMT");
}
