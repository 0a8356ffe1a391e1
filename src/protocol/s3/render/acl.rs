//! Access control lists as grants.

use crate::protocol::model::reply::Grants;
use crate::protocol::s3::echo::S3Echo;
use crate::protocol::s3::render::document::begin;
use crate::protocol::s3::render::document::owner;
use crate::protocol::s3::render::document::person;
use crate::protocol::wire::escape;

const GROUPS: &str = "http://acs.amazonaws.com/groups/global/";
const SCHEMA: &str = "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

/// The list of a bucket or object: its owner has all rights, others may read.
pub(super) fn grants(grants: &Grants, echo: &S3Echo) -> String {
    let Grants { owner: id, everyone, authenticated } = grants;
    let id = id.as_deref().unwrap_or(&echo.owner);
    let mut out = begin("AccessControlPolicy");
    owner(&mut out, id, echo);
    out.push_str("<AccessControlList>");
    out.push_str("<Grant><Grantee ");
    out.push_str(SCHEMA);
    out.push_str(" xsi:type=\"CanonicalUser\">");
    person(&mut out, id, echo);
    out.push_str("</Grantee><Permission>FULL_CONTROL</Permission></Grant>");
    for (is_granted, group) in [(*everyone, "AllUsers"), (*authenticated, "AuthenticatedUsers")] {
        if is_granted {
            out.push_str("<Grant><Grantee ");
            out.push_str(SCHEMA);
            out.push_str(" xsi:type=\"Group\">");
            escape::plain(&mut out, "URI", format_args!("{GROUPS}{group}"));
            out.push_str("</Grantee><Permission>READ</Permission></Grant>");
        }
    }
    out.push_str("</AccessControlList></AccessControlPolicy>");
    out
}
