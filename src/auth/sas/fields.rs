//! The parameters of a shared access signature in a query, parsed and not yet verified.

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::percent_decode_str;
use percent_encoding::utf8_percent_encode;

use crate::auth::Error;

/// All parameters of signatures, in the order in which they are written.
const NAMES: &[&str] = &[
    "sv", "ss", "srt", "sr", "si", "sp", "st", "se", "sip", "spr", "ses", "sdd", "skoid", "sktid",
    "skt", "ske", "sks", "skv", "skdutid", "sduoid", "saoid", "suoid", "scid", "srh", "srq",
    "rscc", "rscd", "rsce", "rscl", "rsct", "sig",
];

/// Characters that need no escape in a query value.
const PLAIN: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');

/// Decoded parameters, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Reads the parameters from a query; `None` when it has no signature.
    pub(super) fn read(query: &str) -> Result<Option<Self>, Error> {
        let mut fields = Self::default();
        for piece in query.split('&') {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let name = name.to_ascii_lowercase();
            let Some(&name) = NAMES.iter().find(|known| **known == name) else { continue };
            if fields.get(name).is_some() {
                return Err(Error::sas(format!("{name} is given twice.")));
            }
            let value = decode(name, value)
                .ok_or_else(|| Error::sas(format!("{name} is not UTF-8 behind its escapes.")))?;
            fields.0.push((name, value));
        }
        Ok(fields.get("sig").is_some().then_some(fields))
    }

    /// Adds a parameter. An empty value is left out.
    pub(super) fn set(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.0.push((name, value.to_owned()));
        }
    }

    /// A parameter that was sent, even if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, or an empty text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// A required parameter.
    pub(super) fn required(&self, name: &str) -> Result<&str, Error> {
        match self.text(name) {
            "" => Err(Error::sas(format!("{name} is mandatory. Cannot be empty."))),
            value => Ok(value),
        }
    }

    /// As a query, in the order of the table.
    pub(super) fn query(&self) -> String {
        let given = NAMES.iter().filter_map(|name| self.get(name).map(|value| (name, value)));
        let pairs =
            given.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, &PLAIN)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

fn decode(name: &str, value: &str) -> Option<String> {
    // A plus of base64 that the client did not escape. Nothing else in a signature is a space.
    let spaced = if name == "sig" { value.to_owned() } else { value.replace('+', " ") };
    percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}
