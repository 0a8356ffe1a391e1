//! Log lines: written to standard error, as text for people or as JSON lines for machines. A line
//! about a request ends with its id, `request`, and, if its client has a trace, that trace's id,
//! `trace`.

use std::fmt;
use std::io;
use std::io::IsTerminal;

use serde::Deserialize;
use thiserror::Error;
use tracing::Event;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::FormatEvent;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::DefaultFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::types::request;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why logging cannot start.
#[derive(Debug, Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("{0}")]
    Filter(#[from] ParseError),
    /// Logging was already started in this process.
    #[error("logging was already started in this process")]
    Taken,
}

/// Starts writing log lines that pass `filter` (such as `info` or `info,blockyard::index=debug`) to
/// standard error.
///
/// # Errors
/// [`LogError`].
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => lines.fmt_fields(TextFields).finish().try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            let lines = lines.with_current_span(false).with_span_list(false);
            lines.map_event_format(JsonLines).finish().try_init()
        }
    };
    started.map_err(|_| LogError::Taken)
}

/// Whether `filter` parses.
///
/// # Errors
/// [`LogError::Filter`].
pub fn check_filter(filter: &str) -> Result<(), LogError> {
    EnvFilter::try_new(filter)?;
    Ok(())
}

/// The fields of a text line, with the id of the request that it is about.
#[derive(Debug)]
pub(super) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        DefaultFields::new().format_fields(writer.by_ref(), fields)?;
        if let Some(id) = request::current() {
            write!(writer, " request={id}")?;
        }
        match request::current_trace() {
            Some(trace) => write!(writer, " trace={trace}"),
            None => Ok(()),
        }
    }
}

/// The JSON objects of the inner format, each with the id of the request that it is about.
#[derive(Debug)]
struct JsonLines<F>(F);

impl<S, N, F> FormatEvent<S, N> for JsonLines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(id) = request::current() else {
            return self.0.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(open) => {
                write!(writer, "{open},\"request\":\"{id}\"")?;
                if let Some(trace) = request::current_trace() {
                    write!(writer, ",\"trace\":\"{trace}\"")?;
                }
                writer.write_str("}\n")
            }
            None => writer.write_str(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::telemetry::CapturedLog;
    use crate::types::TraceParent;
    use crate::types::request::CurrentRequest;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn lines_about_a_request_carry_its_id() {
        let id = Uuid::from_u128(17);
        let (text, json) = (CapturedLog::default(), CapturedLog::default());
        let warned = |name: &'static str| tracing::warn!(size = 3, name, "warned");
        let tell = || {
            let mut with_trace = Some(CurrentRequest {
                trace: TraceParent::parse(format!("00-{TRACE}-00f067aa0ba902b7-00").as_bytes()),
                ..CurrentRequest::of(id)
            });
            {
                let _entered = request::enter(Some(id));
                warned("within");
            }
            {
                let _entered = request::exchange(&mut with_trace);
                warned("traced");
            }
            warned("without");
        };
        {
            let _kept = text.begin();
            tell();
        }
        {
            let own = json.clone();
            let lines = tracing_subscriber::fmt().with_writer(move || own.clone());
            let lines = lines.json().flatten_event(true).map_event_format(JsonLines);
            let _kept = tracing::subscriber::set_default(lines.finish());
            tell();
        }
        let last = format!("size=3 name=\"within\" request={id}\n");
        assert!(text.text().contains(&last), "{}", text.text());
        let last = format!("size=3 name=\"traced\" request={id} trace={TRACE}\n");
        assert!(text.text().contains(&last), "{}", text.text());
        assert_eq!((text.lines_with(&["request="]), text.lines_with(&["trace="])), (2, 1));
        let objects: Vec<serde_json::Value> =
            json.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |object: &serde_json::Value| {
            let part = |name| object.get(name).and_then(|part| part.as_str()).map(str::to_owned);
            [part("name"), part("request"), part("trace")]
        };
        let text = |text: &str| Some(text.to_owned());
        let id = Some(id.to_string());
        let expected = [
            [text("within"), id.clone(), None],
            [text("traced"), id, text(TRACE)],
            [text("without"), None, None],
        ];
        assert_eq!(objects.iter().map(of).collect::<Vec<_>>(), expected);
    }
}
