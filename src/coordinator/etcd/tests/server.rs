//! An etcd of one test: a process on loopback, with its files in a folder of its own.

#![expect(clippy::disallowed_methods, reason = "runs another program, and waits for it")]

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::net::TcpStream;
use std::process::Child;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// How often the process is asked whether it listens, and the pause between.
const ASKED_MAX: usize = 1000;
const PAUSE: Duration = Duration::from_millis(20);
/// How often it is started with other ports, if another program takes one of them first.
const STARTS_MAX: usize = 3;

/// A member of an etcd; most have no other. Dropped, it ends.
pub(super) struct Etcd {
    child: Child,
    arguments: Vec<String>,
    folder: TempDir,
    scheme: &'static str,
    port: u16,
}

impl Etcd {
    /// Starts one with these further arguments, which may name files of `folder`.
    pub(super) fn start(folder: TempDir, further: &[&str]) -> Self {
        Self::start_all(vec![folder], further).remove(0)
    }

    /// Starts one.
    pub(super) fn new() -> Self {
        Self::start(tempfile::tempdir().unwrap(), &[])
    }

    /// Starts one of three members.
    pub(super) fn three() -> Vec<Self> {
        Self::start_all((0..3).map(|_| tempfile::tempdir().unwrap()).collect(), &[])
    }

    fn start_all(mut folders: Vec<TempDir>, further: &[&str]) -> Vec<Self> {
        for _ in 0..STARTS_MAX {
            let ports: Vec<(u16, u16)> = free_ports(folders.len());
            let names = ports.iter().map(|(_, peer)| format!("m{peer}=http://127.0.0.1:{peer}"));
            let cluster = names.collect::<Vec<_>>().join(",");
            let members = folders.drain(..).zip(&ports);
            let mut members: Vec<Self> = members
                .map(|(folder, ports)| Self::spawn(folder, *ports, &cluster, further))
                .collect();
            if members.iter_mut().all(Self::listens) {
                return members;
            }
            for mut member in members {
                member.kill();
                // What it wrote belongs to other ports.
                let unused = tempfile::tempdir().unwrap();
                let folder = std::mem::replace(&mut member.folder, unused);
                std::fs::remove_dir_all(folder.path().join("data")).ok();
                folders.push(folder);
            }
        }
        panic!("etcd does not start");
    }

    fn spawn(folder: TempDir, (port, peer): (u16, u16), cluster: &str, further: &[&str]) -> Self {
        let is_tls = further.iter().any(|one| one.starts_with("--cert-file"));
        let scheme = if is_tls { "https" } else { "http" };
        let (here, there) =
            (format!("{scheme}://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        let mut arguments = vec![
            format!("--name=m{peer}"),
            format!("--data-dir={}", folder.path().join("data").display()),
            format!("--listen-client-urls={here}"),
            format!("--advertise-client-urls={here}"),
            format!("--listen-peer-urls={there}"),
            format!("--initial-advertise-peer-urls={there}"),
            format!("--initial-cluster={cluster}"),
            "--log-level=warn".to_owned(),
        ];
        arguments.extend(further.iter().map(|one| (*one).to_owned()));
        let child = run(&arguments, &folder);
        Self { child, arguments, folder, scheme, port }
    }

    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// Ends it as a crash would.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again with the files it had.
    pub(super) fn restart(&mut self) {
        self.child = run(&self.arguments, &self.folder);
        assert!(self.listens(), "etcd does not start again");
    }

    /// Waits until it listens. Whether it does: it ends if a port is taken.
    fn listens(&mut self) -> bool {
        for _ in 0..ASKED_MAX {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            thread::sleep(PAUSE);
        }
        false
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn run(arguments: &[String], folder: &TempDir) -> Child {
    let log = File::create(folder.path().join("log")).unwrap();
    let mut command = Command::new("etcd");
    command.args(arguments).stdout(log.try_clone().unwrap()).stderr(log);
    // Not what the settings of the machine say.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
    match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("etcd is not installed: `tests/run install`, or Debian's package etcd-server")
        }
        Err(error) => panic!("etcd cannot be started: {error}"),
    }
}

/// Pairs of ports that nobody uses now.
fn free_ports(pairs: usize) -> Vec<(u16, u16)> {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let held: Vec<_> = (0..pairs).map(|_| (listen(), listen())).collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    held.iter().map(|(client, peer)| (port(client), port(peer))).collect()
}
