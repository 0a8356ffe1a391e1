//! Bearer tokens of accounts for development, whose signature is not verified: Azurite's `--oauth
//! basic`.

use crate::auth::Error;
use crate::auth::TrustedIssuer;
use crate::auth::bearer::token::Principal;
use crate::auth::bearer::token::check_window;
use crate::auth::bearer::token::claims_of;
use crate::auth::bearer::token::refused;
use crate::auth::bearer::token::text;
use crate::auth::bearer::token::values;
use crate::types::Role;
use crate::types::Timestamp;

/// The audience of tokens for Azure Storage, and the id of its application.
const AUDIENCES: [&str; 2] = ["https://storage.azure.com", "e406a681-f3d4-42a8-90b6-c2b029497af1"];

/// The issuer of all principals of unsigned tokens, whatever issuer they name: with the name of a
/// trusted one, their user delegation keys would be that issuer's. No issuer has a space in its
/// name.
const ISSUER: &str = "unsigned tokens";

/// The issuer of unsigned tokens, which are taken in these accounts.
#[must_use]
pub fn unsigned_issuer(accounts: Vec<String>) -> TrustedIssuer {
    TrustedIssuer { name: ISSUER.to_owned(), accounts }
}

/// Reads a token for an account: its time and its audience must be right, its signature may be
/// anything. Its principal is an owner there.
///
/// # Errors
/// [`Error::Token`] says what is wrong. [`Error::Malformed`]: it is no JSON Web Token.
pub fn read_unsigned(token: &str, account: &str, now: Timestamp) -> Result<Principal, Error> {
    let claims = claims_of(token)?;
    let issuer = text(&claims, "iss").ok_or_else(|| refused("the token names no issuer"))?;
    check_window(&claims, now)?;
    if !values(claims.get("aud")).into_iter().any(|audience| is_ours(audience, account)) {
        return Err(refused("the token is for another audience"));
    }
    let object = text(&claims, "oid").or_else(|| text(&claims, "sub")).unwrap_or(issuer);
    Ok(Principal {
        issuer: unsigned_issuer(vec![account.to_owned()]),
        object: object.to_owned(),
        tenant: text(&claims, "tid").unwrap_or(issuer).to_owned(),
        claimed: Some(Role::Owner),
        groups: Vec::new(),
    })
}

/// Whether an audience stands for Azure Storage or for the Blob endpoint of the account.
fn is_ours(audience: &str, account: &str) -> bool {
    let bare = audience.trim_end_matches('/');
    AUDIENCES.contains(&bare) || bare == format!("https://{account}.blob.core.windows.net")
}

/// The claims of a token whose times are these, for tests.
#[cfg(test)]
pub(super) fn unsigned(claims: &serde_json::Value) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", part(&serde_json::json!({"alg": "none"})), part(claims))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;
    use serde_json::json;

    use super::*;

    #[test]
    fn time_and_audience_decide() {
        let now = Timestamp::from_unix(Duration::from_secs(1_000_000));
        let read = |change: &dyn Fn(&mut Value)| {
            let mut claims = json!({
                "iss": "https://sts.windows.net/t/", "aud": "https://storage.azure.com/",
                "exp": 1_000_100, "nbf": 999_000, "oid": "o"
            });
            change(&mut claims);
            read_unsigned(&unsigned(&claims), "acct", now)
        };
        let principal = read(&|_| ()).unwrap();
        assert_eq!((principal.object.as_str(), principal.claimed), ("o", Some(Role::Owner)));
        assert!(principal.issuer.rules("acct") && !principal.issuer.rules("other"));
        assert_eq!(principal.issuer.name, ISSUER, "not the one that the token names");
        for audience in [AUDIENCES[1], "https://acct.blob.core.windows.net", AUDIENCES[0]] {
            assert!(read(&|claims| claims["aud"] = json!(audience)).is_ok(), "{audience}");
        }
        for audience in ["https://other.blob.core.windows.net", "https://graph.microsoft.com", ""] {
            assert!(read(&|claims| claims["aud"] = json!(audience)).is_err(), "{audience}");
        }
        assert!(read(&|claims| claims["exp"] = json!(900_000)).is_err(), "expired");
        assert!(read(&|claims| claims["nbf"] = json!(1_900_000)).is_err(), "not yet valid");
        assert!(read(&|claims| claims["exp"] = json!(null)).is_err(), "no end");
        assert!(read(&|claims| claims["iss"] = json!(null)).is_err(), "no issuer");
        for text in ["", "a", "a.b", "a.b.c", "a.b.c.d"] {
            assert!(read_unsigned(text, "acct", now).is_err(), "{text}");
        }
    }
}
