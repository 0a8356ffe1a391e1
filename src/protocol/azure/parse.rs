//! Head and query to one operation: routing by the level of the URL, `restype`, `comp` and method.

use http::Method;
use http::request::Parts;

use crate::protocol::azure::Context;
use crate::protocol::azure::batch;
use crate::protocol::azure::blobs;
use crate::protocol::azure::containers;
use crate::protocol::azure::documents::document_of;
use crate::protocol::azure::lists;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::snapshots;
use crate::protocol::azure::tags;
use crate::protocol::azure::unserved;
use crate::protocol::azure::upload;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::Batch;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::KeyInfo;
use crate::protocol::model::operation::Parsed;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;

/// Turns an authenticated head into an operation.
///
/// # Errors
/// The documented code of the first thing wrong; `NotImplemented` for operations that are not
/// served.
pub fn parse(head: &Parts, address: &Address, context: &Context) -> Result<Parsed, Refusal> {
    let operation = operation(head, address, context)?;
    let Some((len_max, decode)) = document_of(&operation) else {
        return Ok(Parsed::ready(operation));
    };
    let upload = upload::upload(&head.headers, len_max)?;
    Ok(Parsed::NeedsBody { operation: Box::new(operation), body: DocumentBody { upload, decode } })
}

fn operation(head: &Parts, address: &Address, context: &Context) -> Result<Operation, Refusal> {
    let query = Query::parse(head.uri.query())?;
    let request = Request {
        method: &head.method,
        headers: &head.headers,
        query: &query,
        version: context.version,
    };
    if request.method == Method::OPTIONS || request.method == Method::PATCH {
        return Err(unserved::not_served(&format!("the verb {}", request.method)));
    }
    if address.secondary && !is_read(&request)? {
        return Err(Reason::InsufficientAccountPermissions.into());
    }
    unserved::check((request.method, address.blob.is_some()), request.headers, &query)?;
    check_timeout(&query)?;
    let restype = query.get("restype")?.map(str::to_ascii_lowercase);
    let comp = query.get("comp")?.map(str::to_ascii_lowercase);
    if restype.as_deref() == Some("account") {
        return account_information(&request, comp.as_deref());
    }
    match (&address.container, &address.blob) {
        (None, _) => account(&request, address, restype.as_deref(), comp.as_deref()),
        (Some(container), None) => {
            check_container_type(restype.as_deref())?;
            if comp.as_deref() == Some("batch") {
                return batch(&request, address);
            }
            containers::parse(&request, container, comp.as_deref())
        }
        (Some(container), Some(blob)) => {
            if let Some(restype) = restype {
                return Err(query::invalid("restype", &restype));
            }
            let revision = snapshots::revision(&request, comp.as_deref())?;
            let path = BlobPath { container: container.clone(), blob: blob.clone(), revision };
            blobs::parse(&request, path, comp.as_deref())
        }
    }
}

/// Whether the secondary takes the request.
fn is_read(request: &Request<'_>) -> Result<bool, Refusal> {
    let is_query = || Ok(request.query.get("comp")?.is_some_and(|comp| comp == "query"));
    match *request.method {
        Method::GET | Method::HEAD => Ok(true),
        Method::POST => is_query(),
        _ => Ok(false),
    }
}

/// `timeout` is whole seconds; the server's own deadline is the shorter one, so the value is not
/// needed further.
fn check_timeout(query: &Query) -> Result<(), Refusal> {
    match query.get("timeout")? {
        Some(text) if text.parse::<u32>().is_err() => Err(query::invalid("timeout", text)),
        _ => Ok(()),
    }
}

fn account_information(request: &Request<'_>, comp: Option<&str>) -> Result<Operation, Refusal> {
    match (comp, request.method) {
        (Some("properties"), &Method::GET | &Method::HEAD) => {
            Ok(AccountOperation::GetAccountInformation.into())
        }
        (Some("properties"), _) => Err(Reason::UnsupportedHttpVerb.into()),
        (Some(other), _) => Err(query::invalid("comp", other)),
        (None, _) => Err(query::missing("comp")),
    }
}

fn service_properties(request: &Request<'_>) -> Result<Operation, Refusal> {
    match *request.method {
        Method::GET => Ok(AccountOperation::GetServiceProperties.into()),
        Method::PUT => Ok(AccountOperation::SetServiceProperties { change: Box::default() }.into()),
        _ => Err(Reason::UnsupportedHttpVerb.into()),
    }
}

fn delegation_key(request: &Request<'_>) -> Result<Operation, Refusal> {
    if request.method != Method::POST {
        return Err(Reason::UnsupportedHttpVerb.into());
    }
    let version = request.version.to_string();
    Ok(AccountOperation::GetUserDelegationKey { wanted: KeyInfo::default(), version, holder: None }
        .into())
}

fn service_stats(request: &Request<'_>, secondary: bool) -> Result<Operation, Refusal> {
    match *request.method {
        Method::GET if secondary => Ok(AccountOperation::GetServiceStats.into()),
        // The primary knows nothing of how far the secondary is.
        Method::GET => Err(query::invalid("comp", "stats")),
        _ => Err(Reason::UnsupportedHttpVerb.into()),
    }
}

/// Blob Batch, on the account or on one container.
pub(super) fn batch(request: &Request<'_>, address: &Address) -> Result<Operation, Refusal> {
    if request.method != Method::POST {
        return Err(Reason::UnsupportedHttpVerb.into());
    }
    let (boundary, fault) = match batch::boundary(request.headers) {
        Ok(boundary) => (boundary, None),
        Err(fault) => (String::new(), Some(Box::new(fault))),
    };
    Ok(AccountOperation::Batch(Batch {
        account: address.account.clone(),
        container: address.container.clone(),
        path_style: address.endpoint.matches('/').count() > 1,
        boundary,
        parts: Vec::new(),
        fault,
    })
    .into())
}

fn account(
    request: &Request<'_>,
    address: &Address,
    restype: Option<&str>,
    comp: Option<&str>,
) -> Result<Operation, Refusal> {
    match (restype, comp) {
        (None, Some("list")) if request.method == Method::GET => lists::containers(request.query)
            .map(|wanted| AccountOperation::ListContainers(wanted).into()),
        (None, Some("list")) => Err(Reason::UnsupportedHttpVerb.into()),
        (None, Some("blobs")) if request.method == Method::GET => {
            tags::find(request.query, None).map(|wanted| AccountOperation::FindBlobs(wanted).into())
        }
        (None, Some("blobs")) => Err(Reason::UnsupportedHttpVerb.into()),
        // The JavaScript client takes the account in a path-style URL for a container.
        (None | Some("container"), Some("batch")) => batch(request, address),
        (Some("service"), Some("properties")) => service_properties(request),
        (Some("service"), Some("userdelegationkey")) => delegation_key(request),
        (Some("service"), Some("stats")) => service_stats(request, address.secondary),
        (Some(other), _) if other != "service" => Err(query::invalid("restype", other)),
        (_, Some(other)) => Err(query::invalid("comp", other)),
        (_, None) => Err(query::missing("comp")),
    }
}

fn check_container_type(restype: Option<&str>) -> Result<(), Refusal> {
    match restype {
        Some("container") => Ok(()),
        Some(other) => Err(query::invalid("restype", other)),
        None => Err(query::missing("restype")),
    }
}
