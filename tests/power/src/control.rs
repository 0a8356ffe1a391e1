//! The socket on which a test makes the file system lose power: a line in, a line out.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;

use crate::filesystem::Shared;
use crate::filesystem::lock;

/// What a line asked for.
enum Answer {
    Line(String),
    End,
}

/// Answers one client after the other until one asks for the end, whose stream is returned: it
/// waits to hear how that went.
///
/// # Errors
/// Of the socket.
pub fn serve(listener: &UnixListener, store: &Shared) -> io::Result<UnixStream> {
    loop {
        let (mut stream, _) = listener.accept()?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        let answer = match carry_out(&line, store) {
            Ok(Answer::Line(text)) => format!("ok {text}\n"),
            Ok(Answer::End) => return Ok(stream),
            Err(error) => format!("error {error}\n"),
        };
        // A client that left does not end the file system.
        let _gone = stream.write_all(answer.as_bytes());
    }
}

fn carry_out(line: &str, store: &Shared) -> Result<Answer, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["forget", mode, seed] => {
            let seed = seed.parse().map_err(|_| format!("no number: '{seed}'"))?;
            let report = lock(store).cut(mode.parse()?, seed);
            Ok(Answer::Line(report.to_string()))
        }
        ["status"] => Ok(Answer::Line(lock(store).status())),
        ["unmount"] => Ok(Answer::End),
        _ => Err("say 'forget forget|torn|reordered SEED', 'status' or 'unmount'".to_owned()),
    }
}
