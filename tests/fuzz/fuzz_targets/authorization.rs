//! Any head: canonicalised in every reading, and never authenticated, since the key is unknown
//! here.
#![no_main]

use blockyard::auth::AccountKeys;
use blockyard::auth::SignedRequest;
use blockyard::auth::authenticate;
use blockyard::types::Timestamp;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use libfuzzer_sys::fuzz_target;

/// 2026-11-21T05:00:00Z, the date the nearly good requests carry.
const NOW: Timestamp = Timestamp::from_ticks(639_308_340_000_000_000);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let (path, query) = (lines.next().unwrap_or(""), lines.next());
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-date", HeaderValue::from_static("Sat, 21 Nov 2026 05:00:00 GMT"));
    headers.insert("authorization", HeaderValue::from_static("SharedKey acct:AAAA"));
    for line in lines.take(100) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            if line.len() % 2 == 0 { headers.insert(name, value) } else { None };
            headers.append("x-ms-meta-more", HeaderValue::from_static("x"));
        }
    }
    let keys = AccountKeys::new(&["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]);
    let keys = keys.expect("a good key");
    for secondary in [false, true] {
        let method = &Method::PUT;
        let account = "acct";
        let request = SignedRequest { method, path, query, headers: &headers, account, secondary };
        assert!(authenticate(&request, &keys, NOW).is_err());
    }
});
