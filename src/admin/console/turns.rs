//! The turns of log-ins. Their clients are not known yet, so each address has a share of them: a
//! client that sends slowly, or never, does not keep those at other addresses from logging in.
//! Clients behind one proxy share its turns, and clients at four addresses can take all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use axum::extract::Request;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;

use crate::admin::audit_log::ClientAddress;
use crate::admin::work::busy;
use crate::frontend::connections::PeerKey;

/// Log-ins and log-outs at a time.
const TURNS_MAX: usize = 16;
/// Those of one address, or of one IPv6 network of 64 bits.
const PEER_TURNS_MAX: usize = 4;

/// The turns that are taken, by peer. Clones share them. A request without an address counts as one
/// of the peer `None`.
#[derive(Clone, Debug, Default)]
pub(in crate::admin) struct Turns(Arc<Mutex<HashMap<Option<PeerKey>, usize>>>);

/// A turn. It is given back when this is dropped.
#[derive(Debug)]
struct Turn {
    turns: Turns,
    peer: Option<PeerKey>,
}

impl Turns {
    fn taken(&self) -> MutexGuard<'_, HashMap<Option<PeerKey>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for a client at this address, if there is one.
    fn take(&self, address: Option<IpAddr>) -> Option<Turn> {
        let peer = address.map(PeerKey::of);
        let mut taken = self.taken();
        let of_peer = taken.get(&peer).copied().unwrap_or_default();
        if of_peer >= PEER_TURNS_MAX || taken.values().sum::<usize>() >= TURNS_MAX {
            return None;
        }
        taken.insert(peer, of_peer + 1);
        drop(taken);
        Some(Turn { turns: self.clone(), peer })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = self.turns.taken();
        let left = taken.get(&self.peer).map_or(0, |of_peer| of_peer.saturating_sub(1));
        match left {
            0 => drop(taken.remove(&self.peer)),
            _ => drop(taken.insert(self.peer, left)),
        }
    }
}

/// Refuses log-ins beyond the limits. A turn ends when the answer is there.
pub(in crate::admin) async fn in_turn(
    State(turns): State<Turns>,
    request: Request,
    next: Next,
) -> Response {
    let address = request.extensions().get::<ClientAddress>().map(|client| client.0.ip());
    let Some(turn) = turns.take(address) else { return busy().into_response() };
    let response = next.run(request).await;
    drop(turn);
    response
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    fn at(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn one_address_cannot_take_all_turns() {
        let turns = Turns::default();
        let mut slow: Vec<_> = (0..100).map_while(|_| turns.take(at("192.0.2.1"))).collect();
        assert_eq!(slow.len(), PEER_TURNS_MAX);
        let other = turns.take(at("192.0.2.2"));
        assert!(other.is_some(), "another address has its own turns");
        slow.pop();
        assert!(turns.take(at("192.0.2.1")).is_some(), "a turn was given back");
    }

    #[tokio::test]
    async fn a_request_takes_a_turn_of_its_address() {
        let turns = Turns::default();
        let routes = Router::new().route("/", get(|| async { "in" }));
        let routes = routes.layer(from_fn_with_state(turns.clone(), in_turn));
        let status_at = async |address: &str| {
            let client = ClientAddress(format!("{address}:9").parse().unwrap());
            let request = Request::builder().extension(client).body(Body::empty()).unwrap();
            routes.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        let slow: Vec<_> = (0..100).map_while(|_| turns.take(at("192.0.2.1"))).collect();
        assert_eq!((status_at("192.0.2.1").await, status_at("192.0.2.2").await), (503, 200));
        drop(slow);
        assert_eq!(status_at("192.0.2.1").await, 200);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let turns = Turns::default();
        let address = |host: usize| at(&format!("2001:db8:1:2::{host:x}"));
        let slow: Vec<_> = (1..100).map_while(|host| turns.take(address(host))).collect();
        assert_eq!(slow.len(), PEER_TURNS_MAX);
        assert!(turns.take(at("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn turns_of_all_addresses_are_bounded_and_forgotten() {
        let turns = Turns::default();
        let address = |host: usize| at(&format!("192.0.2.{host}"));
        let slow: Vec<_> = (0..100).map_while(|host| turns.take(address(host))).collect();
        assert_eq!((slow.len(), turns.taken().len()), (TURNS_MAX, TURNS_MAX));
        drop(slow);
        assert_eq!(turns.taken().len(), 0);
        assert!(turns.take(None).is_some());
    }
}
