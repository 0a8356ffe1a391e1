//! `blockyard trace`: its requests and its output.

use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::frontend::trace::TraceFilter;
use crate::frontend::trace::TraceLine;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::admin::query::form_urlencoded;
use super::error::CliError;
use super::output::json_text;
use super::output::print;

/// Arguments of `trace`.
#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    /// Only this operation, such as PutBlob
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Only this account
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Only this container
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Only this status, such as 404, or a class such as 5xx
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Only the request with this id: its own (x-ms-request-id, x-amz-request-id), its client's, or
    /// its trace's (traceparent)
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Only requests that took at least this many milliseconds
    #[arg(long, value_name = "MS")]
    pub slow_ms: Option<u32>,
    /// Print each request as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Runs `blockyard trace` until the node or the user stops it.
///
/// # Errors
/// [`CliError`].
pub(super) async fn trace(args: &TraceArgs) -> Result<(), CliError> {
    let filter = TraceFilter {
        operation: args.operation.clone(),
        account: args.account.clone(),
        container: args.container.clone(),
        status: args.status.clone(),
        id: args.id.clone(),
        slow_ms: args.slow_ms,
    };
    filter.check()?;
    let client = AdminClient::new(&args.admin)?;
    let mut query = form_urlencoded(&[
        ("operation", filter.operation),
        ("account", filter.account),
        ("container", filter.container),
        ("status", filter.status),
        ("id", filter.id),
        ("slow_ms", filter.slow_ms.map(|ms| ms.to_string())),
    ]);
    query.insert_str(0, "/admin/trace?");
    let mut body = client.open(Method::GET, &query, None).await?.into_body();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { break };
        rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            print(&if args.json { json_text(&text) } else { shown(&text) })?;
        }
    }
    Ok(())
}

/// The line of a request.
fn shown(text: &str) -> String {
    let Ok(line) = serde_json::from_str::<TraceLine>(text) else {
        let lost = serde_json::from_str::<Value>(text).unwrap_or_default()["lost"].as_u64();
        return lost.map_or_else(String::new, |lost| {
            format!("... {lost} requests not shown: they came faster than they were read\n")
        });
    };
    let parts = [Some(&line.account), line.container.as_ref(), line.blob.as_ref()];
    let path: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let user = line.user.as_ref().map_or_else(String::new, |user| format!(" user {user}"));
    let trace = line.trace_id.as_ref().map_or_else(String::new, |id| format!(" trace {id}"));
    let fault = line.fault.as_ref().map_or_else(String::new, |kind| format!(" FAULT {kind}"));
    format!(
        "{} {:3} {:7} {:24} {:9.3} ms ({})  in {:<9} out {:<9} {}  {} {} {} \
         from {}{user}{trace}{fault}\n",
        line.time.get(11..23).unwrap_or(&line.time),
        line.status,
        line.method,
        line.operation,
        line.ms,
        stages(&line),
        line.bytes_in,
        line.bytes_out,
        // A name may contain control characters, which a terminal must not get.
        path.join("/").escape_debug(),
        line.code.as_deref().unwrap_or("-"),
        line.request_id,
        line.client_request_id.as_deref().unwrap_or("-").escape_debug(),
        line.client,
    )
}

/// Where a request waited.
fn stages(line: &TraceLine) -> String {
    let stages = [
        ("admission", line.admission_ms.unwrap_or(0.0)),
        ("body", line.body_ms),
        ("index", line.index_ms),
        ("journal", line.journal_ms),
        ("read", line.read_ms),
    ];
    stages.map(|(name, ms)| format!("{name} {ms:.3}")).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_for_people_hold_no_control_characters() {
        let line = json!({
            "time": "2026-11-21T08:00:00.123Z", "method": "PUT", "operation": "PutBlob", "account": "acct",
            "container": "c", "blob": "a\u{1b}[31m\nb", "status": 503, "code": "ServerBusy", "ms": 1.25,
            "bytes_in": 7, "bytes_out": 9, "client": "127.0.0.1:1", "client_request_id": null,
            "request_id": "r", "scheme": "http", "fault": "busy", "admission_ms": 0.25, "body_ms": 0.5,
            "index_ms": 0.125, "journal_ms": 0.25, "trace_id": "0af7",
        });
        let text = shown(&line.to_string());
        assert!(text.starts_with("08:00:00.123 503 PUT "), "{text}");
        assert!(text.contains(r"acct/c/a\u{1b}[31m\nb  ServerBusy r -"), "{text}");
        assert!(text.contains(" 1.250 ms (admission 0.250, body 0.500, index 0.125, "), "{text}");
        assert!(text.contains(" journal 0.250, read 0.000) "), "{text}");
        assert!(text.ends_with(" from 127.0.0.1:1 trace 0af7 FAULT busy\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
        assert!(shown(r#"{"lost":12}"#).contains("12 requests not shown"));
    }
}
