//! Signatures against what the real SDK signed, the strings-to-sign of the REST documentation, and
//! forgeries.

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use serde_json::Value;

use crate::auth::AccountKeys;
use crate::auth::DATE_WINDOW;
use crate::auth::Error;
use crate::auth::KeyError;
use crate::auth::SignedRequest;
use crate::auth::authenticate;
use crate::auth::canonical::Reading;
use crate::auth::canonical::Scheme;
use crate::auth::canonical::string_to_sign;
use crate::auth::sign;
use crate::types::Timestamp;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "ZGlmZmVyZW50IGtleSwgbG9uZyBlbm91Z2ggdG8gYmUgb25l";
const FIRST: Reading = Reading { culture_order: false, folded: false, primary_path: false };
const DATE: &str = "Sat, 21 Nov 2026 05:00:00 GMT";

fn time(text: &str) -> Timestamp {
    let time = httpdate::parse_http_date(text).unwrap();
    Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).unwrap())
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    map
}

/// A request under test; signed with [`KEY`] by `sign`.
struct Case {
    method: Method,
    path: &'static str,
    query: Option<&'static str>,
    headers: HeaderMap,
    secondary: bool,
}

impl Case {
    fn get(path: &'static str) -> Self {
        let headers = headers(&[("x-ms-date", DATE), ("x-ms-version", "2026-10-06")]);
        Self { method: Method::GET, path, query: None, headers, secondary: false }
    }

    fn request(&self) -> SignedRequest<'_> {
        SignedRequest {
            method: &self.method,
            path: self.path,
            query: self.query,
            headers: &self.headers,
            account: "acct",
            secondary: self.secondary,
        }
    }

    fn sign(mut self, scheme: Scheme, reading: Reading) -> Self {
        let text = string_to_sign(&self.request(), scheme, reading);
        let signature = AccountKeys::new(&[KEY]).unwrap().sign(&text);
        let name = if scheme == Scheme::Full { "SharedKey" } else { "SharedKeyLite" };
        self.authorization(&format!("{name} acct:{signature}"));
        self
    }

    fn authorization(&mut self, value: &str) {
        self.headers.insert("authorization", HeaderValue::from_str(value).unwrap());
    }

    fn check(&self) -> Result<(), Error> {
        authenticate(&self.request(), &AccountKeys::new(&[OTHER_KEY, KEY]).unwrap(), time(DATE))
    }
}

