use http::HeaderName;
use http::HeaderValue;

use super::*;

fn until() -> Timestamp {
    Timestamp::from_iso("2030-01-01T00:00:00Z").unwrap()
}

fn of_headers(pairs: &[(&'static str, &'static str)]) -> Result<LockClaim, Reason> {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    claim(&pairs.iter().map(pair).collect()).map_err(|refusal| refusal.reason)
}

#[test]
fn headers_name_mode_and_date_together() {
    const DATE: &str = "2030-01-01T00:00:00Z";
    let retained = |mode| LockClaim {
        retention: Some(Retention { mode, until: until() }),
        ..LockClaim::default()
    };
    let held = |on| LockClaim { legal_hold: Some(on), ..LockClaim::default() };
    let wrong = Err(Reason::InvalidHeaderValue);
    for (pairs, expected) in [
        (&[][..], Ok(LockClaim::default())),
        (&[(MODE, "GOVERNANCE"), (UNTIL, DATE)], Ok(retained(RetentionMode::Unlocked))),
        (&[(MODE, "COMPLIANCE"), (UNTIL, DATE)], Ok(retained(RetentionMode::Locked))),
        (&[(LEGAL_HOLD, "ON")], Ok(held(true))),
        (&[(LEGAL_HOLD, "OFF")], Ok(held(false))),
        (&[(MODE, "COMPLIANCE")], wrong),
        (&[(UNTIL, DATE)], wrong),
        (&[(MODE, "governance"), (UNTIL, DATE)], wrong),
        (&[(MODE, "GOVERNANCE"), (UNTIL, "Tue, 01 Jan 2030 00:00:00 GMT")], wrong),
        (&[(LEGAL_HOLD, "on")], wrong),
    ] {
        assert_eq!(of_headers(pairs), expected, "{pairs:?}");
    }
}

#[test]
fn documents_of_retention_are_whole_or_empty() {
    let of = |inner: &str| {
        let document = format!("<Retention>{inner}</Retention>");
        read_retention(document.as_bytes()).map_err(|refusal| refusal.reason)
    };
    const DATE: &str = "<RetainUntilDate>2030-01-01T00:00:00.000Z</RetainUntilDate>";
    let mode = RetentionMode::Locked;
    assert_eq!(of(""), Ok(None));
    assert_eq!(
        of(&format!("<Mode>COMPLIANCE</Mode>{DATE}")),
        Ok(Some(Retention { mode, until: until() }))
    );
    for (inner, reason) in [
        ("<Mode>COMPLIANCE</Mode>", Reason::MissingElement),
        (DATE, Reason::MissingElement),
        ("<Mode>abc</Mode>", Reason::InvalidElementValue),
        (
            "<Mode>GOVERNANCE</Mode><RetainUntilDate>soon</RetainUntilDate>",
            Reason::InvalidElementValue,
        ),
        ("<Days>1</Days>", Reason::UnsupportedElement),
    ] {
        assert_eq!(of(inner), Err(reason), "{inner}");
    }
}

#[test]
fn documents_of_holds_have_a_status() {
    let of = |inner: &str| {
        let document = format!("<LegalHold>{inner}</LegalHold>");
        read_legal_hold(document.as_bytes()).map_err(|refusal| refusal.reason)
    };
    assert_eq!(of("<Status>ON</Status>"), Ok(true));
    assert_eq!(of("<Status>OFF</Status>"), Ok(false));
    assert_eq!(of("<Status>abc</Status>"), Err(Reason::InvalidElementValue));
    assert_eq!(of(""), Err(Reason::MissingElement));
}

#[test]
fn configurations_have_one_period_in_bounds() {
    let of = |inner: &str| {
        let document = format!("<ObjectLockConfiguration>{inner}</ObjectLockConfiguration>");
        read_configuration(document.as_bytes()).map_err(|refusal| refusal.reason)
    };
    let rule = |inner: &str| {
        of(&format!(
            "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
             <Mode>GOVERNANCE</Mode>{inner}</DefaultRetention></Rule>"
        ))
    };
    let lock = |period| ObjectLock {
        default: Some(DefaultRetention { mode: RetentionMode::Unlocked, period }),
    };
    let plain = of("<ObjectLockEnabled>Enabled</ObjectLockEnabled>");
    assert_eq!(plain, Ok(ObjectLock { default: None }));
    for (inner, expected) in [
        ("<Days>1</Days>", Ok(lock(RetentionPeriod::Days(1)))),
        ("<Days>36500</Days>", Ok(lock(RetentionPeriod::Days(36_500)))),
        ("<Years>100</Years>", Ok(lock(RetentionPeriod::Years(100)))),
        ("<Days>0</Days>", Err(Reason::InvalidRetentionPeriod)),
        ("<Days>36501</Days>", Err(Reason::InvalidRetentionPeriod)),
        ("<Years>-1</Years>", Err(Reason::InvalidRetentionPeriod)),
        ("<Years>101</Years>", Err(Reason::InvalidRetentionPeriod)),
        ("<Days>1.5</Days>", Err(Reason::InvalidElementValue)),
        ("<Days>1</Days><Years>1</Years>", Err(Reason::UnsupportedElement)),
        ("", Err(Reason::MissingElement)),
    ] {
        assert_eq!(rule(inner), expected, "{inner}");
    }
    for (inner, reason) in [
        ("", Reason::MissingElement),
        ("<ObjectLockEnabled>Disabled</ObjectLockEnabled>", Reason::InvalidElementValue),
        ("<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule/>", Reason::MissingElement),
    ] {
        assert_eq!(of(inner), Err(reason), "{inner}");
    }
}
