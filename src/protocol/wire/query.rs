//! The query string, decoded.

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::percent::decode;

/// Decoded parameters.
#[derive(Default)]
pub(in crate::protocol) struct Query(Vec<(String, String)>);

impl Query {
    /// Splits and decodes; `+` is a space. Names are in lower case.
    pub(in crate::protocol) fn parse(raw: Option<&str>) -> Result<Self, Refusal> {
        let Self(mut pairs) = Self::parse_exact(raw)?;
        pairs.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
        Ok(Self(pairs))
    }

    /// As [`Self::parse`], with names as they are.
    pub(in crate::protocol) fn parse_exact(raw: Option<&str>) -> Result<Self, Refusal> {
        let pieces = raw.unwrap_or("").split('&').filter(|piece| !piece.is_empty());
        let pairs = pieces.map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let refused = || invalid(name, value);
            let decoded = decode(&value.replace('+', " ")).ok_or_else(refused)?;
            let name = decode(&name.replace('+', " ")).ok_or_else(refused)?;
            Ok((name, decoded))
        });
        Ok(Self(pairs.collect::<Result<_, Refusal>>()?))
    }

    /// A parameter's value; empty counts as absent. Given twice is `InvalidQueryParameterValue`.
    pub(in crate::protocol) fn get(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.0.iter().filter(|(n, _)| n == name);
        let Some((_, value)) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(invalid(name, value));
        }
        Ok(if value.is_empty() { None } else { Some(value) })
    }

    /// Whether the parameter is there, empty or not.
    pub(in crate::protocol) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n == name)
    }
}

/// A refused parameter value, named in the body.
pub(in crate::protocol) fn invalid(name: &str, value: &str) -> Refusal {
    parameter(Reason::InvalidQueryParameterValue, name, value)
}

/// An error about a parameter, named in the body.
pub(in crate::protocol) fn parameter(code: Reason, name: &str, value: &str) -> Refusal {
    Refusal::new(code).detail(Detail::ParameterName, name).detail(Detail::ParameterValue, value)
}

/// A parameter that has to be there and is not.
pub(in crate::protocol) fn missing(name: &str) -> Refusal {
    Refusal::new(Reason::MissingRequiredQueryParameter).detail(Detail::ParameterName, name)
}
