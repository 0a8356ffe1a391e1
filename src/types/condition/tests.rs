use std::time::Duration;

use super::*;

const OURS: Etag = Etag::from_commit(Timestamp::from_ticks(100));
const OTHER: Etag = Etag::from_commit(Timestamp::from_ticks(200));

/// The blob changed at half past the tenth second.
fn changed() -> Timestamp {
    Timestamp::from_unix(Duration::from_millis(10_500))
}

fn second(n: u64) -> Option<Timestamp> {
    Some(Timestamp::from_unix(Duration::from_secs(n)))
}

fn tags(tags: &[Etag]) -> Option<EtagMatch> {
    Some(EtagMatch::Tags(tags.iter().copied().map(Some).collect()))
}

/// `(if_match, if_none_match, if_modified_since, if_unmodified_since)`
type Given = (Option<EtagMatch>, Option<EtagMatch>, Option<Timestamp>, Option<Timestamp>);

fn conditions(
    (if_match, if_none_match, if_modified_since, if_unmodified_since): Given,
) -> Conditions {
    Conditions { if_match, if_none_match, if_modified_since, if_unmodified_since }
}

#[test]
fn reads_of_what_exists() {
    use Outcome::{Failed, NotModified, Proceed};
    let any = Some(EtagMatch::Any);
    let cases: Vec<(Given, Outcome)> = vec![
        ((None, None, None, None), Proceed),
        ((any, None, None, None), Proceed),
        ((tags(&[OURS]), None, None, None), Proceed),
        ((tags(&[OTHER, OURS]), None, None, None), Proceed),
        ((tags(&[OTHER]), None, None, None), Failed),
        ((Some(EtagMatch::Tags(vec![None])), None, None, None), Failed),
        ((None, tags(&[OURS]), None, None), NotModified),
        ((None, tags(&[OTHER]), None, None), Proceed),
        ((None, Some(EtagMatch::Tags(vec![None])), None, None), Proceed),
        ((None, None, second(10), None), NotModified),
        ((None, None, second(9), None), Proceed),
        ((None, None, second(11), None), NotModified),
        ((None, None, None, second(10)), Proceed),
        ((None, None, None, second(9)), Failed),
        // One of the second pair is enough.
        ((None, tags(&[OURS]), second(9), None), Proceed),
        ((None, tags(&[OTHER]), second(10), None), Proceed),
        ((None, tags(&[OURS]), second(10), None), NotModified),
        // Both of the first pair must hold.
        ((tags(&[OURS]), None, None, second(9)), Failed),
        ((tags(&[OTHER]), None, None, second(10)), Failed),
        ((tags(&[OURS]), tags(&[OURS]), None, second(10)), NotModified),
    ];
    for (given, outcome) in cases {
        let conditions = conditions(given);
        assert_eq!(conditions.check_read(OURS, changed()), outcome, "{conditions:?}");
    }
}

#[test]
fn writes_of_what_exists() {
    use Outcome::{AlreadyExists, Failed, Proceed};
    let any = Some(EtagMatch::Any);
    let cases: Vec<(Given, Outcome)> = vec![
        ((None, None, None, None), Proceed),
        ((any.clone(), None, None, None), Proceed),
        ((tags(&[OURS]), None, None, None), Proceed),
        ((tags(&[OTHER]), None, None, None), Failed),
        ((None, any, None, None), AlreadyExists),
        ((None, tags(&[OURS]), None, None), Failed),
        ((None, tags(&[OTHER]), None, None), Proceed),
        ((None, None, second(10), None), Failed),
        ((None, None, second(9), None), Proceed),
        ((None, None, None, second(10)), Proceed),
        ((None, None, None, second(9)), Failed),
        // Of a tag and its date, the tag decides.
        ((None, tags(&[OTHER]), second(10), None), Proceed),
        ((None, tags(&[OURS]), second(9), None), Failed),
        ((tags(&[OURS]), None, None, second(9)), Proceed),
        ((tags(&[OTHER]), None, None, second(10)), Failed),
    ];
    for (given, outcome) in cases {
        let conditions = conditions(given);
        assert_eq!(conditions.check_write(Some((OURS, changed()))), outcome, "{conditions:?}");
    }
}

#[test]
fn writes_of_what_does_not_exist() {
    let any = Some(EtagMatch::Any);
    for (given, outcome) in [
        ((None, None, None, None), Outcome::Proceed),
        ((any.clone(), None, None, None), Outcome::Failed),
        ((tags(&[OURS]), None, None, None), Outcome::Failed),
        ((None, any, None, None), Outcome::Proceed),
        ((None, tags(&[OURS]), None, None), Outcome::Proceed),
        ((None, None, second(10), None), Outcome::Proceed),
        ((None, None, None, second(0)), Outcome::Proceed),
    ] {
        let conditions = conditions(given);
        assert_eq!(conditions.check_write(None), outcome, "{conditions:?}");
    }
    assert!(Conditions::default().is_empty());
    assert!(!conditions((None, None, None, second(0))).is_empty());
}