#[test]
fn signatures_of_the_python_sdk_are_accepted() {
    let text = include_str!("../../api-spec/vectors/shared_key.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    let account = vectors["account"].as_str().unwrap();
    let keys = AccountKeys::new(&[vectors["key"].as_str().unwrap()]).unwrap();
    let requests = vectors["requests"].as_array().unwrap();
    assert!(requests.len() > 90, "{}", requests.len());
    for vector in requests {
        let pairs: Vec<(&str, &str)> = vector["headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let headers = headers(&pairs);
        let now = time(headers["x-ms-date"].to_str().unwrap());
        let method = Method::from_bytes(vector["method"].as_str().unwrap().as_bytes()).unwrap();
        let query = vector["query"].as_str().filter(|q| !q.is_empty());
        let request = SignedRequest {
            method: &method,
            path: vector["path"].as_str().unwrap(),
            query,
            headers: &headers,
            account,
            secondary: false,
        };
        assert_eq!(authenticate(&request, &keys, now), Ok(()), "{}", vector["name"]);
        let longer = format!("{}x", request.path);
        let moved = SignedRequest { path: &longer, ..request };
        let forged = authenticate(&moved, &keys, now);
        assert!(matches!(forged, Err(Error::WrongSignature { .. })), "{}", vector["name"]);
    }
}

#[test]
fn full_string_to_sign_is_the_documented_one() {
    let headers = headers(&[
        ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
        ("x-ms-version", "2015-02-21"),
        ("content-length", "0"),
    ]);
    let request = SignedRequest {
        method: &Method::GET,
        path: "/mycontainer",
        query: Some("comp=metadata&restype=container&timeout=20"),
        headers: &headers,
        account: "myaccount",
        secondary: false,
    };
    let text = String::from_utf8(string_to_sign(&request, Scheme::Full, FIRST)).unwrap();
    assert_eq!(
        text,
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
         /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    );
}

#[test]
fn lite_string_to_sign_is_the_documented_one() {
    let headers = headers(&[
        ("content-type", "text/plain; charset=UTF-8"),
        ("x-ms-meta-m2", "v2"),
        ("x-ms-date", "Sun, 20 Sep 2009 20:36:40 GMT"),
        ("x-ms-meta-m1", "v1"),
    ]);
    let request = SignedRequest {
        method: &Method::PUT,
        path: "/mycontainer/hello.txt",
        query: None,
        headers: &headers,
        account: "testaccount1",
        secondary: false,
    };
    let text = String::from_utf8(string_to_sign(&request, Scheme::Lite, FIRST)).unwrap();
    assert_eq!(
        text,
        "PUT\n\ntext/plain; charset=UTF-8\n\nx-ms-date:Sun, 20 Sep 2009 20:36:40 GMT\nx-ms-meta-m1:v1\n\
         x-ms-meta-m2:v2\n/testaccount1/mycontainer/hello.txt"
    );
}

#[test]
fn zero_length_is_signed_as_zero_by_old_versions_only() {
    for (version, expected) in [("2014-02-14", "0"), ("2015-02-21", ""), ("2026-10-06", "")] {
        let mut case = Case::get("/c/b");
        case.headers = headers(&[("x-ms-version", version), ("content-length", "0")]);
        let text = String::from_utf8(string_to_sign(&case.request(), Scheme::Full, FIRST)).unwrap();
        assert_eq!(text.split('\n').nth(3), Some(expected), "{version}");
    }
}

#[test]
fn query_is_decoded_lowered_sorted_and_joined() {
    let mut case = Case::get("/c");
    case.query = Some("Restype=container&include=b&prefix=a%2Fb+c&include=a&flag&comp=list");
    let text = String::from_utf8(string_to_sign(&case.request(), Scheme::Full, FIRST)).unwrap();
    let resource = text.split_once("/acct/c").unwrap().1;
    assert_eq!(resource, "\ncomp:list\nflag:\ninclude:a,b\nprefix:a/b c\nrestype:container");
    let text = String::from_utf8(string_to_sign(&case.request(), Scheme::Lite, FIRST)).unwrap();
    assert!(text.ends_with("/acct/c?comp=list"), "{text}");
}

#[test]
fn every_reading_of_either_key_is_accepted() {
    for scheme in [Scheme::Full, Scheme::Lite] {
        for bits in 0..8u8 {
            let reading = Reading {
                culture_order: bits & 1 != 0,
                folded: bits & 2 != 0,
                primary_path: bits & 4 != 0,
            };
            let mut case = Case::get("/acct-secondary/c/b%20c");
            case.secondary = true;
            for (name, value) in [("x-ms-meta-ab", "a  b"), ("x-ms-meta-a_c", "2")] {
                case.headers.insert(name, HeaderValue::from_static(value));
            }
            assert_eq!(case.sign(scheme, reading).check(), Ok(()), "{scheme:?} {reading:?}");
        }
    }
}

#[test]
fn culture_order_puts_underscore_before_digits_before_letters_and_skips_hyphens() {
    let mut case = Case::get("/c");
    case.headers = headers(&[
        ("x-ms-meta-a1", ""),
        ("x-ms-meta-a_b", ""),
        ("x-ms-meta-ab", ""),
        ("x-ms-meta-a-b", ""),
        ("x-ms-metab", ""),
    ]);
    let culture = Reading { culture_order: true, ..FIRST };
    let text = String::from_utf8(string_to_sign(&case.request(), Scheme::Lite, culture)).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|l| l.strip_suffix(':')).collect();
    let expected = ["x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-ab", "x-ms-meta-a-b", "x-ms-metab"];
    assert_eq!(names, expected);
}

#[test]
fn repeated_service_headers_are_joined() {
    let mut case = Case::get("/c");
    case.headers.append("x-ms-meta-k", HeaderValue::from_static("1"));
    case.headers.append("x-ms-meta-k", HeaderValue::from_static("2"));
    let text = String::from_utf8(string_to_sign(&case.request(), Scheme::Lite, FIRST)).unwrap();
    assert!(text.contains("\nx-ms-meta-k:1,2\n"), "{text}");
}

#[test]
fn anything_changed_after_signing_is_refused() {
    type Change = fn(&mut Case);
    let changes: &[(&str, Change)] = &[
        ("method", |c| c.method = Method::DELETE),
        ("path", |c| c.path = "/c/B"),
        ("path escape", |c| c.path = "/c/%62"),
        ("query", |c| c.query = Some("comp=metadata")),
        ("service header", |c| {
            c.headers.insert("x-ms-meta-k", HeaderValue::from_static("v"));
        }),
        ("version", |c| {
            c.headers.insert("x-ms-version", HeaderValue::from_static("2020-10-02"));
        }),
        ("range", |c| {
            c.headers.insert("range", HeaderValue::from_static("bytes=0-1"));
        }),
        ("condition", |c| {
            c.headers.insert("if-match", HeaderValue::from_static("*"));
        }),
        ("body md5", |c| {
            c.headers.insert("content-md5", HeaderValue::from_static("x"));
        }),
        ("length", |c| {
            c.headers.insert("content-length", HeaderValue::from_static("5"));
        }),
    ];
    for (what, change) in changes {
        let mut case = Case::get("/c/b").sign(Scheme::Full, FIRST);
        assert_eq!(case.check(), Ok(()));
        change(&mut case);
        let Err(Error::WrongSignature { detail }) = case.check() else { panic!("{what}") };
        assert!(detail.contains(case.method.as_str()), "{what}: {detail}");
    }
}

#[test]
fn every_flipped_bit_of_a_signature_is_refused() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let case = Case::get("/c/b").sign(Scheme::Full, FIRST);
    let value = case.headers["authorization"].to_str().unwrap().to_owned();
    let (prefix, signature) = value.split_once(':').unwrap();
    let signature = STANDARD.decode(signature).unwrap();
    for bit in 0..signature.len() * 8 {
        let mut forged = signature.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let mut case = Case::get("/c/b");
        case.authorization(&format!("{prefix}:{}", STANDARD.encode(&forged)));
        assert!(matches!(case.check(), Err(Error::WrongSignature { .. })), "bit {bit}");
    }
    for len in 0..signature.len() {
        let mut case = Case::get("/c/b");
        case.authorization(&format!("{prefix}:{}", STANDARD.encode(&signature[..len])));
        assert!(matches!(case.check(), Err(Error::WrongSignature { .. })), "{len} bytes");
    }
}

