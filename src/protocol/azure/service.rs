//! The bodies of Get and Set Blob Service Properties and Get Blob Service Stats.
//!
//! Source: "Set Blob Service Properties", "Get Blob Service Stats".

use crate::protocol::azure::ServiceVersion;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::escape;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::protocol::wire::xml::invalid_value;
use crate::types::CorsRule;
use crate::types::Logging;
use crate::types::ServiceMetrics;
use crate::types::ServiceProperties;
use crate::types::ServicePropertiesChange;
use crate::types::Timestamp;
use crate::types::Website;

/// Bytes of a Set Blob Service Properties body.
pub(super) const SERVICE_PROPERTIES_BYTES_MAX: u64 = 64 * 1024;

/// Rules of an account.
const CORS_RULES_MAX: usize = 5;
/// Characters of one origin, method or header name.
const CORS_ITEM_CHARS_MAX: usize = 256;
/// Entries of one list of a rule.
const CORS_ITEMS_MAX: usize = 64;
/// Characters of all rules together.
const CORS_CHARS_MAX: usize = 2048;
/// Methods a rule may allow.
const CORS_METHODS: &[&str] =
    &["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"];
/// The longest retention of logs, metrics and deleted blobs.
const RETENTION_DAYS_MAX: u32 = 365;
/// Characters of a website document's path.
const DOCUMENT_CHARS_MAX: usize = 255;

/// Reads the body of Set Blob Service Properties. Elements that are missing stay as they are.
///
/// # Errors
/// `InvalidXmlDocument`, `UnsupportedXmlNode`, `InvalidXmlNodeValue`, `MissingRequiredXmlNode`.
pub(super) fn read_properties(body: &[u8]) -> Result<ServicePropertiesChange, Refusal> {
    let root = xml::parse(body, "StorageServiceProperties")?;
    root.only(&[
        "Logging",
        "HourMetrics",
        "MinuteMetrics",
        "Metrics",
        "Cors",
        "DefaultServiceVersion",
        "DeleteRetentionPolicy",
        "StaticWebsite",
    ])?;
    let hour = root.child("HourMetrics").or_else(|| root.child("Metrics"));
    let deletion = root.child("DeleteRetentionPolicy").map(soft_delete).transpose()?;
    Ok(ServicePropertiesChange {
        logging: root.child("Logging").map(logging).transpose()?,
        hour_metrics: hour.map(metrics).transpose()?,
        minute_metrics: root.child("MinuteMetrics").map(metrics).transpose()?,
        cors: root.child("Cors").map(cors).transpose()?,
        default_version: root.child("DefaultServiceVersion").map(default_version).transpose()?,
        delete_retention_days: deletion.map(|deletion| deletion.days),
        permanent_delete: deletion.map(|deletion| deletion.permanent),
        website: root.child("StaticWebsite").map(website).transpose()?,
    })
}

fn required<'a>(element: &'a Element, name: &str) -> Result<&'a str, Refusal> {
    element.child_text(name).ok_or_else(|| xml::missing(name))
}

fn flag(name: &str, text: &str) -> Result<bool, Refusal> {
    match text {
        "true" | "True" | "1" => Ok(true),
        "false" | "False" | "0" => Ok(false),
        other => Err(invalid_value(name, other)),
    }
}

fn check_version(element: &Element) -> Result<(), Refusal> {
    match required(element, "Version")? {
        "1.0" | "2.0" => Ok(()),
        other => Err(invalid_value("Version", other)),
    }
}

/// `Enabled` and `Days`: the days when enabled.
fn retention(policy: &Element) -> Result<Option<u32>, Refusal> {
    if !flag("Enabled", required(policy, "Enabled")?)? {
        return Ok(None);
    }
    let text = required(policy, "Days")?;
    match text.parse::<u32>() {
        Ok(days @ 1..=RETENTION_DAYS_MAX) => Ok(Some(days)),
        _ => Err(invalid_value("Days", text)),
    }
}

fn retention_of(element: &Element) -> Result<Option<u32>, Refusal> {
    let policy = element.child("RetentionPolicy").ok_or_else(|| xml::missing("RetentionPolicy"))?;
    policy.only(&["Enabled", "Days"])?;
    retention(policy)
}

