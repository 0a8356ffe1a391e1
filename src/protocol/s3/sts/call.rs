//! The calls of the token service.

use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

use crate::protocol::s3::sts::StsError;

/// The version of the API.
const VERSION: &str = "2011-06-15";
/// Parameters of a call at most.
const PARAMETERS_MAX: usize = 64;
/// The life of temporary keys, seconds: least, usual, most.
const DURATION: [u32; 3] = [900, 3600, 43_200];
/// Lengths of the ARN of a role.
const ARN_BYTES: std::ops::RangeInclusive<usize> = 20..=2048;
/// Lengths of the name of a session.
const NAME_BYTES: std::ops::RangeInclusive<usize> = 2..=64;
/// Parameters that every call may have. Parameters of a presigned query are read with the
/// signature.
const COMMON: [&str; 2] = ["Action", "Version"];
/// Parameters of calls for keys.
const OF_KEYS: [&str; 3] = ["RoleArn", "RoleSessionName", "DurationSeconds"];
/// Parameters with policies that restrict the keys, which are not served.
const POLICIES: [&str; 2] = ["Policy", "PolicyArns"];

/// The parameters of a call, of its query and of its form.
#[derive(Clone, Default)]
pub struct Parameters(Vec<(String, Zeroizing<String>)>);

impl std::fmt::Debug for Parameters {
    /// Never shows values: one may be a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A call of the token service.
#[derive(Clone, Debug)]
pub enum Call {
    /// Temporary keys of the user whose key signs the call.
    AssumeRole(RoleCall),
    /// Temporary keys for the principal of a token.
    AssumeRoleWithWebIdentity(RoleCall, Zeroizing<String>),
    /// Returns the identity that signs the call.
    GetCallerIdentity,
}

/// The parameters of a call for temporary keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleCall {
    /// The role, if it is named.
    pub role: Option<RoleArn>,
    /// The name of the session, if it has one.
    pub name: Option<String>,
    /// How long the keys live, seconds.
    pub duration: u32,
}

/// The ARN of a role: `arn:aws:iam::NUMBER:role/NAME`. The name has no meaning: keys permit what
/// their holder's roles permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleArn {
    /// The account number.
    pub account: String,
    /// The name, with its path.
    pub name: String,
}

impl Call {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AssumeRole(_) => "AssumeRole",
            Self::AssumeRoleWithWebIdentity(..) => "AssumeRoleWithWebIdentity",
            Self::GetCallerIdentity => "GetCallerIdentity",
        }
    }
}

impl Parameters {
    /// Reads the parameters of a query and of the form in a body.
    ///
    /// # Errors
    /// `ValidationError` for text that is not UTF-8, and for too many parameters.
    pub fn read(query: Option<&str>, body: &[u8]) -> Result<Self, StsError> {
        let body = str::from_utf8(body).map_err(|_| broken())?;
        let pieces = query.unwrap_or("").split('&').chain(body.trim_ascii().split('&'));
        let mut found = Vec::new();
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            found.push((decoded(name)?, Zeroizing::new(decoded(value)?)));
            if found.len() > PARAMETERS_MAX {
                return Err(StsError::invalid("The call has too many parameters."));
            }
        }
        Ok(Self(found))
    }

    /// A parameter.
    ///
    /// # Errors
    /// `ValidationError` when it occurs twice.
    fn get(&self, name: &str) -> Result<Option<&Zeroizing<String>>, StsError> {
        let mut found = self.0.iter().filter(|(own, _)| own == name).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (first, None) => Ok(first),
            (_, Some(_)) => Err(StsError::invalid(format!("The parameter {name} is given twice."))),
        }
    }

    /// Refuses parameters that change the meaning of a call and are not served.
    fn only(&self, served: &[&str]) -> Result<(), StsError> {
        for (name, _) in &self.0 {
            let first = name.split('.').next().unwrap_or_default();
            if POLICIES.contains(&first) {
                let message = format!(
                    "{first} is not served: temporary keys permit what the roles of their holder permit."
                );
                return Err(StsError { code: "MalformedPolicyDocument", status: 400, message });
            }
            let is_signature = name.starts_with("X-Amz-");
            let known = COMMON.iter().chain(served).any(|known| known == name);
            if !known && !is_signature {
                return Err(StsError::invalid(format!("The parameter {name} is not served.")));
            }
        }
        Ok(())
    }
}