#[test]
fn authorization_that_cannot_be_read_is_malformed_or_unknown() {
    let mut case = Case::get("/c/b");
    assert_eq!(case.check(), Err(Error::Missing));
    for value in ["SharedKey", "SharedKey acct", "SharedKey acct:***", "SharedKeyLite :a:b"] {
        case.authorization(value);
        assert!(matches!(case.check(), Err(Error::Malformed { .. })), "{value}");
    }
    for value in ["Bearer abc", "sharedkey acct:AAAA", "Basic x", "AWS4-HMAC-SHA256 x", "-"] {
        case.authorization(value);
        assert_eq!(case.check(), Err(Error::UnknownScheme), "{value}");
    }
    let mut twice = Case::get("/c/b").sign(Scheme::Full, FIRST);
    let value = twice.headers["authorization"].clone();
    twice.headers.append("authorization", value);
    assert!(matches!(twice.check(), Err(Error::Malformed { .. })));
    case.headers.insert("authorization", HeaderValue::from_bytes(b"SharedKey \xff:AAAA").unwrap());
    assert!(matches!(case.check(), Err(Error::Malformed { .. })));
}

#[test]
fn another_account_in_authorization_is_refused() {
    let mut case = Case::get("/c/b").sign(Scheme::Full, FIRST);
    let value = case.headers["authorization"].to_str().unwrap().replace("acct", "acct2");
    case.authorization(&value);
    assert!(matches!(case.check(), Err(Error::WrongSignature { .. })));
}

