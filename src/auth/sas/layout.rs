//! Strings-to-sign of shared access signatures: a table with a row for each change of a form.
//!
//! Source: Storage REST "Create an account SAS", "Create a service SAS", "Create a user delegation
//! SAS".

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::HashSet;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::auth::Error;
use crate::auth::sas::fields::Fields;

/// The three forms of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Signed with an account key, for the whole account.
    Account,
    /// Signed with an account key, for one container or blob.
    Service,
    /// Signed with a user delegation key, for one container or blob.
    Delegation,
}

/// The string-to-sign of a form from a version on.
struct Layout {
    form: Form,
    since: &'static str,
    /// Names of parameters, one per line; `$` marks a field that is not a parameter.
    lines: &'static str,
}

/// The forms, oldest first.
const LAYOUTS: &[Layout] = &[
    Layout {
        form: Form::Account,
        since: "2015-04-05",
        lines: "$account sp ss srt st se sip spr sv $nothing",
    },
    Layout {
        form: Form::Account,
        since: "2020-12-06",
        lines: "$account sp ss srt st se sip spr sv ses $nothing",
    },
    Layout { form: Form::Service, since: "2012-02-12", lines: "sp st se $resource si sv" },
    Layout {
        form: Form::Service,
        since: "2013-08-15",
        lines: "sp st se $resource si sv rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Service,
        since: "2015-04-05",
        lines: "sp st se $resource si sip spr sv rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Service,
        since: "2018-11-09",
        lines: "sp st se $resource si sip spr sv sr $time rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Service,
        since: "2020-12-06",
        lines: "sp st se $resource si sip spr sv sr $time ses rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Delegation,
        since: "2018-11-09",
        lines: "sp st se $resource skoid sktid skt ske sks skv sip spr sv sr $time rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Delegation,
        since: "2020-02-10",
        lines: "sp st se $resource skoid sktid skt ske sks skv saoid suoid scid sip spr sv sr $time \
                rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Delegation,
        since: "2020-12-06",
        lines: "sp st se $resource skoid sktid skt ske sks skv saoid suoid scid sip spr sv sr $time ses \
                rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Delegation,
        since: "2025-07-05",
        lines: "sp st se $resource skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid sip spr sv sr $time \
                ses rscc rscd rsce rscl rsct",
    },
    Layout {
        form: Form::Delegation,
        since: "2026-04-06",
        lines: "sp st se $resource skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid sip spr sv sr $time \
                ses $headers $parameters rscc rscd rsce rscl rsct",
    },
];

/// Version from which the resource starts with the service's name.
const SERVICE_IN_RESOURCE_SINCE: &str = "2015-02-21";

/// The signed resource, taken from the request and not from the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) account: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) blob: Option<&'a str>,
    /// The snapshot or version, for signatures of one.
    pub(super) time: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) query: &'a str,
}

fn layout(form: Form, version: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().rev().find(|layout| layout.form == form && layout.since <= version)
}

/// Whether signatures of this form and version sign a parameter.
pub(super) fn signs(form: Form, version: &str, parameter: &str) -> bool {
    let lines = layout(form, version).map_or("", |layout| layout.lines);
    lines.split_ascii_whitespace().any(|line| line == parameter)
}

/// The signed text; `None` when the version is older than the form. It is built before the client
/// is authenticated, so it is never much longer than the request.
///
/// # Errors
/// [`Error::Refused`] when `srh` or `srq` has a duplicate name.
pub(super) fn string_to_sign(
    form: Form,
    fields: &Fields,
    subject: &Subject<'_>,
) -> Result<Option<String>, Error> {
    let version = fields.text("sv");
    let Some(layout) = layout(form, version) else { return Ok(None) };
    let text = |line: &str| {
        Ok(match line {
            "$account" => subject.account.to_owned(),
            "$resource" => resource(version, fields, subject),
            "$time" => subject.time.to_owned(),
            "$headers" => required_headers(&names(fields, "srh")?, subject.headers),
            "$parameters" => required_parameters(&names(fields, "srq")?, subject.query),
            "$nothing" => String::new(),
            name => fields.text(name).to_owned(),
        })
    };
    let lines = layout.lines.split_ascii_whitespace().map(text);
    Ok(Some(lines.collect::<Result<Vec<_>, Error>>()?.join("\n")))
}

fn resource(version: &str, fields: &Fields, subject: &Subject<'_>) -> String {
    let service = if version >= SERVICE_IN_RESOURCE_SINCE { "/blob" } else { "" };
    let mut text = format!("{service}/{}/{}", subject.account, subject.container.unwrap_or(""));
    let below = match fields.text("sr") {
        "c" => None,
        "d" => directory(fields, subject).map(Cow::Owned),
        _ => subject.blob.map(Cow::Borrowed),
    };
    if let Some(below) = below {
        text.push('/');
        text.push_str(&below);
    }
    text
}

/// The directory that a signature with `sr=d` is of: the first `sdd` segments of the blob's name,
/// or of the prefix of a list, which has to end them with a slash. `None` where the request names
/// none. Source: "Create a user delegation SAS".
pub(super) fn directory(fields: &Fields, subject: &Subject<'_>) -> Option<String> {
    let depth: usize = fields.text("sdd").parse().ok().filter(|depth| *depth > 0)?;
    let prefix = || {
        let mut pairs = subject.query.split('&').filter_map(|piece| piece.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("prefix"))?;
        // As parameters are read: a plus is a space.
        let value = value.replace('+', " ");
        Some(percent_decode_str(&value).decode_utf8().ok()?.into_owned())
    };
    let (name, is_list) = match subject.blob {
        Some(blob) => (blob.to_owned(), false),
        None => (prefix()?, true),
    };
    let segments: Vec<&str> = name.split('/').collect();
    let has_depth = if is_list { segments.len() > depth } else { segments.len() >= depth };
    has_depth.then(|| segments.get(..depth).unwrap_or_default().join("/"))
}

/// The names in a list without duplicates: each adds its value to the text.
fn names<'a>(fields: &'a Fields, list: &str) -> Result<Vec<&'a str>, Error> {
    let names: Vec<&str> = fields.text(list).split(',').filter(|name| !name.is_empty()).collect();
    let mut seen = HashSet::new();
    // Compared without case, for headers and parameters.
    match names.iter().find(|name| !seen.insert(name.to_ascii_lowercase())) {
        Some(twice) => Err(Error::sas(format!("{list} names {twice} twice."))),
        None => Ok(names),
    }
}

/// A line `name:value` for each header that the signature names, with the value of the request.
fn required_headers(names: &[&str], headers: &HeaderMap) -> String {
    let value = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").trim();
    names.iter().map(|name| format!("{name}:{}\n", value(name))).collect()
}

/// The same for parameters of the query.
fn required_parameters(names: &[&str], query: &str) -> String {
    let wanted: HashSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let mut found = HashMap::new();
    // The first of duplicate parameters counts.
    for piece in query.split('&').filter(|_| !wanted.is_empty()) {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        let name: Cow<'_, [u8]> = percent_decode_str(name).into();
        if let Some(name) = wanted.get(name.as_ref()) {
            found.entry(*name).or_insert(value);
        }
    }
    let value = |name: &str| {
        percent_decode_str(found.get(name.as_bytes()).unwrap_or(&"")).decode_utf8_lossy()
    };
    names.iter().map(|name| format!("\n{name}:{}", value(name))).collect()
}
