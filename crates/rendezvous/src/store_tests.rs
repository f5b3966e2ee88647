//! Requests and what they are answered.

use trompe_base::UniqueId;

use super::*;

/// A store of which ranks 0 and 5 of 8 exist.
fn partial() -> Store {
    Store::new(Ranks::new(8, &[Rank(0), Rank(5)]))
}

/// A store whose ranks all exist.
fn full() -> Store {
    Store::new(Ranks::new(2, &[Rank(0), Rank(1)]))
}

const NOW: Duration = Duration::from_secs(100);
const LATER: Duration = Duration::from_secs(200);

fn key(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn ask(store: &mut Store, request: Request) -> Vec<u8> {
    let answers = store.handle(1, request, NOW).unwrap();
    answers.into_iter().find(|(to, _)| *to == 1).map(|(_, bytes)| bytes).unwrap_or_default()
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().unwrap())
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_bytes(&mut out, text.as_bytes());
    out
}

fn set(name: &str, value: &str) -> Request {
    Request::Set(key(name), key(value))
}

fn wait(name: &str) -> Request {
    Request::Wait(vec![key(name)])
}

#[test]
fn values_are_kept() {
    let mut store = full();
    assert_eq!(ask(&mut store, set("a", "1")), b"");
    assert_eq!(ask(&mut store, Request::Get(key("a"))), bytes("1"));
    assert_eq!(ask(&mut store, Request::Append(key("a"), key("2"))), b"");
    assert_eq!(
        ask(&mut store, Request::MultiGet(vec![key("a"), key("b")])),
        [bytes("12"), bytes("")].concat()
    );
    assert_eq!(number(&ask(&mut store, Request::CountKeys)), 1);
    assert_eq!(number(&ask(&mut store, Request::Delete(key("a")))), 1);
    assert_eq!(number(&ask(&mut store, Request::Delete(key("a")))), 0);
    assert_eq!(ask(&mut store, Request::ListKeys), 0_u64.to_le_bytes());
    assert_eq!(ask(&mut store, Request::Ping([1, 2, 3, 4])), [1, 2, 3, 4]);
}

#[test]
fn values_are_exchanged_only_as_expected() {
    let mut store = full();
    let mut check = |expected: &str, desired: &str, expect: &str| {
        let request = Request::CompareSet { key: key("n"), expected: key(expected), desired: key(desired) };
        assert_eq!(ask(&mut store, request), bytes(expect));
    };
    check("x", "w", "x");
    check("", "w", "w");
    check("q", "z", "w");
    check("w", "z", "z");
}

#[test]
fn a_wait_ends_when_the_key_is_set() {
    let mut store = full();
    assert_eq!(ask(&mut store, Request::Check(vec![key("k")])), [NOT_READY]);
    assert_eq!(ask(&mut store, wait("k")), b"");
    assert!(store.tick(LATER).is_empty(), "nobody is absent, so nobody is answered for");
    let answers = store.handle(2, set("k", "v"), NOW).unwrap();
    assert_eq!(answers, [(1, vec![STOP_WAITING])]);
    assert_eq!(ask(&mut store, wait("k")), [STOP_WAITING]);
}

#[test]
fn a_wait_can_be_given_up() {
    let mut store = full();
    ask(&mut store, wait("k"));
    assert_eq!(ask(&mut store, Request::CancelWait), [WAIT_CANCELED]);
    assert!(store.handle(2, set("k", "v"), NOW).unwrap().is_empty());
}

#[test]
fn queues_are_first_in_first_out() {
    let mut store = full();
    ask(&mut store, Request::QueuePush(key("q"), key("1")));
    ask(&mut store, Request::QueuePush(key("q"), key("2")));
    assert_eq!(number(&ask(&mut store, Request::QueueLength(key("q")))), 2);
    assert_eq!(ask(&mut store, Request::Check(vec![key("q")])), [READY]);
    let first = [1_u64.to_le_bytes().to_vec(), bytes("1")].concat();
    assert_eq!(ask(&mut store, Request::QueuePop(key("q"))), first);
    ask(&mut store, Request::QueuePop(key("q")));
    assert_eq!(ask(&mut store, Request::QueuePop(key("q"))), 0_u64.to_le_bytes());
}

