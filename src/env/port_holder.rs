//! Finds the process that listens on a port.

use std::fs;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::path::Path;

use super::lock_holder::process_name;

/// The state of a listening socket in the files of proc_net(5).
const LISTENS: &str = "0A";

/// Names the process whose socket prevents others from listening on an address, such as `process 17
/// (blockyard)`, so that the operator can stop it. `None` if the system does not say: it shows the
/// sockets of other users to root only. Linux only (proc_net(5), `/proc/PID/fd`).
#[must_use]
pub fn port_holder(address: SocketAddr) -> Option<String> {
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let mut sockets = sockets.iter().flatten().flat_map(|sockets| find(sockets, address));
    sockets.find_map(|socket| process_of(&format!("socket:[{socket}]"))).map(process_name)
}

/// The inodes of listening sockets that prevent a listener on `address`. Lines look like `0:
/// 0100007F:2710 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 ...`.
fn find(sockets: &str, address: SocketAddr) -> Vec<u64> {
    let socket = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENS, _, _, _, _, _, inode, ..] = words[..] else { return None };
        let (ip, port) = local.split_once(':')?;
        let same_port = u16::from_str_radix(port, 16) == Ok(address.port());
        (same_port && collide(ip_of(ip)?, address.ip())).then(|| inode.parse().ok()).flatten()
    };
    sockets.lines().filter_map(socket).collect()
}

/// Parses an address as the kernel prints it: words of 32 bits, each printed as a number in this
/// machine's byte order, while its bytes are in network order.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Whether two sockets cannot listen on the same port of both addresses. `::` covers the addresses
/// of both families, `0.0.0.0` those of its own.
fn collide(one: IpAddr, other: IpAddr) -> bool {
    let takes = |all: IpAddr, one: IpAddr| match all {
        IpAddr::V4(all) => all.is_unspecified() && one.is_ipv4(),
        IpAddr::V6(all) => all.is_unspecified(),
    };
    let (one, other) = (one.to_canonical(), other.to_canonical());
    one == other || takes(one, other) || takes(other, one)
}

/// The process that has this socket or file open.
fn process_of(open: &str) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        targets.any(|target| target == Path::new(open))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_by_port_and_address() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let loopback = word([127, 0, 0, 1]);
        let (zeros, one) = (word([0; 4]), word([0, 0, 0, 1]));
        let line = |local: &str, state: &str, inode: u64| {
            format!(" 0: {local} 0:0 {state} 0:0 00:0 0 0 0 {inode} 1 0 100 0\n")
        };
        let v4 = [
            "  sl  local_address rem_address   st ...\n".to_owned(),
            line(&format!("{loopback}:2710"), "01", 5),
            line(&format!("{loopback}:2710"), LISTENS, 6),
            line(&format!("{}:2710", word([10, 0, 0, 7])), LISTENS, 7),
            line(&format!("{zeros}:2711"), LISTENS, 8),
            line("x:2710", LISTENS, 9),
        ]
        .concat();
        let v6 = [
            line(&format!("{}{one}:2710", zeros.repeat(3)), LISTENS, 10),
            line(&format!("{}:2711", zeros.repeat(4)), LISTENS, 11),
        ]
        .concat();
        let all = |address: &str| {
            let address = address.parse().unwrap();
            [find(&v4, address), find(&v6, address)].concat()
        };
        assert_eq!(all("127.0.0.1:10000"), [6]);
        assert_eq!(all("10.0.0.7:10000"), [7]);
        assert_eq!(all("0.0.0.0:10000"), [6, 7], "not `::1`");
        assert_eq!(all("[::]:10000"), [6, 7, 10]);
        assert_eq!(all("10.0.0.9:10001"), [8, 11]);
        assert_eq!(all("[::1]:10000"), [10]);
        assert_eq!(all("127.0.0.1:10002"), [] as [u64; 0]);
    }
}