/// Reads a call.
///
/// # Errors
/// `MissingAction`, `InvalidAction` for calls that are not served, those of other services too;
/// `ValidationError`, `MalformedPolicyDocument`.
pub fn parse(parameters: &Parameters) -> Result<Call, StsError> {
    let action = parameters.get("Action")?.map_or("", |action| action.as_str());
    let version = parameters.get("Version")?.map_or("", |version| version.as_str());
    if action.is_empty() {
        let message = "Could not find an action in the request.".to_owned();
        return Err(StsError { code: "MissingAction", status: 400, message });
    }
    let unknown = || StsError {
        code: "InvalidAction",
        status: 400,
        message: format!(
            "Could not find operation {} for version {}",
            short(action),
            short(version)
        ),
    };
    if version != VERSION {
        return Err(unknown());
    }
    match action {
        "AssumeRole" => {
            let served: Vec<&str> = OF_KEYS.into_iter().chain(["ExternalId"]).collect();
            parameters.only(&served)?;
            role_call(parameters).map(Call::AssumeRole)
        }
        "AssumeRoleWithWebIdentity" => {
            let served: Vec<&str> = OF_KEYS.into_iter().chain(["WebIdentityToken"]).collect();
            parameters.only(&served)?;
            let token = parameters.get("WebIdentityToken")?.filter(|token| !token.is_empty());
            let token = token.ok_or_else(|| StsError::invalid("WebIdentityToken is missing."))?;
            Ok(Call::AssumeRoleWithWebIdentity(role_call(parameters)?, token.clone()))
        }
        "GetCallerIdentity" => parameters.only(&[]).map(|()| Call::GetCallerIdentity),
        _ => Err(unknown()),
    }
}

/// Text of a client for an error message, cut to a bounded length.
fn short(text: &str) -> &str {
    let end = text.char_indices().nth(64).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

fn role_call(parameters: &Parameters) -> Result<RoleCall, StsError> {
    let role = parameters.get("RoleArn")?.map(|arn| RoleArn::parse(arn)).transpose()?;
    let name = parameters.get("RoleSessionName")?.map(|name| name.to_string());
    if let Some(name) = &name {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_+=,.@-".contains(&b);
        if !NAME_BYTES.contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(StsError::invalid(
                "RoleSessionName must have 2 to 64 letters, digits and _+=,.@-",
            ));
        }
    }
    let [least, usual, most] = DURATION;
    let duration = match parameters.get("DurationSeconds")? {
        None => usual,
        Some(text) => {
            let seconds = text.parse::<u32>().ok().filter(|n| (least..=most).contains(n));
            let message = format!("DurationSeconds must be a number from {least} to {most}.");
            seconds.ok_or_else(|| StsError::invalid(message))?
        }
    };
    Ok(RoleCall { role, name, duration })
}

impl RoleArn {
    fn parse(text: &str) -> Result<Self, StsError> {
        let wrong =
            || StsError::invalid("RoleArn must be of the form arn:aws:iam::NUMBER:role/NAME");
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", _, "iam", "", account, role] = parts.as_slice() else { return Err(wrong()) };
        let name = role.strip_prefix("role/").filter(|name| !name.is_empty()).ok_or_else(wrong)?;
        let is_number = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_+=,.@-/".contains(&b);
        if !is_number || !ARN_BYTES.contains(&text.len()) || !name.bytes().all(is_plain) {
            return Err(wrong());
        }
        Ok(Self { account: (*account).to_owned(), name: name.to_owned() })
    }
}

fn decoded(raw: &str) -> Result<String, StsError> {
    let plain = raw.replace('+', " ");
    let text = percent_decode_str(&plain).decode_utf8().map_err(|_| broken())?;
    Ok(text.into_owned())
}

