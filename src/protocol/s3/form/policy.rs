//! The policy of a form: its expiry, and the conditions on the fields.
//!
//! Source: S3, "POST Policy". Texts of refusals are those of S3.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;
use serde_json::Value;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::form::fields::PostForm;
use crate::protocol::s3::form::file::LengthRange;
use crate::types::Timestamp;

/// Fields that need no condition.
const EXEMPT: [&str; 4] = ["awsaccesskeyid", "policy", "signature", "x-amz-signature"];
/// The prefix of further such fields.
const IGNORED: &str = "x-ignore-";
const BUCKET: &str = "bucket";
const LENGTH: &str = "content-length-range";
const CONTENT_TYPE: &str = "content-type";

/// A policy that was read.
struct Policy {
    ends: Timestamp,
    conditions: Vec<Condition>,
}

/// The condition on a field.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    Field { kind: Match, name: String, value: String },
    Length(LengthRange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Equal,
    Begin,
}

/// Checks the policy of a form whose signature was verified: `text` is its base64, `bucket` that of
/// the URL. Returns the length that it allows the file.
///
/// # Errors
/// `InvalidPolicy` when it cannot be read; `AuthorizationFailure` when it has expired, a condition
/// does not hold, or no condition names a field.
pub fn check(
    text: &str,
    form: &PostForm,
    bucket: &str,
    now: Timestamp,
) -> Result<LengthRange, Refusal> {
    let policy = Policy::read(text)?;
    if now >= policy.ends {
        return Err(violated("Policy expired."));
    }
    let mut range = LengthRange::ANY;
    for condition in &policy.conditions {
        match condition {
            Condition::Length(other) => range = range.and(*other),
            Condition::Field { kind, name, value } => {
                let of_field = name.strip_prefix('$').map(str::to_ascii_lowercase);
                let found = of_field.as_deref().and_then(|name| match name {
                    BUCKET => Some(bucket),
                    _ => form.get(name),
                });
                let is_type = of_field.as_deref() == Some(CONTENT_TYPE);
                if !found.is_some_and(|found| kind.holds(found, value, is_type)) {
                    return Err(failed(*kind, name, value));
                }
            }
        }
    }
    policy.check_names(form)?;
    Ok(range)
}

impl Match {
    /// Each element of a list of content types must have the prefix.
    fn holds(self, found: &str, value: &str, is_type: bool) -> bool {
        match self {
            Self::Equal => found == value,
            Self::Begin if is_type && !value.contains(',') => {
                found.split(',').all(|one| one.trim_start().starts_with(value))
            }
            Self::Begin => found.starts_with(value),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::Begin => "starts-with",
        }
    }
}

impl Policy {
    fn read(text: &str) -> Result<Self, Refusal> {
        let text: String = text.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| invalid("Invalid JSON."))?;
        let text = String::from_utf8(bytes).map_err(|_| invalid("Invalid JSON."))?;
        let value = serde_json::from_str(&plain(&text)).map_err(|_| invalid("Invalid JSON."))?;
        let Value::Object(members) = value else { return Err(invalid("Invalid JSON.")) };
        let unknown = members.keys().find(|name| !["expiration", "conditions"].contains(&&***name));
        if let Some(name) = unknown {
            return Err(invalid(&format!("Unexpected: '{}'", name.to_ascii_lowercase())));
        }
        let ends = match members.get("expiration") {
            None => return Err(invalid("Policy missing expiration.")),
            Some(Value::String(text)) => expiration(text)?,
            Some(_) => return Err(invalid("Invalid JSON.")),
        };
        let conditions = match members.get("conditions") {
            None => return Err(invalid("Policy missing conditions.")),
            Some(Value::Array(conditions)) => conditions,
            Some(_) => return Err(invalid("Invalid 'conditions' value: must be a List.")),
        };
        let conditions = conditions.iter().map(condition).collect::<Result<_, Refusal>>()?;
        Ok(Self { ends, conditions })
    }

    /// Each field needs a condition, and so does the bucket.
    fn check_names(&self, form: &PostForm) -> Result<(), Refusal> {
        let is_named = |wanted: &str| {
            self.conditions.iter().any(|condition| match condition {
                Condition::Field { name, .. } => {
                    name.strip_prefix('$').is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                }
                Condition::Length(_) => false,
            })
        };
        let is_free = |name: &str| {
            let name = name.to_ascii_lowercase();
            EXEMPT.contains(&name.as_str()) || name.starts_with(IGNORED) || is_named(&name)
        };
        let names = form.fields().iter().map(|field| field.name.as_str());
        let extra: Vec<&str> = [BUCKET].into_iter().chain(names).filter(|n| !is_free(n)).collect();
        match extra.is_empty() {
            true => Ok(()),
            false => Err(violated(&format!("Extra input fields: {}", extra.join(", ")))),
        }
    }
}

