//! Waits for the caller before and after the measured part, so that a profiler sees only that part.

use std::io::Write;

/// A moment of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The preparation has ended, and no measured request was sent.
    Begin,
    /// All measured requests were answered, and the server's deferred work has ended.
    End,
}

/// Notifies the caller and waits for a line of standard input. Nothing else runs meanwhile.
///
/// # Errors
/// The caller is gone.
pub(crate) fn hold(workload: &str, moment: Moment) -> Result<(), String> {
    let moment = match moment {
        Moment::Begin => "begin",
        Moment::End => "end",
    };
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::json!({ "hold": moment, "workload": workload }))
        .and_then(|()| out.flush())
        .map_err(|e| e.to_string())?;
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) => Err("the caller went away".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
