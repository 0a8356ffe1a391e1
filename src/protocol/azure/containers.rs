//! Operations on one container.

use http::HeaderMap;
use http::Method;

use crate::protocol::azure::acl;
use crate::protocol::azure::conditions;
use crate::protocol::azure::conditions::Dates;
use crate::protocol::azure::deletions;
use crate::protocol::azure::encryption;
use crate::protocol::azure::headers;
use crate::protocol::azure::leases;
use crate::protocol::azure::lists;
use crate::protocol::azure::request::Request;
use crate::protocol::azure::tags;
use crate::protocol::azure::unserved;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContainerSettings;
use crate::protocol::wire::query;
use crate::types::ContainerName;

/// `comp` values of containers that exist in the service and not here.
const UNSERVED: &[&str] = &["rename"];

/// Routes by `comp` and method.
pub(super) fn parse(
    request: &Request<'_>,
    name: &ContainerName,
    comp: Option<&str>,
) -> Result<Operation, Refusal> {
    let container = name.clone();
    let all = request.headers;
    let dated = |dates| conditions::dated(all, dates);
    match (comp, request.method) {
        (None, &Method::PUT) => create(request, container),
        (None | Some("metadata"), &Method::GET | &Method::HEAD) => {
            Ok(ContainerOperation::GetContainer { container, precondition: dated(Dates::None)? }
                .into())
        }
        (None, &Method::DELETE) => Ok(ContainerOperation::DeleteContainer {
            container,
            precondition: dated(Dates::Either)?,
        }
        .into()),
        (Some("metadata"), &Method::PUT) => Ok(ContainerOperation::SetContainerMetadata {
            container,
            precondition: dated(Dates::ModifiedSince)?,
            metadata: headers::metadata(all)?,
        }
        .into()),
        (Some("acl"), &Method::GET | &Method::HEAD) => {
            Ok(ContainerOperation::GetContainerAcl { container, precondition: dated(Dates::None)? }
                .into())
        }
        (Some("acl"), &Method::PUT) => Ok(ContainerOperation::SetContainerAcl {
            container,
            precondition: dated(Dates::Either)?,
            public_access: acl::public_access(all)?,
            policies: Vec::new(),
        }
        .into()),
        (Some("list"), &Method::GET) => lists::blobs(request, container)
            .map(|wanted| ContainerOperation::ListBlobs(wanted).into()),
        (Some("lease"), &Method::PUT) => Ok(ContainerOperation::LeaseContainer {
            container,
            precondition: dated(Dates::Either)?,
            action: leases::action(all)?,
        }
        .into()),
        (Some("blobs"), &Method::GET) => tags::find(request.query, Some(container))
            .map(|wanted| AccountOperation::FindBlobs(wanted).into()),
        (Some("undelete"), &Method::PUT) => restore(all, container),
        (None | Some("metadata" | "list" | "lease" | "acl" | "blobs" | "undelete"), _) => {
            Err(Reason::UnsupportedHttpVerb.into())
        }
        (Some(comp), _) if UNSERVED.contains(&comp) => {
            Err(unserved::not_served(&format!("comp={comp} on containers")))
        }
        (Some(other), _) => Err(query::invalid("comp", other)),
    }
}

/// Restore Container: `container` is the name that it gets.
fn restore(all: &HeaderMap, container: ContainerName) -> Result<Operation, Refusal> {
    const NAME: &str = "x-ms-deleted-container-name";
    const VERSION: &str = "x-ms-deleted-container-version";
    let required = |name: &'static str| {
        let missing =
            || Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, name);
        headers::text(all, name)?.ok_or_else(missing)
    };
    let (name, version) = (required(NAME)?, required(VERSION)?);
    let deleted = ContainerName::new(name).map_err(|_| headers::invalid(NAME, name))?;
    let since = deletions::time_of(version).ok_or_else(|| headers::invalid(VERSION, version))?;
    Ok(ContainerOperation::RestoreContainer { container, deleted, since }.into())
}

fn create(request: &Request<'_>, container: ContainerName) -> Result<Operation, Refusal> {
    conditions::dated(request.headers, Dates::None)?;
    let public_access = acl::public_access(request.headers)?;
    let metadata = headers::metadata(request.headers)?;
    let encryption_scope = encryption::default_scope(request.headers)?;
    let settings = ContainerSettings::default();
    Ok(ContainerOperation::CreateContainer {
        container,
        metadata,
        public_access,
        encryption_scope,
        settings,
    }
    .into())
}
