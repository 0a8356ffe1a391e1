//! Makes shared access signatures, offline.

use crate::auth::AccountKeys;
use crate::auth::DelegationKey;
use crate::auth::Overrides;
use crate::auth::sas::fields::Fields;
use crate::auth::sas::layout::Form;
use crate::auth::sas::layout::Subject;
use crate::auth::sas::layout::string_to_sign;
use http::HeaderMap;

/// The version of new signatures. All recent clients and servers know it.
pub const MINT_VERSION: &str = "2022-11-02";

/// The terms of a signature of any form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Permissions in the service's order; empty when a policy has them.
    pub permissions: String,
    /// The start, ISO 8601; none for immediately.
    pub start: Option<String>,
    /// The expiry, ISO 8601; none when a policy has it.
    pub expiry: Option<String>,
    /// An address or a range.
    pub addresses: Option<String>,
    /// Whether plain HTTP is refused.
    pub https_only: bool,
    /// A stored access policy; not for account signatures.
    pub policy: Option<String>,
    /// Response headers; not for account signatures.
    pub overrides: Overrides,
}

/// The resource of a service signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The account.
    pub account: &'a str,
    /// The container.
    pub container: &'a str,
    /// The blob, decoded; `None` for the whole container.
    pub blob: Option<&'a str>,
    /// The snapshot of the blob, as the service writes it.
    pub snapshot: Option<&'a str>,
}

/// Signs for a whole account. `types` are resource types, letters of `sco`. Returns the query
/// without `?`.
#[must_use]
pub fn mint_account(keys: &AccountKeys, account: &str, types: &str, terms: &Terms) -> String {
    let mut fields = common(terms);
    fields.set("ss", "b");
    fields.set("srt", types);
    let target = Target { account, container: "", blob: None, snapshot: None };
    finish(Form::Account, fields, &target, keys)
}

/// Signs for a container, blob or snapshot. Returns the query without `?`, with the snapshot if
/// any.
#[must_use]
pub fn mint_service(keys: &AccountKeys, target: &Target<'_>, terms: &Terms) -> String {
    let fields = resource(target, terms);
    finish(Form::Service, fields, target, keys)
}

/// The same with a user delegation key. `keys` holds its value.
#[must_use]
pub fn mint_delegation(
    key: &DelegationKey,
    keys: &AccountKeys,
    target: &Target<'_>,
    terms: &Terms,
) -> String {
    let mut fields = resource(target, terms);
    for name in ["skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid"] {
        fields.set(name, key.word(name));
    }
    finish(Form::Delegation, fields, target, keys)
}

fn common(terms: &Terms) -> Fields {
    let mut fields = Fields::default();
    fields.set("sv", MINT_VERSION);
    fields.set("sp", &terms.permissions);
    fields.set("st", terms.start.as_deref().unwrap_or(""));
    fields.set("se", terms.expiry.as_deref().unwrap_or(""));
    fields.set("sip", terms.addresses.as_deref().unwrap_or(""));
    fields.set("spr", if terms.https_only { "https" } else { "https,http" });
    fields
}

fn resource(target: &Target<'_>, terms: &Terms) -> Fields {
    let mut fields = common(terms);
    fields.set(
        "sr",
        match (target.blob, target.snapshot) {
            (None, _) => "c",
            (Some(_), None) => "b",
            (Some(_), Some(_)) => "bs",
        },
    );
    fields.set("si", terms.policy.as_deref().unwrap_or(""));
    let Overrides {
        cache_control,
        content_disposition,
        content_encoding,
        content_language,
        content_type,
        expires: _,
    } = &terms.overrides;
    fields.set("rscc", cache_control.as_deref().unwrap_or(""));
    fields.set("rscd", content_disposition.as_deref().unwrap_or(""));
    fields.set("rsce", content_encoding.as_deref().unwrap_or(""));
    fields.set("rscl", content_language.as_deref().unwrap_or(""));
    fields.set("rsct", content_type.as_deref().unwrap_or(""));
    fields
}

fn finish(form: Form, mut fields: Fields, target: &Target<'_>, keys: &AccountKeys) -> String {
    let snapshot = target.snapshot.unwrap_or("");
    let subject = Subject {
        account: target.account,
        container: Some(target.container),
        blob: target.blob,
        time: snapshot,
        headers: &HeaderMap::new(),
        query: "",
    };
    let text = string_to_sign(form, &fields, &subject).ok().flatten();
    let text = text.expect("the version has every form, and no header is signed");
    fields.set("sig", &keys.sign(text.as_bytes()));
    if snapshot.is_empty() {
        fields.query()
    } else {
        format!("snapshot={}&{}", escaped(snapshot), fields.query())
    }
}

fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
