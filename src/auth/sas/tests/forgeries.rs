//! Signatures that are malformed, nonsense or forged.

use super::*;

#[test]
fn malformed_signatures_say_what_is_wrong() {
    let cases = [
        ("sig=AAAA", "sv is mandatory"),
        ("sv=&sig=AAAA", "sv is mandatory"),
        ("sv=2022-11-02&sig=AAAA", "sr is mandatory"),
        ("sv=2022-11-02&sr=c&sig=", "sig is mandatory"),
        ("sv=2022-11-02&sr=c&sig=***", "sig is not base64"),
        ("sv=2022-11-02&sr=q&sig=AAAA", "sr=q"),
        ("sv=2022-11-02&sr=c&sr=c&sig=AAAA", "sr is given twice"),
        ("sv=2022-11-02&SR=c&sr=b&sig=AAAA", "sr is given twice"),
        ("sv=2022-11-2&sr=c&sig=AAAA", "is not a version"),
        ("sv=tomorrow&sr=c&sig=AAAA", "is not a version"),
        ("sv=2011-08-18&sr=c&sig=AAAA", "has no signatures of this kind"),
        ("sv=2015-02-21&ss=b&srt=o&sig=AAAA", "has no signatures of this kind"),
        ("sv=2017-07-29&sr=c&skoid=x&sig=AAAA", "has no signatures of this kind"),
        ("sv=2022-11-02&sr=bs&sig=AAAA", "needs the parameter snapshot"),
        ("sv=2022-11-02&sr=c&sp=%ff&sig=AAAA", "sp is not UTF-8"),
        ("sv=2022-11-02&sr=c&sp=r&sig=AAAA", "Signature did not match"),
    ];
    for (query, expected) in cases {
        let refused = detail(verify(query, Some("c-1"), None).unwrap_err());
        assert!(refused.contains(expected), "{query}: {refused}");
    }
    for query in ["", "sv=2022-11-02&sr=c", "comp=list&signature=1", "xsig=1"] {
        assert!(verify(query, Some("c-1"), None).unwrap().is_none(), "{query}");
    }
}

#[test]
fn well_signed_nonsense_is_refused_too() {
    let forge = |terms: &Terms, types: &str| mint_account(&keys(&[KEY]), "acct", types, terms);
    let cases = [
        (Terms { permissions: String::new(), ..terms() }, "sco", "sp is mandatory"),
        (Terms { expiry: None, ..terms() }, "sco", "se is mandatory"),
        (Terms { permissions: "rz".to_owned(), ..terms() }, "sco", "no permission"),
        (Terms { expiry: Some("soon".to_owned()), ..terms() }, "sco", "se=soon"),
        (Terms { start: Some("2026-13-01".to_owned()), ..terms() }, "sco", "st=2026-13-01"),
        (Terms { addresses: Some("localhost".to_owned()), ..terms() }, "sco", "sip=localhost"),
        (terms(), "sx", "srt=sx"),
    ];
    for (terms, types, expected) in cases {
        let refused = detail(settled(&forge(&terms, types), "2026-11-21T06:00:00Z").unwrap_err());
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn every_flipped_bit_of_a_signature_is_refused() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let query = mint_service(&keys(&[KEY]), &CONTAINER, &terms());
    let (rest, signature) = query.split_once("&sig=").unwrap();
    let signature = percent_encoding::percent_decode_str(signature).decode_utf8().unwrap();
    let bytes = STANDARD.decode(signature.as_bytes()).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut forged = bytes.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let forged = STANDARD.encode(&forged).replace('+', "%2B");
        assert!(verify(&format!("{rest}&sig={forged}"), Some("c-1"), None).is_err(), "bit {bit}");
    }
    let plain = format!("{rest}&sig={signature}");
    assert!(verify(&plain, Some("c-1"), None).is_ok(), "a plus need not be escaped");
}

/// The text is made before anybody is authenticated: a name that comes a thousand times must not
/// bring its value a thousand times.
#[test]
fn header_or_parameter_that_is_to_be_signed_is_named_once() {
    let mut headers = HeaderMap::new();
    headers.insert("a", "x".repeat(1_000).parse().unwrap());
    let text = |list: &'static str, names: &str| {
        let mut fields = Fields::default();
        for (name, value) in [("sv", "2026-04-06"), ("sr", "b"), ("skoid", "x"), (list, names)] {
            fields.set(name, value);
        }
        let subject = Subject {
            account: "acct",
            container: Some("c-1"),
            blob: Some("b"),
            time: "",
            headers: &headers,
            query: "p=1%2B&q=2&p=3&%72=4",
        };
        string_to_sign(Form::Delegation, &fields, &subject)
    };
    for (list, names) in [("srh", "a,b,A"), ("srq", "p,p"), ("srq", "q,P,p")] {
        let refused = detail(text(list, names).unwrap_err());
        assert!(refused.starts_with(&format!("{list} names ")), "{refused}");
    }
    let long = text("srh", "b,a,").unwrap().unwrap();
    assert!(long.contains("\nb:\na:xxx") && long.len() < 1_200, "{long}");
    let given = text("srq", "r,none,p").unwrap().unwrap();
    assert!(given.contains("\n\nr:4\nnone:\np:1+\n"), "{given}");
}

/// The holder of a signature may add parameters to its URL.
#[test]
fn headers_of_answers_are_overridden_only_by_what_is_signed() {
    let keys = keys(&[KEY]);
    let account = mint_account(&keys, "acct", "sco", &terms());
    let oldest = {
        let mut fields = Fields::default();
        let (from, until) = ("2026-11-21T05:00:00Z", "2026-11-21T09:00:00Z");
        for (name, value) in
            [("sv", "2012-02-12"), ("sr", "c"), ("sp", "r"), ("st", from), ("se", until)]
        {
            fields.set(name, value);
        }
        let subject = Subject {
            account: "acct",
            container: Some("c-1"),
            blob: None,
            time: "",
            headers: &HeaderMap::new(),
            query: "",
        };
        let text = string_to_sign(Form::Service, &fields, &subject).unwrap().unwrap();
        fields.set("sig", &keys.sign(text.as_bytes()));
        fields.query()
    };
    for query in [account, oldest] {
        let query = format!("{query}&rsct=text/html&rscd=inline");
        let grant = settled(&query, "2026-11-21T06:00:00Z").unwrap();
        assert_eq!(grant.overrides, Overrides::default(), "{query}");
    }
}
