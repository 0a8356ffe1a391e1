//! Strings-to-sign of shared access signatures: one table, a row for each change of the form.
//!
//! Source: Storage REST "Create an account SAS", "Create a service SAS", "Create a user delegation
//! SAS".

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::auth::sas::fields::Fields;

/// Which of the three forms a signature has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Signed with an account key, for the whole account.
    Account,
    /// Signed with an account key, for one container or blob.
    Service,
    /// Signed with a user delegation key, for one container or blob.
    Delegation,
}

/// What one form looks like from a version on.
struct Layout {
    form: Form,
    since: &'static str,
    /// Names of parameters, one a line; `$` marks what is no parameter.
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

/// What a signature speaks of, taken from the request and not from its parameters.
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

/// The text that is signed; `None` when the version is older than the form.
pub(super) fn string_to_sign(form: Form, fields: &Fields, subject: &Subject<'_>) -> Option<String> {
    let version = fields.text("sv");
    let layout = LAYOUTS.iter().rev().find(|l| l.form == form && l.since <= version)?;
    let lines = layout.lines.split_ascii_whitespace().map(|line| match line {
        "$account" => subject.account.to_owned(),
        "$resource" => resource(version, fields.text("sr"), subject),
        "$time" => subject.time.to_owned(),
        "$headers" => required_headers(fields.text("srh"), subject.headers),
        "$parameters" => required_parameters(fields.text("srq"), subject.query),
        "$nothing" => String::new(),
        name => fields.text(name).to_owned(),
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn resource(version: &str, kind: &str, subject: &Subject<'_>) -> String {
    let service = if version >= SERVICE_IN_RESOURCE_SINCE { "/blob" } else { "" };
    let mut text = format!("{service}/{}/{}", subject.account, subject.container.unwrap_or(""));
    if let Some(blob) = subject.blob.filter(|_| kind != "c") {
        text.push('/');
        text.push_str(blob);
    }
    text
}

/// `name:value` of each header the signature asks for, a line each; the value is the request's.
fn required_headers(names: &str, headers: &HeaderMap) -> String {
    let names = names.split(',').filter(|name| !name.is_empty());
    let value = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").trim();
    names.map(|name| format!("{name}:{}\n", value(name))).collect()
}

/// The same of parameters.
fn required_parameters(names: &str, query: &str) -> String {
    let names = names.split(',').filter(|name| !name.is_empty());
    let value = |wanted: &str| {
        let mut pairs = query.split('&').map(|piece| piece.split_once('=').unwrap_or((piece, "")));
        let found = pairs.find(|(name, _)| percent_decode_str(name).eq(wanted.bytes()));
        found.map_or_else(String::new, |(_, v)| {
            percent_decode_str(v).decode_utf8_lossy().into_owned()
        })
    };
    names.map(|name| format!("\n{name}:{}", value(name))).collect()
}
