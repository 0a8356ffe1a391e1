//! Cross-origin rules of a bucket, as requests set them.
//!
//! Source: S3, `PutBucketCors`, "Elements of a CORS configuration".

use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::s3::documents;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::settings;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::types::CrossOriginRule;
use crate::types::Setting;
use crate::types::SettingKind;

/// The longest document, bytes.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024;
/// The most rules of a bucket.
const RULES_MAX: usize = 100;
/// The longest id of a rule, characters.
const ID_CHARS_MAX: usize = 255;
const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// `GetBucketCors`.
pub(super) fn get(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::Get(SettingKind::Cors))
}

/// `PutBucketCors`.
pub(super) fn put(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let action = SettingAction::Set(Setting::Cors(Vec::new()));
    let set =
        ContainerOperation::Setting(SettingOperation { container: request.bucket()?, action });
    documents::completed_by(request, set, DOCUMENT_BYTES_MAX, decode)
}

/// `DeleteBucketCors`.
pub(super) fn delete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    settings::operation(request, SettingAction::Remove(SettingKind::Cors))
}

fn decode(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Container(ContainerOperation::Setting(setting)) = operation {
        setting.action = SettingAction::Set(Setting::Cors(read(document.bytes)?));
        return Ok(());
    }
    Err(Reason::InternalError.into())
}

/// The rules of a `CORSConfiguration` document.
pub(super) fn read(body: &[u8]) -> Result<Vec<CrossOriginRule>, Refusal> {
    let root = xml::parse(body, "CORSConfiguration")?;
    let rules = documents::items(&root, "CORSRule")?;
    if rules.is_empty() || rules.len() > RULES_MAX {
        return Err(xml::not_xml());
    }
    rules.iter().map(rule).collect()
}

fn rule(of: &Element) -> Result<CrossOriginRule, Refusal> {
    const KNOWN: [&str; 6] =
        ["ID", "AllowedOrigin", "AllowedMethod", "AllowedHeader", "ExposeHeader", "MaxAgeSeconds"];
    if let Some(other) = of.children.iter().find(|child| !KNOWN.contains(&child.name.as_str())) {
        return Err(xml::unsupported(&other.name));
    }
    let rule = CrossOriginRule {
        id: single(of, "ID")?,
        origins: documents::texts(of, "AllowedOrigin"),
        methods: documents::texts(of, "AllowedMethod"),
        headers: documents::texts(of, "AllowedHeader"),
        exposed: documents::texts(of, "ExposeHeader"),
        max_age: single(of, "MaxAgeSeconds")?.map(|text| seconds(&text)).transpose()?,
    };
    check(&rule)?;
    Ok(rule)
}

/// The text of a child that may be there once.
fn single(of: &Element, name: &str) -> Result<Option<String>, Refusal> {
    let mut texts = documents::texts(of, name);
    if texts.len() > 1 { Err(xml::not_xml()) } else { Ok(texts.pop()) }
}

fn seconds(text: &str) -> Result<u32, Refusal> {
    text.parse().map_err(|_| xml::invalid_value("MaxAgeSeconds", text))
}

fn check(rule: &CrossOriginRule) -> Result<(), Refusal> {
    let CrossOriginRule { id, origins, methods, headers, exposed, max_age: _ } = rule;
    if origins.is_empty() || methods.is_empty() {
        return Err(xml::not_xml());
    }
    if id.as_ref().is_some_and(|id| id.chars().count() > ID_CHARS_MAX) {
        return Err(refused("The ID of a CORS rule has at most 255 characters.".to_owned()));
    }
    if let Some(method) = methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        return Err(refused(format!(
            "Found unsupported HTTP method in CORS config. Unsupported method is {method}"
        )));
    }
    for (name, texts) in [("AllowedOrigin", origins), ("AllowedHeader", headers)] {
        if let Some(text) = texts.iter().find(|text| text.matches('*').count() > 1) {
            return Err(refused(format!("{name} \"{text}\" can not have more than one wildcard.")));
        }
    }
    if let Some(text) = exposed.iter().find(|text| text.contains('*')) {
        return Err(refused(format!(
            "ExposeHeader \"{text}\" contains wildcard. We currently do not support wildcard for \
             ExposeHeader."
        )));
    }
    Ok(())
}

fn refused(message: String) -> Refusal {
    Refusal::new(Reason::InvalidInput).message(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inner: &str) -> Result<Vec<CrossOriginRule>, Reason> {
        let body = format!("<CORSConfiguration>{inner}</CORSConfiguration>");
        read(body.as_bytes()).map_err(|error| error.reason)
    }

    #[test]
    fn rules_are_read_in_order() {
        let rules = of("<CORSRule><ID> a </ID><AllowedOrigin>http://*.x</AllowedOrigin>\
             <AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod>\
             <AllowedHeader>*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>\
             <MaxAgeSeconds>30</MaxAgeSeconds></CORSRule>\
             <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>");
        let rules = rules.unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!((rules[0].id.as_deref(), rules[0].max_age), (Some("a"), Some(30)));
        assert_eq!(rules[0].methods, ["GET", "PUT"]);
        assert_eq!(rules[1].origins, ["*"]);
    }

    #[test]
    fn rules_that_cannot_be_are_refused() {
        let rule = |inner: &str| {
            of(&format!(
                "<CORSRule><AllowedOrigin>a</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
                 {inner}</CORSRule>"
            ))
        };
        assert!(rule("").is_ok());
        let document = Reason::InvalidDocument;
        for (inner, reason) in [
            ("<AllowedMethod>PATCH</AllowedMethod>", Reason::InvalidInput),
            ("<AllowedMethod>get</AllowedMethod>", Reason::InvalidInput),
            ("<AllowedOrigin>*a*</AllowedOrigin>", Reason::InvalidInput),
            ("<AllowedHeader>**</AllowedHeader>", Reason::InvalidInput),
            ("<ExposeHeader>x-*</ExposeHeader>", Reason::InvalidInput),
            ("<MaxAgeSeconds>-1</MaxAgeSeconds>", Reason::InvalidElementValue),
            ("<MaxAgeSeconds>1</MaxAgeSeconds><MaxAgeSeconds>1</MaxAgeSeconds>", document),
            ("<ID>a</ID><ID>b</ID>", document),
            ("<Other/>", Reason::UnsupportedElement),
        ] {
            assert_eq!(rule(inner), Err(reason), "{inner}");
        }
        let long = format!("<ID>{}</ID>", "i".repeat(256));
        assert_eq!(rule(&long), Err(Reason::InvalidInput));
        assert_eq!(of(""), Err(document));
        assert_eq!(of("<CORSRule><AllowedOrigin>a</AllowedOrigin></CORSRule>"), Err(document));
        let many = "<CORSRule><AllowedOrigin>a</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
                    </CORSRule>";
        assert!(of(&many.repeat(100)).is_ok());
        assert_eq!(of(&many.repeat(101)), Err(document));
    }
}