fn broken() -> StsError {
    StsError::invalid("The parameters are not percent-encoded UTF-8.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:iam::123456789012:role/path/name";

    fn call(body: &str) -> Result<Call, StsError> {
        parse(&Parameters::read(None, body.as_bytes())?)
    }

    fn code(body: &str) -> &'static str {
        call(body).unwrap_err().code
    }

    #[test]
    fn calls_are_read_from_query_and_form() {
        let query = Some("Action=AssumeRole&Version=2011-06-15");
        let body = format!("RoleArn={ARN}&RoleSessionName=a%40b&DurationSeconds=900");
        let Call::AssumeRole(call) =
            parse(&Parameters::read(query, body.as_bytes()).unwrap()).unwrap()
        else {
            panic!("another call")
        };
        let role = RoleArn { account: "123456789012".to_owned(), name: "path/name".to_owned() };
        let name = Some("a@b".to_owned());
        assert_eq!(call, RoleCall { role: Some(role), name, duration: 900 });
        let empty = "Action=AssumeRole&Version=2011-06-15";
        let Call::AssumeRole(call) = self::call(empty).unwrap() else { panic!("another call") };
        assert_eq!(call, RoleCall { role: None, name: None, duration: 3600 });
    }

    #[test]
    fn wrong_calls_have_their_codes() {
        let of = |rest: &str| code(&format!("Version=2011-06-15&{rest}"));
        assert_eq!(code(""), "MissingAction");
        assert_eq!(of("Action="), "MissingAction");
        for action in ["GetSessionToken", "GetFederationToken", "AssumeRoleWithSAML", "CreateUser"]
        {
            assert_eq!(of(&format!("Action={action}")), "InvalidAction", "{action}");
        }
        assert_eq!(code("Action=AssumeRole&Version=2010-05-08"), "InvalidAction");
        assert_eq!(code("Action=AssumeRole"), "InvalidAction");
        let role = |rest: &str| of(&format!("Action=AssumeRole&{rest}"));
        for wrong in [
            "DurationSeconds=899",
            "DurationSeconds=43201",
            "DurationSeconds=x",
            "DurationSeconds=",
            "DurationSeconds=900&DurationSeconds=900",
            "RoleArn=x",
            "RoleArn=arn:aws:iam::12345678901:role/name",
            "RoleArn=arn:aws:iam::123456789012:user/name",
            "RoleArn=arn:aws:iam::123456789012:role/",
            "RoleArn=arn:aws:sts::123456789012:role/name",
            "RoleSessionName=a",
            "RoleSessionName=a%20b",
            "SerialNumber=1",
            "TokenCode=123456",
            "Tags.member.1.Key=a",
            "WebIdentityToken=x",
            "%FF=1",
        ] {
            assert_eq!(role(wrong), "ValidationError", "{wrong}");
        }
        for policy in ["Policy=%7B%7D", "PolicyArns.member.1.arn=x"] {
            assert_eq!(role(policy), "MalformedPolicyDocument", "{policy}");
        }
        assert_eq!(of("Action=AssumeRoleWithWebIdentity"), "ValidationError");
        assert_eq!(of("Action=AssumeRoleWithWebIdentity&WebIdentityToken="), "ValidationError");
        assert_eq!(of("Action=GetCallerIdentity&RoleArn=x"), "ValidationError");
        let many: String = (0..PARAMETERS_MAX).map(|n| format!("a{n}=1&")).collect();
        assert_eq!(of(&many), "ValidationError");
        assert!(Parameters::read(None, &[0xFF]).is_err());
    }

    #[test]
    fn no_value_is_shown() {
        let call =
            call("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&WebIdentityToken=s3cret");
        let parameters = Parameters::read(None, b"WebIdentityToken=s3cret").unwrap();
        assert!(!format!("{parameters:?}").contains("s3cret"));
        assert!(matches!(call, Ok(Call::AssumeRoleWithWebIdentity(..))));
    }
}
