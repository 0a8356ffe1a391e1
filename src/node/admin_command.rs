//! `blockyard trace` and `blockyard fault`: what they send, and what people read.

use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;
use serde_json::json;

use crate::frontend::faults::FaultError;
use crate::frontend::faults::FaultRule;
use crate::frontend::faults::FaultState;
use crate::frontend::trace::TraceFilter;
use crate::frontend::trace::TraceLine;

use super::admin_client::AdminClient;
use super::admin_client::ClientError;
use super::cli::FaultCommand;
use super::cli::FaultSetArgs;
use super::cli::TraceArgs;
use super::command::print;
use super::error::NodeError;

/// Runs `blockyard trace` until the node stops or the user does.
///
/// # Errors
/// [`NodeError`].
pub async fn trace(args: &TraceArgs) -> Result<(), NodeError> {
    let filter = TraceFilter {
        operation: args.operation.clone(),
        account: args.account.clone(),
        container: args.container.clone(),
        status: args.status.clone(),
        slow_ms: args.slow_ms,
    };
    filter.check()?;
    let client = AdminClient::new(&args.admin)?;
    let mut query = form_urlencoded(&[
        ("operation", filter.operation),
        ("account", filter.account),
        ("container", filter.container),
        ("status", filter.status),
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
            print(&if args.json { text.into_owned() } else { shown(&text) })?;
        }
    }
    Ok(())
}

/// A line for people.
fn shown(text: &str) -> String {
    let Ok(line) = serde_json::from_str::<TraceLine>(text) else {
        let lost = serde_json::from_str::<Value>(text).unwrap_or_default()["lost"].as_u64();
        return lost.map_or_else(String::new, |lost| {
            format!("... {lost} requests not shown: they came faster than they were read\n")
        });
    };
    let parts = [Some(&line.account), line.container.as_ref(), line.blob.as_ref()];
    let path: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    format!(
        "{} {:3} {:7} {:24} {:9.3} ms  in {:<9} out {:<9} {}  {} {} {}\n",
        line.time.get(11..23).unwrap_or(&line.time),
        line.status,
        line.method,
        line.operation,
        line.ms,
        line.bytes_in,
        line.bytes_out,
        // A name may hold anything; a terminal must not.
        path.join("/").escape_debug(),
        line.code.as_deref().unwrap_or("-"),
        line.request_id,
        line.client_request_id.as_deref().unwrap_or("-").escape_debug(),
    )
}

/// Runs `blockyard fault`.
///
/// # Errors
/// [`NodeError`].
pub async fn fault(command: &FaultCommand) -> Result<(), NodeError> {
    match command {
        FaultCommand::Set(args) => {
            let rule = json!(rule(args)?);
            let client = AdminClient::new(&args.admin)?;
            let set = client.call(Method::POST, "/admin/faults", Some(&rule)).await?;
            if args.json {
                return print(&format!("{set}\n"));
            }
            print(&format!(
                "fault rule {} is on; `blockyard fault clear` ends it\n",
                set["id"].as_u64().unwrap_or_default()
            ))
        }
        FaultCommand::List(args) => {
            let client = AdminClient::new(&args.admin)?;
            let list = client.call(Method::GET, "/admin/faults", None).await?;
            if args.json {
                return print(&format!("{list}\n"));
            }
            let rules: Vec<FaultState> =
                serde_json::from_value(list).map_err(|error| ClientError::Refused {
                    code: "Version".to_owned(),
                    message: format!("this node's answer is of another version: {error}"),
                })?;
            print(&rules.iter().map(rule_line).collect::<String>())?;
            if rules.is_empty() { print("no fault rules: the dial is off\n") } else { Ok(()) }
        }
        FaultCommand::Clear(args) => {
            let client = AdminClient::new(&args.admin)?;
            let path = match args.id {
                Some(id) => format!("/admin/faults/{id}"),
                None => "/admin/faults".to_owned(),
            };
            let cleared = client.call(Method::DELETE, &path, None).await?;
            if args.json {
                return print(&format!("{cleared}\n"));
            }
            let count = cleared["cleared"].as_u64().unwrap_or_default();
            print(&format!("{count} fault rules cleared\n"))
        }
    }
}

/// The rule, checked before it is sent.
fn rule(args: &FaultSetArgs) -> Result<FaultRule, FaultError> {
    let pace = args.bytes_per_second.bytes();
    let rule = FaultRule {
        kind: args.kind,
        operations: args.operation.clone(),
        accounts: args.account.clone(),
        containers: args.container.clone(),
        rate: args.rate,
        seed: args.seed,
        count: args.count,
        seconds: args.seconds,
        delay_ms: args.delay_ms,
        bytes_per_second: u32::try_from(pace).map_err(|_| FaultError::Pace(pace))?,
    };
    rule.check()?;
    Ok(rule)
}

fn rule_line(state: &FaultState) -> String {
    let all = |names: &[String], what: &str| match names {
        [] => format!("every {what}"),
        names => names.join(","),
    };
    let rule = &state.rule;
    format!(
        "{:4}  {:8} rate {:<6} seed {:<6} struck {} of {}  {}, {}, {}\n",
        state.id,
        rule.kind.word(),
        rule.rate,
        rule.seed,
        state.struck,
        state.matched,
        all(&rule.operations, "operation"),
        all(&rule.accounts, "account"),
        all(&rule.containers, "container"),
    )
}

/// The pairs that have a value, as a query.
pub(super) fn form_urlencoded(pairs: &[(&str, Option<String>)]) -> String {
    let given = pairs.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        let escaped =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        Some(format!("{name}={escaped}"))
    });
    given.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_people_hold_no_control_characters() {
        let line = json!({
            "time": "2026-11-21T08:00:00.123Z", "method": "PUT", "operation": "PutBlob", "account": "acct",
            "container": "c", "blob": "a\u{1b}[31m\nb", "status": 503, "code": "ServerBusy", "ms": 1.25,
            "bytes_in": 7, "bytes_out": 9, "client": "127.0.0.1:1", "client_request_id": null,
            "request_id": "r", "scheme": "http",
        });
        let text = shown(&line.to_string());
        assert!(text.starts_with("08:00:00.123 503 PUT "), "{text}");
        assert!(text.contains(r"acct/c/a\u{1b}[31m\nb  ServerBusy r -"), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
        assert!(shown(r#"{"lost":12}"#).contains("12 requests not shown"));
    }

    #[test]
    fn queries_hold_what_is_given() {
        let pairs = [("a", Some("x y&z".to_owned())), ("b", None), ("c", Some("5xx".to_owned()))];
        assert_eq!(form_urlencoded(&pairs), "a=x%20y%26z&c=5xx");
    }
}