#[test]
fn what_a_client_signs_is_accepted() {
    let mut case = Case::get("/acct/c/a%20b");
    case.query = Some("comp=block&blockid=AA%3D%3D");
    let value = sign(&case.request(), &AccountKeys::new(&[KEY]).unwrap());
    case.authorization(&value);
    assert_eq!(case.check(), Ok(()));
    case.path = "/acct/c/other";
    assert!(matches!(case.check(), Err(Error::WrongSignature { .. })));
}

#[test]
fn date_window_is_the_same_either_way_and_inclusive() {
    let keys = AccountKeys::new(&[KEY]).unwrap();
    let case = Case::get("/c/b").sign(Scheme::Full, FIRST);
    let at = |seconds: i64| {
        let base = time(DATE).ticks();
        let ticks = base.checked_add_signed(seconds * 10_000_000).unwrap();
        authenticate(&case.request(), &keys, Timestamp::from_ticks(ticks))
    };
    let window = i64::try_from(DATE_WINDOW.as_secs()).unwrap();
    for seconds in [0, 1, -1, window, -window] {
        assert_eq!(at(seconds), Ok(()), "{seconds}");
    }
    for (seconds, side) in [(window + 1, "behind"), (-window - 1, "ahead of")] {
        let Err(Error::ClockSkew { detail }) = at(seconds) else { panic!("{seconds}") };
        assert!(detail.contains(side) && detail.contains("901"), "{detail}");
    }
}

#[test]
fn service_date_wins_over_date_and_one_is_required() {
    let mut case = Case::get("/c/b");
    case.headers.remove("x-ms-date");
    case.headers.insert("date", HeaderValue::from_static(DATE));
    assert_eq!(case.sign(Scheme::Full, FIRST).check(), Ok(()));

    let mut case = Case::get("/c/b");
    case.headers.insert("date", HeaderValue::from_static("Mon, 01 Jan 1990 00:00:00 GMT"));
    assert_eq!(case.sign(Scheme::Lite, FIRST).check(), Ok(()));

    for value in [None, Some("yesterday"), Some("2026-11-21T05:00:00Z"), Some("\u{e9}")] {
        let mut case = Case::get("/c/b");
        case.headers.remove("x-ms-date");
        if let Some(value) = value {
            case.headers.insert("x-ms-date", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let refused = case.sign(Scheme::Full, FIRST).check();
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{value:?}");
    }
}

#[test]
fn a_header_flood_is_not_echoed_whole() {
    let mut case = Case::get("/c/b");
    case.authorization("SharedKey acct:AAAA");
    case.headers.insert("x-ms-meta-k", HeaderValue::from_str(&"v".repeat(60_000)).unwrap());
    let Err(Error::WrongSignature { detail }) = case.check() else { panic!("let in") };
    assert!(detail.len() < 9_000, "{}", detail.len());
}

#[test]
fn keys_are_one_or_two_of_base64_and_never_shown() {
    assert_eq!(AccountKeys::new::<&str>(&[]).err(), Some(KeyError::Count));
    assert_eq!(AccountKeys::new(&[KEY, KEY, KEY]).err(), Some(KeyError::Count));
    assert_eq!(AccountKeys::new(&["not base64!"]).err(), Some(KeyError::NotBase64));
    assert_eq!(AccountKeys::new(&["c2hvcnQ="]).err(), Some(KeyError::TooShort));
    assert_eq!(format!("{:?}", AccountKeys::new(&[KEY]).unwrap()), "AccountKeys(1)");
}
