//! Policies and the forms that they permit.

use super::*;
use crate::protocol::s3::form::boundary::Boundary;
use crate::protocol::s3::form::fields::Field;

const END: &str = "2999-12-30T12:00:00.000Z";

fn form(pairs: &[(&str, &str)]) -> PostForm {
    let all = [("key", "user/eric/a"), ("policy", "p"), ("x-amz-signature", "s")];
    let pairs = all.iter().chain(pairs);
    let field = |(name, value): &(&str, &str)| Field::new((*name).into(), (*value).into());
    PostForm::new(pairs.map(field).collect(), None, Boundary::new("B").unwrap()).unwrap()
}

/// The message of the refusal, or the range that is allowed.
fn checked(policy: &str, pairs: &[(&str, &str)]) -> Result<LengthRange, String> {
    let now = Timestamp::from_iso("2026-11-26T12:00:00Z").unwrap();
    check(&STANDARD.encode(policy), &form(pairs), "b", now).map_err(|refusal| {
        let message = refusal.message.unwrap();
        let begin = match refusal.reason == Reason::InvalidPolicy {
            true => "Invalid Policy: ",
            false => "Invalid according to Policy: ",
        };
        message.strip_prefix(begin).unwrap().to_owned()
    })
}

fn with(conditions: &str, pairs: &[(&str, &str)]) -> Result<LengthRange, String> {
    let all = format!(
        "{{\"expiration\": \"{END}\", \"conditions\": [{{\"bucket\": \"b\"}}, \
         [\"starts-with\", \"$key\", \"user/\"]{conditions}]}}"
    );
    checked(&all, pairs)
}

#[test]
fn conditions_hold() {
    for (conditions, pairs) in [
        ("", &[][..]),
        (", [\"eq\", \"$KEY\", \"user/eric/a\"]", &[]),
        (", {\"acl\": \"private\"}", &[("ACL", "private")]),
        (", [\"StArTs-WiTh\", \"$x-amz-meta-tag\", \"\"]", &[("x-amz-meta-tag", "")]),
        (
            ", [\"starts-with\", \"$Content-Type\", \"image/\"]",
            &[("Content-Type", "image/png, image/gif")],
        ),
        (", {\"x\": \"$\\u00e4\"}", &[("x", "$\u{e4}")]),
        (", {\"x\": \"\\$\\v\\\\$\"}", &[("x", "$\u{b}\\$")]),
        ("", &[("X-Ignore-Me", "1"), ("AWSAccessKeyId", "a"), ("Signature", "s")]),
    ] {
        assert_eq!(with(conditions, pairs), Ok(LengthRange::ANY), "{conditions}");
    }
    let range =
        with(", [\"content-length-range\", 1, \"10\"], [\"content-length-range\", 0, 7]", &[]);
    assert_eq!(range, Ok(LengthRange { min: 1, max: 7 }));
}

#[test]
fn conditions_fail() {
    for (conditions, pairs, message) in [
        (
            ", {\"acl\": \"private\"}",
            &[][..],
            "Policy Condition failed: [\"eq\", \"$acl\", \"private\"]",
        ),
        (
            ", [\"starts-with\", \"$acl\", \"\"]",
            &[],
            "Policy Condition failed: [\"starts-with\", \"$acl\", \"\"]",
        ),
        (", {\"Bucket\": \"c\"}", &[], "Policy Condition failed: [\"eq\", \"$Bucket\", \"c\"]"),
        (", [\"eq\", \"key\", \"k\"]", &[], "Policy Condition failed: [\"eq\", \"key\", \"k\"]"),
        (
            ", {\"acl\": \"a\\\"b\"}",
            &[("acl", "private")],
            "Policy Condition failed: [\"eq\", \"$acl\", \"a\\\"b\"]",
        ),
        (
            ", [\"starts-with\", \"$content-type\", \"image/\"]",
            &[("content-type", "image/png,text/html")],
            "Policy Condition failed: [\"starts-with\", \"$content-type\", \"image/\"]",
        ),
        ("", &[("Expires", "0"), ("x-amz-date", "1")], "Extra input fields: Expires, x-amz-date"),
    ] {
        assert_eq!(with(conditions, pairs), Err(message.to_owned()), "{conditions}");
    }
    let end = format!("{{\"expiration\": \"{END}\", \"conditions\": []}}");
    assert_eq!(checked(&end, &[]), Err("Extra input fields: bucket, key".to_owned()));
    for end in ["2026-11-26T12:00:00Z", "2007-12-01T12:00:00.000Z"] {
        let policy = format!("{{\"expiration\": \"{end}\", \"conditions\": []}}");
        assert_eq!(checked(&policy, &[]), Err("Policy expired.".to_owned()));
    }
}

#[test]
fn policies_that_cannot_be_read_are_refused() {
    let of = |members: &str| format!("{{{members}}}");
    let end = format!("\"expiration\": \"{END}\"");
    let conditions = |inner: &str| of(&format!("{end}, \"conditions\": [{inner}]"));
    let one =
        "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.";
    for (policy, message) in [
        (String::new(), "Invalid JSON."),
        ("[]".to_owned(), "Invalid JSON."),
        (of("\"conditions\": []"), "Policy missing expiration."),
        (of(&end), "Policy missing conditions."),
        (of("\"Expiration\": 1"), "Unexpected: 'expiration'"),
        (of("\"expiration\": 1, \"conditions\": []"), "Invalid JSON."),
        (
            of(&format!("{end}, \"conditions\": {{}}")),
            "Invalid 'conditions' value: must be a List.",
        ),
        (conditions("{}"), one),
        (conditions("{\"a\": \"b\", \"c\": \"d\"}"), one),
        (conditions("{\"a\": 1}"), "Invalid Simple-Condition: value must be a string."),
        (conditions("\"a\""), "Invalid Condition: must be a List or Object."),
        (conditions("[]"), "Invalid Condition: missing operation identifier."),
        (conditions("[\"ends\", \"$a\", \"b\"]"), "Invalid Condition: unknown operation 'ends'."),
        (conditions("[\"eq\", \"$a\"]"), "Invalid eq: wrong number of arguments."),
        (conditions("[\"eq\", \"$a\", 1]"), "Invalid JSON."),
    ] {
        assert_eq!(checked(&policy, &[]), Err(message.to_owned()), "{policy}");
    }
    for range in ["0", "-1, 0", "0, \"x\"", "0, 1.5", "0, null"] {
        assert!(
            checked(&conditions(&format!("[\"content-length-range\", {range}]")), &[]).is_err()
        );
    }
    for end in ["tomorrow", "2999-01-01", "2999-01-01T00:00:00+00:00", "2999-02-30T00:00:00Z"] {
        let policy = of(&format!("\"expiration\": \"{end}\", \"conditions\": []"));
        let message = format!("Invalid 'expiration' value: '{end}'");
        assert_eq!(checked(&policy, &[]), Err(message));
    }
    let now = Timestamp::ZERO;
    assert_eq!(check("{}", &form(&[]), "b", now).unwrap_err().reason, Reason::InvalidPolicy);
}