/// Replaces the escapes of policies that JSON does not have: `\$` and `\v`.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, (char == '\\').then(|| chars.next()).flatten()) {
            ('\\', Some('$')) => plain.push('$'),
            ('\\', Some('v')) => plain.push_str("\\u000b"),
            (char, escaped) => plain.extend([Some(char), escaped].into_iter().flatten()),
        }
    }
    plain
}

/// The end of a policy: a time in UTC.
fn expiration(text: &str) -> Result<Timestamp, Refusal> {
    let is_utc = text.contains('T') && text.ends_with('Z');
    let time = Timestamp::from_iso(text).filter(|_| is_utc);
    time.ok_or_else(|| invalid(&format!("Invalid 'expiration' value: '{text}'")))
}

fn condition(value: &Value) -> Result<Condition, Refusal> {
    match value {
        Value::Object(members) => simple(members),
        Value::Array(items) => listed(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(invalid("Invalid Condition: must be a List or Object."))
        }
    }
}

/// `{ NAME: VALUE }`.
fn simple(members: &Map<String, Value>) -> Result<Condition, Refusal> {
    let mut members = members.iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(invalid(
            "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.",
        ));
    };
    let Value::String(value) = value else {
        return Err(invalid("Invalid Simple-Condition: value must be a string."));
    };
    let (name, value) = (format!("${name}"), value.clone());
    Ok(Condition::Field { kind: Match::Equal, name, value })
}

/// `[ "eq", "$NAME", VALUE ]` and its like.
fn listed(items: &[Value]) -> Result<Condition, Refusal> {
    let Some(Value::String(operation)) = items.first() else {
        return Err(invalid("Invalid Condition: missing operation identifier."));
    };
    let operation = operation.to_ascii_lowercase();
    let kind = match operation.as_str() {
        "eq" => Some(Match::Equal),
        "starts-with" => Some(Match::Begin),
        LENGTH => None,
        other => {
            return Err(invalid(&format!("Invalid Condition: unknown operation '{other}'.")));
        }
    };
    let [_, first, second] = items else {
        return Err(invalid(&format!("Invalid {operation}: wrong number of arguments.")));
    };
    match (kind, first, second) {
        (Some(kind), Value::String(name), Value::String(value)) => {
            Ok(Condition::Field { kind, name: name.clone(), value: value.clone() })
        }
        (Some(_), ..) => Err(invalid("Invalid JSON.")),
        (None, min, max) => {
            let (min, max) = (bytes(min)?, bytes(max)?);
            Ok(Condition::Length(LengthRange { min, max }))
        }
    }
}

/// A number of bytes, as a number or as a text.
fn bytes(value: &Value) -> Result<u64, Refusal> {
    let of_text = value.as_str().and_then(|text| text.parse().ok());
    let number = value.as_u64().or(of_text);
    number.ok_or_else(|| invalid("Invalid content-length-range: it has no number of bytes."))
}

fn invalid(detail: &str) -> Refusal {
    Refusal::new(Reason::InvalidPolicy).message(format!("Invalid Policy: {detail}"))
}

fn violated(detail: &str) -> Refusal {
    Refusal::new(Reason::AuthorizationFailure)
        .message(format!("Invalid according to Policy: {detail}"))
}

fn failed(kind: Match, name: &str, value: &str) -> Refusal {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let (name, value) = (quoted(name), quoted(value));
    violated(&format!("Policy Condition failed: [\"{}\", {name}, {value}]", kind.name()))
}

#[cfg(test)]
mod tests;
