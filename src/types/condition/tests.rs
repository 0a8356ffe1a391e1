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

fn current(etag: Etag) -> Validators {
    let content_etag = Some(ContentEtag::opaque([1; 16], 1));
    Validators { etag, content_etag, last_modified: changed(), len: Some(5), tier_changed: None }
}

fn tags(tags: &[Etag]) -> Option<EtagMatch> {
    Some(EtagMatch::Tags(tags.iter().copied().map(Some).collect()))
}

/// `(if_match, if_none_match, if_modified_since, if_unmodified_since)`
type Given = (Option<EtagMatch>, Option<EtagMatch>, Option<Timestamp>, Option<Timestamp>);

fn conditions(
    (if_match, if_none_match, if_modified_since, if_unmodified_since): Given,
) -> Conditions {
    let pairing = Pairing::Both;
    Conditions {
        if_match,
        if_none_match,
        if_modified_since,
        if_unmodified_since,
        pairing,
        ..Conditions::default()
    }
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
        assert_eq!(conditions.check_read(&current(OURS)), outcome, "{conditions:?}");
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
        assert_eq!(conditions.check_write(Some(&current(OURS))), outcome, "{conditions:?}");
    }
}

#[test]
fn writes_of_what_does_not_exist() {
    let any = Some(EtagMatch::Any);
    for (given, outcome) in [
        ((None, None, None, None), Outcome::Proceed),
        ((any.clone(), None, None, None), Outcome::NothingToMatch),
        ((tags(&[OURS]), None, None, None), Outcome::NothingToMatch),
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

/// RFC 9110, 13.2.2: a date counts only where its tag is not given.
#[test]
fn reads_whose_tags_decide() {
    use Outcome::{Failed, NotModified, Proceed};
    let cases: Vec<(Given, Outcome)> = vec![
        ((None, None, None, None), Proceed),
        ((tags(&[OURS]), None, None, second(9)), Proceed),
        ((tags(&[OTHER]), None, None, second(10)), Failed),
        ((None, None, None, second(9)), Failed),
        ((None, tags(&[OURS]), second(9), None), NotModified),
        ((None, tags(&[OTHER]), second(10), None), Proceed),
        ((None, None, second(10), None), NotModified),
        ((None, None, second(9), None), Proceed),
        ((tags(&[OTHER]), tags(&[OURS]), None, None), Failed),
        ((tags(&[OURS]), tags(&[OURS]), None, None), NotModified),
    ];
    for (given, outcome) in cases {
        let conditions = Conditions { pairing: Pairing::TagFirst, ..conditions(given) };
        assert_eq!(conditions.check_read(&current(OURS)), outcome, "{conditions:?}");
    }
    assert!(Conditions { pairing: Pairing::TagFirst, ..Conditions::default() }.is_empty());
}

#[test]
fn tags_of_content_are_compared_with_the_content() {
    let ours = ContentEtag::opaque([1; 16], 1);
    let other = ContentEtag::opaque([1; 16], 2);
    let container = Validators { content_etag: None, ..current(OURS) };
    for (tags, matches) in [(vec![other, ours], true), (vec![other], false), (vec![], false)] {
        let wanted = Some(EtagMatch::Content(tags));
        let is = conditions((wanted.clone(), None, None, None));
        let expected = if matches { Outcome::Proceed } else { Outcome::Failed };
        assert_eq!(is.check_read(&current(OURS)), expected);
        assert_eq!(is.check_write(Some(&current(OURS))), expected);
        assert_eq!(is.check_write(Some(&container)), Outcome::Failed);
        assert_eq!(is.check_write(None), Outcome::NothingToMatch);
        let none = conditions((None, wanted, None, None));
        let expected = if matches { Outcome::Failed } else { Outcome::Proceed };
        assert_eq!(none.check_write(Some(&current(OURS))), expected);
    }
}

#[test]
fn time_and_length_of_a_deletion_must_both_hold() {
    use Outcome::{Failed, Proceed};
    let ours = current(OURS);
    let check = |if_modified_at, if_len| {
        let conditions = Conditions { if_modified_at, if_len, ..Conditions::default() };
        assert_eq!(conditions.check_write(None), Proceed, "what does not exist passes");
        assert_eq!(conditions.is_empty(), if_modified_at.is_none() && if_len.is_none());
        conditions.check_write(Some(&ours))
    };
    let second = Some(changed().whole_seconds());
    let other = Some(changed().plus(Duration::from_secs(1)));
    for (time, len, outcome) in [
        (None, None, Proceed),
        (second, None, Proceed),
        (Some(changed()), Some(5), Proceed),
        (None, Some(5), Proceed),
        (None, Some(6), Failed),
        (other, None, Failed),
        (other, Some(5), Failed),
        (second, Some(4), Failed),
    ] {
        assert_eq!(check(time, len), outcome, "{time:?} {len:?}");
    }
}
