//! A server on the store with thousands of partitions, started once after an orderly stop and once
//! after a kill.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::args::Args;
use crate::many;
use crate::process;
use crate::report::Section;

/// The longest time for a server to become ready.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the scene. Blocks.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<Section, String> {
    let folder = folder.join(many::FOLDER);
    if !folder.exists() {
        return Err("the scene `start` needs the store of `many`: run both".to_owned());
    }
    let mut section = Section {
        about: format!(
            "`blockyard serve` on that store of {} partitions, default settings, at most 4,096 \
             open files.",
            args.count
        ),
        columns: vec!["after a stop".to_owned(), "after kill -9".to_owned()],
        ..Section::default()
    };
    let mut clean = Started::new(args, &folder)?;
    // The second start is on the store of a killed server.
    clean.kill()?;
    let mut killed = Started::new(args, &folder)?;
    let mut row =
        |what: &str, of: &dyn Fn(&Started) -> f64| section.row(what, &[of(&clean), of(&killed)]);
    row("until it serves, s", &|s| s.seconds);
    row("CPU of the start, s", &|s| s.ready.cpu);
    row("work in the background until it is at rest, s", &|s| s.settled.0);
    row("CPU of that work, s", &|s| s.settled.1);
    row("resident memory, MiB", &|s| s.rest.resident);
    row("open files", &|s| s.rest.descriptors);
    row("idle CPU, % of a core", &|s| s.idle);
    row("GET /admin/partitions, KiB", &|s| s.answer.0);
    row("GET /admin/partitions, ms", &|s| s.answer.1);
    killed.kill()?;
    Ok(section)
}

/// A running server and its usage.
struct Started {
    child: Child,
    seconds: f64,
    ready: process::Usage,
    settled: (f64, f64),
    rest: process::Usage,
    idle: f64,
    answer: (f64, f64),
}

impl Started {
    fn new(args: &Args, folder: &Path) -> Result<Self, String> {
        let admin = free_port()?;
        let start = Instant::now();
        let mut child = spawn(folder, &admin)?;
        while get(&admin, "/readyz", "").map_or(true, |answer| !answer.starts_with("HTTP/1.1 200"))
        {
            let ended = child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                return Err(format!("the server does not start: {ended:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let seconds = start.elapsed().as_secs_f64();
        let pid = child.id();
        let ready = process::usage(pid);
        let settled = process::settle(pid, args.settle);
        let before = process::usage(pid);
        std::thread::sleep(Duration::from_secs(args.idle));
        let rest = process::usage(pid);
        let idle = (rest.cpu - before.cpu) / args.idle.max(1) as f64 * 100.0;
        let token =
            std::fs::read_to_string(folder.join("admin-token")).map_err(|e| e.to_string())?;
        let asked = Instant::now();
        let answer = get(&admin, "/admin/partitions", token.trim())?;
        let answer = (answer.len() as f64 / 1_024.0, asked.elapsed().as_secs_f64() * 1_000.0);
        Ok(Self { child, seconds, ready, settled, rest, idle, answer })
    }

    fn kill(&mut self) -> Result<(), String> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|e| e.to_string())
    }
}

fn spawn(folder: &Path, admin: &str) -> Result<Child, String> {
    let log = std::fs::File::create(folder.with_extension("log")).map_err(|e| e.to_string())?;
    // Few open files, as many systems grant by default.
    let serve = "ulimit -n 4096; exec \"$0\" serve --data \"$1\" --blob-listen 127.0.0.1:0 --admin-listen \"$2\"";
    let program = env!("CARGO_BIN_EXE_blockyard");
    let mut command = Command::new("sh");
    command.args(["-c", serve, program]).arg(folder).arg(admin);
    command.stdout(Stdio::null()).stderr(log).spawn().map_err(|e| e.to_string())
}

fn free_port() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.to_string()).map_err(|e| e.to_string())
}

fn get(address: &str, path: &str, token: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).map_err(|e| e.to_string())?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: \
         close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(|e| e.to_string())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
