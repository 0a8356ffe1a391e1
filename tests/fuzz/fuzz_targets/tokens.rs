//! Any session token, and any call of the token service: refused, or read within the limits. No
//! token opens, since the secret is unknown here.
#![no_main]

use blockyard::auth::DelegationSecret;
use blockyard::auth::SessionToken;
use blockyard::protocol::s3::sts;
use blockyard::types::Timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = str::from_utf8(data)
        && let Ok(token) = SessionToken::parse(text)
    {
        assert!(token.open(&DelegationSecret::new([9; 32]), Timestamp::ZERO).is_err());
    }
    let call = sts::Parameters::read(None, data).and_then(|parameters| sts::parse(&parameters));
    if let Err(error) = call {
        assert_eq!(error.status, 400, "{error:?}");
    }
});