#[test]
fn counters_count_absent_ranks_at_barriers_only() {
    let mut store = partial();
    let mut check = |name: &str, amount, expect| {
        assert_eq!(number(&ask(&mut store, Request::Add(key(name), amount))), expect, "{name}");
    };
    check("tickets", 2, 2);
    check("tickets", 0, 2);
    check("store_based_barrier_key:0", 1, 7);
    check("store_based_barrier_key:0", 1, 8);
    check("store_based_barrier_key:0", 0, 8);
}

#[test]
fn barriers_wait_for_the_ranks_that_exist() {
    let mut store = partial();
    let barrier = |size| Request::Barrier(key("b"), size);
    assert!(store.handle(1, barrier(8), NOW).unwrap().is_empty());
    let answers = store.handle(2, barrier(8), NOW).unwrap();
    assert_eq!(answers, [(1, vec![STOP_WAITING]), (2, vec![STOP_WAITING])]);
    assert_eq!(ask(&mut store, barrier(8)), [STOP_WAITING], "it stays open");
}

#[test]
fn a_barrier_of_some_ranks_ends_in_silence() {
    let mut store = partial();
    assert!(store.handle(1, Request::Barrier(key("b"), 4), NOW).unwrap().is_empty());
    assert!(store.tick(NOW).is_empty());
    assert_eq!(store.tick(LATER), [(1, vec![STOP_WAITING])]);
}

#[test]
fn absent_ranks_answer_as_their_stand_in() {
    let mut store = partial();
    ask(&mut store, wait("address/7"));
    let answers = store.handle(2, set("address/5", "here"), NOW).unwrap();
    assert_eq!(answers, [(1, vec![STOP_WAITING])]);
    assert_eq!(ask(&mut store, Request::Get(key("address/7"))), bytes("here"));
}

#[test]
fn what_nobody_sets_is_assumed_after_a_silence() {
    let mut store = partial();
    ask(&mut store, wait("plan"));
    assert!(store.tick(NOW + Duration::from_secs(1)).is_empty());
    assert_eq!(store.tick(LATER), [(1, vec![STOP_WAITING])]);
    assert_eq!(store.assumed(), [key("plan")]);
}

#[test]
fn unique_ids_are_made_from_their_key_and_tell_the_members() {
    let mut store = partial();
    let name = "/default_pg/1//cuda//0/nccl_storekey_0_3";
    ask(&mut store, set("/default_pg/1//cuda//trompe_members", "1,3,5,7"));
    assert_eq!(ask(&mut store, wait(name)), [STOP_WAITING]);
    let first = ask(&mut store, Request::Get(key(name)));
    let id = UniqueId::from_bytes(first[8..].try_into().unwrap()).unwrap();
    assert_eq!(id.ranks(), Some(vec![Rank(1), Rank(3), Rank(5), Rank(7)]));
    store.handle(2, Request::Set(key(name), vec![9; UniqueId::BYTES]), NOW).unwrap();
    assert_eq!(ask(&mut store, Request::Get(key(name))), first, "whoever sets it, it is the same");
}

#[test]
fn strangers_are_refused() {
    assert_eq!(full().handle(1, Request::Validate(1), NOW), Err(Refused));
    assert_eq!(full().handle(1, Request::Validate(wire::MAGIC), NOW), Ok(Vec::new()));
}

#[test]
fn the_giver_of_a_unique_id_finds_the_one_that_the_others_get() {
    let board = tempfile::tempdir().unwrap();
    let mut store = full();
    store.set_board(board.path().to_owned());
    let given = [7; UniqueId::BYTES];
    let name = "/default_pg/0//cuda//0";
    store.handle(1, Request::Set(key(name), given.to_vec()), NOW).unwrap();
    let others = ask(&mut store, Request::Get(key(name)));
    let noted = std::fs::read(board.path().join(UniqueId::note(&given))).unwrap();
    assert_eq!(others[8..], noted);
    assert!(UniqueId::from_bytes(noted[..].try_into().unwrap()).is_some());
}
