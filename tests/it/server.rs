//! The real program as a child process, on ports of its own, over a directory of its own.

use std::io::BufRead;
use std::io::BufReader;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::folder::Data;

/// The account that tests sign as.
pub(crate) const ACCOUNT: &str = "acct1";
/// Its key.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Another account of the same server.
pub(crate) const OTHER_ACCOUNT: &str = "acct2";
/// The other account's key.
pub(crate) const OTHER_KEY: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// A running server; killed and its data removed when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    /// Open, so that the rest of the banner meets no closed pipe.
    _stdout: BufReader<ChildStdout>,
    _data: Data,
}

impl Server {
    /// Starts one with further flags and waits until it says that it serves.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let data = Data::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_blockyard"))
            .arg("serve")
            .arg("--data")
            .arg(data.path())
            .args(["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--account", &format!("{ACCOUNT}:{KEY}")])
            .args(["--account", &format!("{OTHER_ACCOUNT}:{OTHER_KEY}")])
            // Open accounts: what is refused for want of a signature is refused for that, not for a
            // closed account.
            .args(["--public-access", "true"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        let (_, rest) = first.split_once(" serves Blob and S3 on ").expect("where Blob is served");
        let address = rest.split(' ').next().unwrap().parse().unwrap();
        Self { address, child, _stdout: stdout, _data: data }
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits until new connections are refused; whether that happened.
    pub(crate) fn refuses_connections(&self) -> bool {
        (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            TcpStream::connect(self.address).is_err()
        })
    }

    /// Whether the process runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end; the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
