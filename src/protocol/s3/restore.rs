//! RestoreObject.
//!
//! Source: S3, RestoreObject. The number of days has no effect: a restored object stays restored
//! (ADR 0014).

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Parsed;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::upload::upload;
use crate::protocol::wire::xml;
use crate::types::RehydratePriority;

/// Bytes of the document at most.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024;
const ROOT: &str = "RestoreRequest";

/// `RestoreObject`.
pub(super) fn restore(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let precondition =
        Precondition { encryption: RequestEncryption::Unchecked, ..Precondition::default() };
    let operation = BlobOperation::RestoreBlob {
        path: request.object()?,
        precondition,
        priority: RehydratePriority::Standard,
    };
    let upload = upload(request.headers, DOCUMENT_BYTES_MAX)?;
    Ok(Parsed::NeedsBody {
        operation: Box::new(operation.into()),
        body: DocumentBody { upload, decode },
    })
}

fn decode(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    let Operation::Blob(BlobOperation::RestoreBlob { priority, .. }) = operation else {
        return Err(Reason::InternalError.into());
    };
    *priority = read(document.bytes)?;
    Ok(())
}

/// Reads the document.
///
/// # Errors
/// `InvalidDocument`, `InvalidElementValue`, `MissingElement`, `UnsupportedElement`;
/// `InvalidQueryParameterValue` for a number of days below 1; `NotImplemented` for a query of the
/// content.
pub fn read(bytes: &[u8]) -> Result<RehydratePriority, Refusal> {
    let root = xml::parse(bytes, ROOT)?;
    if ["Type", "SelectParameters", "OutputLocation"].iter().any(|name| root.child(name).is_some())
    {
        return Err(Refusal::new(Reason::NotImplemented)
            .message("Blockyard does not serve queries of archived objects."));
    }
    root.only(&["Days", "GlacierJobParameters", "Tier", "Description"])?;
    let days = root.child_text("Days").ok_or_else(|| xml::missing("Days"))?;
    let number: i64 = days.parse().map_err(|_| xml::invalid_value("Days", days))?;
    if number < 1 {
        return Err(Refusal::new(Reason::InvalidQueryParameterValue)
            .message("restoration days should be at least 1")
            .detail(Detail::ParameterName, "Days")
            .detail(Detail::ParameterValue, days));
    }
    let job = root.child("GlacierJobParameters");
    if let Some(job) = job {
        job.only(&["Tier"])?;
        if job.child("Tier").is_none() {
            return Err(xml::missing("Tier"));
        }
    }
    let own = root.child_text("Tier");
    match job.and_then(|job| job.child_text("Tier")).or(own) {
        Some("Expedited") => Ok(RehydratePriority::High),
        Some("Standard" | "Bulk") | None => Ok(RehydratePriority::Standard),
        Some(other) => Err(xml::invalid_value("Tier", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_days_and_a_tier() {
        let of = |inner: &str| read(format!("<{ROOT}>{inner}</{ROOT}>").as_bytes());
        let tier = |tier: &str| {
            of(&format!(
                "<Days>1</Days><GlacierJobParameters><Tier>{tier}</Tier></GlacierJobParameters>"
            ))
        };
        assert_eq!(of("<Days>1</Days>"), Ok(RehydratePriority::Standard));
        assert_eq!(tier("Expedited"), Ok(RehydratePriority::High));
        assert_eq!(tier("Standard"), Ok(RehydratePriority::Standard));
        assert_eq!(tier("Bulk"), Ok(RehydratePriority::Standard));
        let reason = |inner: &str| of(inner).unwrap_err().reason;
        assert_eq!(tier("Fast").unwrap_err().reason, Reason::InvalidElementValue);
        assert_eq!(reason(""), Reason::MissingElement);
        assert_eq!(reason("<Days>x</Days>"), Reason::InvalidElementValue);
        assert_eq!(reason("<Days>0</Days>"), Reason::InvalidQueryParameterValue);
        assert_eq!(reason("<Days>1</Days><Day/>"), Reason::UnsupportedElement);
        assert_eq!(reason("<Days>1</Days><Type>SELECT</Type>"), Reason::NotImplemented);
        assert_eq!(reason("<Days>1</Days><GlacierJobParameters/>"), Reason::MissingElement);
        assert_eq!(read(b"").unwrap_err().reason, Reason::InvalidDocument);
    }
}
