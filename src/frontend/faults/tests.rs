use super::*;
use crate::env::Tasks;
use crate::env::clock::SimClock;

fn dial() -> (Faults, Registry) {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    let mut registry = Registry::default();
    (Faults::new(env, &mut registry), registry)
}

fn rule(text: &str) -> FaultRule {
    serde_json::from_str(text).unwrap()
}

fn put(container: &str) -> FaultTarget<'_> {
    FaultTarget { operation: "PutBlob", account: "acct", container: Some(container) }
}

fn struck(dial: &Faults, requests: usize) -> Vec<bool> {
    (0..requests).map(|_| dial.inject(put("c")).is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn same_seed_strikes_the_same_requests_at_about_the_rate() {
    let drawn = |seed: u64| {
        let (dial, _) = dial();
        dial.set(rule(&format!(r#"{{"kind":"busy","rate":0.3,"seed":{seed}}}"#))).unwrap();
        struck(&dial, 1000)
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let share = drawn(7).iter().filter(|struck| **struck).count();
    assert!((250..350).contains(&share), "{share} of 1000");
}

#[tokio::test(start_paused = true)]
async fn only_what_matches_is_struck() {
    let (dial, _) = dial();
    assert!(!dial.is_on());
    let text =
        r#"{"kind":"error","operations":["putblob"],"accounts":["acct"],"containers":["con"]}"#;
    dial.set(rule(text)).unwrap();
    assert!(dial.is_on());
    assert_eq!(dial.inject(put("con")).unwrap().kind, FaultKind::Error);
    let others = [
        put("d"),
        FaultTarget { operation: "GetBlob", ..put("con") },
        FaultTarget { account: "other", ..put("con") },
        FaultTarget { container: None, ..put("con") },
    ];
    for other in others {
        assert_eq!(dial.inject(other), None, "{other:?}");
    }
    let state = &dial.list()[0];
    assert_eq!((state.matched, state.struck), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn rules_end_by_count_by_time_and_by_hand() {
    let (dial, registry) = dial();
    dial.set(rule(r#"{"kind":"busy","count":2}"#)).unwrap();
    assert_eq!(struck(&dial, 4), [true, true, false, false]);
    assert!(!dial.is_on());

    dial.set(rule(r#"{"kind":"busy","seconds":10}"#)).unwrap();
    assert_eq!(struck(&dial, 1), [true]);
    dial.env.clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(struck(&dial, 1), [false]);
    assert!(dial.list().is_empty());

    let first = dial.set(rule(r#"{"kind":"slow","bytes_per_second":9}"#)).unwrap();
    let second = dial.set(rule(r#"{"kind":"timeout","delay_ms":5}"#)).unwrap();
    assert_eq!(dial.inject(put("c")).unwrap().bytes_per_second, 9, "the first rule decides");
    assert_eq!(dial.clear(Some(first.id)), 1);
    let strike = dial.inject(put("c")).unwrap();
    assert_eq!((strike.kind, strike.delay), (FaultKind::Timeout, Duration::from_millis(5)));
    let shown =
        crate::telemetry::render(&registry, crate::telemetry::Exposition::OpenMetrics).unwrap();
    assert!(shown.contains("fault_rules 1\n"), "{shown}");
    assert!(shown.contains("faults_struck_total{kind=\"busy\"} 3\n"), "{shown}");
    assert_eq!((dial.clear(Some(first.id)), dial.clear(None)), (0, 1));
    assert_eq!(second.id, first.id + 1, "numbers are not used twice");
    assert!(!dial.is_on());
    dial.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn rules_that_no_request_can_match_are_refused() {
    let (dial, _) = dial();
    for text in [r#""operations":["PutBlub"]"#, r#""accounts":["A_"]"#, r#""containers":["c"]"#] {
        let refused = dial.set(rule(&format!(r#"{{"kind":"busy",{text}}}"#)));
        assert!(matches!(refused, Err(FaultError::Filter(_))), "{text}");
    }
    assert!(!dial.is_on());
}

#[tokio::test(start_paused = true)]
async fn senseless_rules_are_refused() {
    let (dial, _) = dial();
    for (text, expected) in [
        (r#"{"kind":"busy","rate":0}"#, FaultError::Rate(0.0)),
        (r#"{"kind":"busy","rate":1.5}"#, FaultError::Rate(1.5)),
        (r#"{"kind":"slow","bytes_per_second":0}"#, FaultError::Pace(0)),
        (r#"{"kind":"timeout","delay_ms":600001}"#, FaultError::Delay(600_001)),
    ] {
        assert_eq!(dial.set(rule(text)), Err(expected), "{text}");
    }
    for _ in 0..RULES_MAX {
        dial.set(rule(r#"{"kind":"busy"}"#)).unwrap();
    }
    assert_eq!(dial.set(rule(r#"{"kind":"busy"}"#)), Err(FaultError::TooMany));
    assert!(serde_json::from_str::<FaultRule>(r#"{"kind":"busy","rat":1}"#).is_err());
    dial.env.tasks.shutdown().await;
}
