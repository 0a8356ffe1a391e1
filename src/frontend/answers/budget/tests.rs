use bytes::Bytes;

use super::*;
use crate::env::SimClock;
use crate::frontend::answers::AnswerMemory;
use crate::protocol::model::Reason;
use crate::types::AccountId;

const MIB: u64 = 1 << 20;

fn payer(account: u64, peer: &str, known: bool) -> Payer {
    Payer { account: AccountId::new(account), peer: peer.parse().unwrap(), known }
}

fn budget(max: u64) -> Arc<AnswerBudget> {
    AnswerBudget::new(max, Arc::new(SimClock::new()))
}

#[tokio::test(start_paused = true)]
async fn bytes_are_held_until_the_last_part_of_them_is_dropped() {
    let budget = budget(128 * MIB);
    let one = payer(1, "127.0.0.1", true);
    let held = budget.begin(one, MIB, PATIENCE).await.unwrap();
    let content = Bytes::from(vec![7; 1 << 20]);
    let mut pieces = held.count(vec![content.slice(..9), content.slice(9..)]);
    let last = pieces.pop_back().unwrap().slice(100..200);
    drop(pieces);
    assert_eq!((budget.taken(), last.len()), (MIB, 100));
    drop(last);
    assert_eq!(budget.taken(), 0);
    assert_eq!(budget.accounts.of(one.share()), 0);
}

#[tokio::test(start_paused = true)]
async fn steps_are_small_when_little_is_free_so_that_many_can_have_one() {
    let budget = budget(128 * MIB);
    let one = payer(1, "127.0.0.1", false);
    assert_eq!(budget.step_bytes(one), MIB);
    let mut all = Vec::new();
    while let Some(held) = budget.try_take(one, budget.step_bytes(one)) {
        all.push(held);
    }
    assert!(all.len() > 1_000, "{}", all.len());
    assert!(budget.taken() <= 96 * MIB, "a quarter is kept for who says who they are");
    let known = payer(1, "127.0.0.1", true);
    assert_eq!((budget.step_bytes(one), budget.step_bytes(known)), (16 << 10, 128 << 10));
    assert!(budget.try_take(known, 8 * MIB).is_some());
}

#[tokio::test(start_paused = true)]
async fn peers_share_what_anybody_may_read() {
    let budget = budget(4 * MIB);
    let first = budget.try_take(payer(1, "2001:db8::1", false), STEP_MIN_BYTES);
    drop(first);
    let mut all = Vec::new();
    while let Some(held) = budget.try_take(payer(1, "2001:db8::2", false), STEP_MIN_BYTES) {
        all.push(held);
    }
    assert_eq!(budget.taken(), 3 * MIB, "one network is one peer, and it is alone");
    drop(all);
    let mut all = Vec::new();
    let other = budget.try_take(payer(1, "2001:db8:0:1::1", false), STEP_MIN_BYTES).unwrap();
    while let Some(held) = budget.try_take(payer(1, "2001:db8::2", false), STEP_MIN_BYTES) {
        all.push(held);
    }
    assert_eq!(budget.taken(), 3 * MIB * 3 / 4, "another is about");
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_served_in_order_or_refused_before_their_head() {
    let budget = budget(4 * MIB);
    let one = payer(1, "127.0.0.1", true);
    let first = budget.begin(one, 4 * MIB, PATIENCE).await.unwrap();
    let clock = Arc::clone(&budget.clock);
    let begun = clock.monotonic();
    let refused = budget.begin(one, MIB, PATIENCE).await.unwrap_err();
    assert_eq!((refused.reason, clock.monotonic() - begun), (Reason::ServerBusy, PATIENCE));
    assert!(!budget.is_short(true), "who gave up waits no more");
    let frees = async {
        clock.sleep(Duration::from_secs(60)).await;
        drop(first);
    };
    let (large, small, ()) = tokio::join!(budget.wait(one, 3 * MIB), budget.wait(one, MIB), frees);
    assert_eq!(budget.taken(), 4 * MIB);
    drop((large, small));
    assert_eq!((budget.taken(), budget.is_short(true)), (0, false));
}

#[tokio::test(start_paused = true)]
async fn who_has_its_share_does_not_stand_in_the_way_of_others() {
    let budget = budget(4 * MIB);
    let (one, two) = (payer(1, "127.0.0.1", true), payer(2, "127.0.0.1", true));
    drop(budget.begin(two, MIB, PATIENCE).await.unwrap());
    let most = budget.begin(one, 3 * MIB, PATIENCE).await.unwrap();
    let (greedy, modest) = (budget.begin(one, MIB, PATIENCE), budget.begin(two, MIB, PATIENCE));
    let (greedy, modest) = tokio::join!(greedy, modest);
    assert!(greedy.is_err() && modest.is_ok());
    drop((most, modest));
    assert_eq!(budget.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn many_wishes_of_one_that_has_its_share_do_not_hide_others() {
    let budget = budget(4 * MIB);
    let (one, two) = (payer(1, "127.0.0.1", true), payer(2, "127.0.0.1", true));
    let first = budget.begin(one, 3 * MIB, PATIENCE).await.unwrap();
    let rest = budget.begin(two, MIB, PATIENCE).await.unwrap();
    let greedy = futures_util::future::join_all((0..100).map(|_| budget.begin(one, MIB, PATIENCE)));
    let modest = async {
        budget.clock.sleep(Duration::from_millis(1)).await;
        let waits = budget.begin(two, MIB, PATIENCE);
        let frees = async { drop(rest) };
        tokio::join!(waits, frees).0
    };
    let (greedy, modest) = tokio::join!(greedy, modest);
    assert!(greedy.iter().all(Result::is_err) && modest.is_ok());
    drop((first, modest));
    assert_eq!((budget.taken(), budget.is_short(true)), (0, false));
}

#[tokio::test(start_paused = true)]
async fn what_turns_out_smaller_gives_the_rest_back() {
    let budget = budget(4 * MIB);
    let one = payer(1, "127.0.0.1", true);
    let mut held = budget.begin(one, 4 * MIB, PATIENCE).await.unwrap();
    let shrinks = async {
        held.shrink(MIB);
        held.shrink(2 * MIB);
    };
    let (waited, ()) = tokio::join!(budget.begin(one, 3 * MIB, PATIENCE), shrinks);
    assert_eq!(budget.taken(), 4 * MIB);
    drop((held, waited));
    assert_eq!(budget.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_rendered_is_given_back_as_it_is_taken() {
    let budget = budget(128 * MIB);
    let memory = AnswerMemory::new(&budget, payer(1, "127.0.0.1", true));
    let rendered: Vec<u8> = (0..4 * MIB + 9).map(|n| n.to_le_bytes()[1]).collect();
    let reservation = memory.begin(16 * MIB).await.unwrap();
    let mut pieces = reservation.pieces(Bytes::from(rendered.clone()));
    assert_eq!(budget.taken(), 4 * MIB + 9);
    let mut out = Vec::new();
    while let Some(piece) = pieces.pop_front() {
        assert!(piece.len() <= 64 << 10);
        out.extend_from_slice(&piece);
        drop(piece);
        let left = (rendered.len() - out.len()) as u64;
        assert_eq!((budget.taken(), memory.holding().bytes()), (left, left));
    }
    assert_eq!(out, rendered);
}