fn logging(element: &Element) -> Result<Logging, Refusal> {
    element.only(&["Version", "Delete", "Read", "Write", "RetentionPolicy"])?;
    check_version(element)?;
    let on = |name| flag(name, required(element, name)?);
    Ok(Logging {
        delete: on("Delete")?,
        read: on("Read")?,
        write: on("Write")?,
        retention_days: retention_of(element)?,
    })
}

fn metrics(element: &Element) -> Result<ServiceMetrics, Refusal> {
    element.only(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    check_version(element)?;
    let enabled = flag("Enabled", required(element, "Enabled")?)?;
    let include_apis = element.child_text("IncludeAPIs").map(|t| flag("IncludeAPIs", t));
    Ok(ServiceMetrics {
        enabled,
        // Said of metrics that are kept; elsewhere the service refuses or forgets it, so it is not
        // kept here.
        include_apis: include_apis.transpose()?.filter(|_| enabled),
        retention_days: retention_of(element)?,
    })
}

fn default_version(element: &Element) -> Result<Option<String>, Refusal> {
    match element.text.trim() {
        "" => Ok(None),
        text if ServiceVersion::parse(text).is_some() => Ok(Some(text.to_owned())),
        text => Err(invalid_value("DefaultServiceVersion", text)),
    }
}

/// Soft delete of blobs.
#[derive(Clone, Copy)]
struct Deletion {
    /// The days of retention, if it is enabled.
    days: Option<u32>,
    /// Whether soft-deleted rows may be removed before they expire.
    permanent: bool,
}

fn soft_delete(element: &Element) -> Result<Deletion, Refusal> {
    const PERMANENT: &str = "AllowPermanentDelete";
    element.only(&["Enabled", "Days", PERMANENT])?;
    let permanent = element.child_text(PERMANENT).map(|text| flag(PERMANENT, text)).transpose()?;
    Ok(Deletion { days: retention(element)?, permanent: permanent.unwrap_or(false) })
}

fn website(element: &Element) -> Result<Option<Website>, Refusal> {
    let documents = ["IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath"];
    element.only(&["Enabled", documents[0], documents[1], documents[2]])?;
    let path = |name: &str| match element.child_text(name) {
        None | Some("") => Ok(None),
        Some(text) if text.chars().count() > DOCUMENT_CHARS_MAX => Err(invalid_value(name, text)),
        Some(text) => Ok(Some(text.to_owned())),
    };
    let site = Website {
        index_document: path(documents[0])?,
        error_document: path(documents[1])?,
        default_index_path: path(documents[2])?,
    };
    // The index document is looked up in every folder, so it is a name and no path.
    if let Some(index) = site.index_document.as_deref().filter(|name| name.contains('/')) {
        return Err(invalid_value(documents[0], index));
    }
    if site.index_document.is_some() && site.default_index_path.is_some() {
        return Err(Reason::InvalidDocument.into());
    }
    Ok(flag("Enabled", required(element, "Enabled")?)?.then_some(site))
}

fn cors(element: &Element) -> Result<Vec<CorsRule>, Refusal> {
    if element.children.len() > CORS_RULES_MAX {
        return Err(Reason::InvalidDocument.into());
    }
    let rules: Vec<CorsRule> = element.children.iter().map(cors_rule).collect::<Result<_, _>>()?;
    let chars = |rule: &CorsRule| {
        [&rule.allowed_origins, &rule.allowed_methods, &rule.allowed_headers, &rule.exposed_headers]
            .iter()
            .map(|text| text.chars().count())
            .sum::<usize>()
    };
    if rules.iter().map(chars).sum::<usize>() > CORS_CHARS_MAX {
        return Err(Reason::InvalidDocument.into());
    }
    Ok(rules)
}

fn cors_rule(element: &Element) -> Result<CorsRule, Refusal> {
    if element.name != "CorsRule" {
        return Err(Refusal::new(Reason::UnsupportedElement)
            .detail(Detail::ElementName, element.name.as_str()));
    }
    let names =
        ["AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds"];
    element.only(&names)?;
    let list = |name: &str, may_be_empty: bool| -> Result<String, Refusal> {
        let text = required(element, name)?;
        let items = || text.split(',').map(str::trim);
        let too_long = items().count() > CORS_ITEMS_MAX
            || items().any(|item| item.chars().count() > CORS_ITEM_CHARS_MAX);
        let empty = text.is_empty() && !may_be_empty;
        let hole = !text.is_empty() && items().any(str::is_empty);
        if too_long || empty || hole { Err(invalid_value(name, text)) } else { Ok(text.to_owned()) }
    };
    let methods = list(names[1], false)?;
    if methods.split(',').any(|method| !CORS_METHODS.contains(&method.trim())) {
        return Err(invalid_value(names[1], &methods));
    }
    let age = required(element, names[4])?;
    let max_age = age.parse::<u32>().ok().filter(|&age| i32::try_from(age).is_ok());
    Ok(CorsRule {
        allowed_origins: list(names[0], false)?,
        allowed_methods: methods,
        allowed_headers: list(names[2], true)?,
        exposed_headers: list(names[3], true)?,
        max_age: max_age.ok_or_else(|| invalid_value(names[4], age))?,
    })
}

/// The body of Get Blob Service Properties.
pub(super) fn write_properties(properties: &ServiceProperties, permanent_delete: bool) -> String {
    let mut out = String::with_capacity(1024);
    out.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging>");
    let Logging { delete, read, write, retention_days } = properties.logging;
    escape::plain(&mut out, "Version", "1.0");
    escape::plain(&mut out, "Read", read);
    escape::plain(&mut out, "Write", write);
    escape::plain(&mut out, "Delete", delete);
    write_retention(&mut out, "RetentionPolicy", retention_days);
    out.push_str("</Logging>");
    write_metrics(&mut out, "HourMetrics", &properties.hour_metrics);
    write_metrics(&mut out, "MinuteMetrics", &properties.minute_metrics);
    out.push_str("<Cors>");
    for rule in &properties.cors {
        out.push_str("<CorsRule>");
        escape::element(&mut out, "AllowedMethods", &rule.allowed_methods);
        escape::element(&mut out, "AllowedOrigins", &rule.allowed_origins);
        escape::element(&mut out, "AllowedHeaders", &rule.allowed_headers);
        escape::element(&mut out, "ExposedHeaders", &rule.exposed_headers);
        escape::plain(&mut out, "MaxAgeInSeconds", rule.max_age);
        out.push_str("</CorsRule>");
    }
    out.push_str("</Cors>");
    if let Some(version) = &properties.default_version {
        escape::element(&mut out, "DefaultServiceVersion", version);
    }
    write_deletion(&mut out, properties.delete_retention_days, permanent_delete);
    out.push_str("<StaticWebsite>");
    escape::plain(&mut out, "Enabled", properties.website.is_some());
    if let Some(site) = &properties.website {
        let documents = [
            ("IndexDocument", &site.index_document),
            ("DefaultIndexDocumentPath", &site.default_index_path),
            ("ErrorDocument404Path", &site.error_document),
        ];
        for (tag, path) in documents {
            if let Some(path) = path {
                escape::element(&mut out, tag, path);
            }
        }
    }
    out.push_str("</StaticWebsite></StorageServiceProperties>");
    out
}

fn write_metrics(out: &mut String, tag: &str, metrics: &ServiceMetrics) {
    out.push('<');
    out.push_str(tag);
    out.push('>');
    escape::plain(out, "Version", "1.0");
    escape::plain(out, "Enabled", metrics.enabled);
    if let Some(include) = metrics.include_apis {
        escape::plain(out, "IncludeAPIs", include);
    }
    write_retention(out, "RetentionPolicy", metrics.retention_days);
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

fn write_deletion(out: &mut String, days: Option<u32>, permanent: bool) {
    out.push_str("<DeleteRetentionPolicy>");
    escape::plain(out, "Enabled", days.is_some());
    if let Some(days) = days {
        escape::plain(out, "Days", days);
    }
    if permanent {
        escape::plain(out, "AllowPermanentDelete", permanent);
    }
    out.push_str("</DeleteRetentionPolicy>");
}

fn write_retention(out: &mut String, tag: &str, days: Option<u32>) {
    out.push('<');
    out.push_str(tag);
    out.push('>');
    escape::plain(out, "Enabled", days.is_some());
    if let Some(days) = days {
        escape::plain(out, "Days", days);
    }
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
}

/// The body of Get Blob Service Stats: the secondary is the same store, so it is as new as the
/// answer.
pub(super) fn write_stats(last_sync: Timestamp) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>live</Status>\
         <LastSyncTime>{last_sync}</LastSyncTime></GeoReplication></StorageServiceStats>"
    )
}

#[cfg(test)]
mod tests;
