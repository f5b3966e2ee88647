//! Shared links: hand-computed cases and properties over random networks.

use proptest::prelude::*;
use trompe_base::SimTime;
use trompe_hardware::BytesPerSecond;
use trompe_network::flow::{Flow, FlowError, Link, share};

const FREE: f64 = f64::INFINITY;

fn flow(start_micros: u64, bytes: f64, links: &[u32], limit: f64) -> Flow {
    Flow {
        start: SimTime::from_picos(start_micros * 1_000_000),
        bytes,
        links: links.iter().map(|&link| Link(link)).collect(),
        limit: BytesPerSecond(limit),
    }
}

/// Ends in microseconds on links of so many bytes per microsecond.
fn ends(links: &[f64], flows: &[Flow]) -> Vec<f64> {
    let links: Vec<BytesPerSecond> = links.iter().map(|rate| BytesPerSecond(rate * 1e6)).collect();
    let shared = share(&links, flows).unwrap();
    shared.ends.iter().map(|end| end.as_picos() as f64 / 1e6).collect()
}

#[test]
fn hand_computed() {
    let check = |links: &[f64], flows: &[Flow], expect: &[f64]| {
        let found = ends(links, flows);
        for (found, expect) in found.iter().zip(expect) {
            assert!((found - expect).abs() < 1e-4, "{found} for {expect}");
        }
    };
    // Alone.
    check(&[10.0], &[flow(5, 100.0, &[0], FREE)], &[15.0]);
    check(&[10.0], &[flow(0, 100.0, &[0], 2e6)], &[50.0]);
    check(&[10.0], &[flow(0, 0.0, &[0], FREE)], &[0.0]);
    // Two share until the shorter ends.
    check(&[10.0], &[flow(0, 100.0, &[0], FREE), flow(0, 50.0, &[0], FREE)], &[15.0, 10.0]);
    // One joins half-way.
    check(&[10.0], &[flow(0, 100.0, &[0], FREE), flow(5, 100.0, &[0], FREE)], &[15.0, 20.0]);
    // Incast: three into one receiver of 9, each over its own sender of 10.
    let incast: Vec<Flow> = (1..4).map(|sender| flow(0, 30.0, &[sender, 0], FREE)).collect();
    check(&[9.0, 10.0, 10.0, 10.0], &incast, &[10.0, 10.0, 10.0]);
    // The parking lot: a long flow over both links, a short one on each; each link is halved.
    let lot = [flow(0, 50.0, &[0, 1], FREE), flow(0, 50.0, &[0], FREE), flow(0, 150.0, &[1], FREE)];
    check(&[10.0, 20.0], &lot, &[10.0, 10.0, 10.0]);
    // Oversubscription 2: four senders of 10 behind an uplink of 20.
    let uplink: Vec<Flow> = (1..5).map(|sender| flow(0, 50.0, &[sender, 0], FREE)).collect();
    check(&[20.0, 10.0, 10.0, 10.0, 10.0], &uplink, &[10.0; 4]);
}

#[test]
fn impossible_flows_are_refused() {
    let links = [BytesPerSecond(1.0)];
    let error = share(&links, &[flow(0, 1.0, &[3], FREE)]).unwrap_err();
    assert_eq!(error, FlowError::Link { flow: 0, link: 3, links: 1 });
    let error = share(&[BytesPerSecond(0.0)], &[flow(0, 1.0, &[0], FREE)]).unwrap_err();
    assert_eq!(error, FlowError::Stuck { flow: 0, bytes: 1.0 });
}

fn networks() -> impl Strategy<Value = (Vec<f64>, Vec<Flow>)> {
    proptest::collection::vec(1e9..100e9_f64, 1..6).prop_flat_map(|links| {
        let count = links.len() as u32;
        let crossed = proptest::collection::btree_set(0..count, 1..=count as usize);
        let one = (0..500_u64, 1.0..1e9_f64, crossed, prop_oneof![Just(FREE), 1e9..50e9_f64]);
        let flows = proptest::collection::vec(one, 1..12).prop_map(|flows| {
            flows
                .into_iter()
                .map(|(start, bytes, links, limit)| {
                    flow(start, bytes, &links.into_iter().collect::<Vec<_>>(), limit)
                })
                .collect()
        });
        (Just(links), flows)
    })
}

proptest! {
    #[test]
    fn bytes_are_conserved_and_links_never_exceeded((links, flows) in networks()) {
        let rates: Vec<BytesPerSecond> = links.iter().map(|&rate| BytesPerSecond(rate)).collect();
        let shared = share(&rates, &flows).unwrap();
        for (place, rate) in links.iter().enumerate() {
            let over = |flow: &&Flow| flow.links.contains(&Link(place as u32));
            let bytes: f64 = flows.iter().filter(over).map(|flow| flow.bytes).sum();
            prop_assert!((shared.carried[place] - bytes).abs() <= 1e-6 * bytes.max(1.0));
            // Nothing leaves before the first start nor faster than the link.
            let first = flows.iter().filter(over).map(|flow| flow.start).min();
            let last = flows.iter().zip(&shared.ends).filter(|(flow, _)| over(flow)).map(|(_, end)| *end).max();
            if let (Some(first), Some(last)) = (first, last) {
                let least = bytes / rate;
                prop_assert!(last.since(first).as_secs_f64() >= least * (1.0 - 1e-6) - 1e-11);
            }
        }
        for (flow, end) in flows.iter().zip(&shared.ends) {
            let best = flow.links.iter().map(|link| links[link.0 as usize]).fold(flow.limit.0, f64::min);
            prop_assert!(end.since(flow.start).as_secs_f64() >= flow.bytes / best * (1.0 - 1e-6) - 1e-11);
        }
        // A start or an end each, at most.
        prop_assert!(shared.events <= 2 * flows.len());
    }

    #[test]
    fn faster_links_never_make_the_last_end_later_on_one_link((links, flows) in networks(), factor in 1.0..4.0_f64) {
        // With several links a faster one may favour another flow first; on one shared link, and when all links are
        // faster alike, nobody ends later.
        let slow: Vec<BytesPerSecond> = links.iter().map(|&rate| BytesPerSecond(rate)).collect();
        let fast: Vec<BytesPerSecond> = links.iter().map(|&rate| BytesPerSecond(rate * factor)).collect();
        let same_start: Vec<Flow> =
            flows.iter().map(|flow| Flow { start: SimTime::ZERO, limit: BytesPerSecond(FREE), ..flow.clone() }).collect();
        let before = share(&slow, &same_start).unwrap();
        let after = share(&fast, &same_start).unwrap();
        for (before, after) in before.ends.iter().zip(&after.ends) {
            prop_assert!(after.as_picos() <= before.as_picos() + 100);
        }
        let single: Vec<Flow> = flows.iter().map(|flow| Flow { links: vec![Link(0)], ..flow.clone() }).collect();
        let before = share(&slow[..1], &single).unwrap();
        let after = share(&fast[..1], &single).unwrap();
        for (before, after) in before.ends.iter().zip(&after.ends) {
            prop_assert!(after.as_picos() <= before.as_picos() + 100);
        }
    }

    #[test]
    fn the_order_of_flows_does_not_matter((links, flows) in networks()) {
        let rates: Vec<BytesPerSecond> = links.iter().map(|&rate| BytesPerSecond(rate)).collect();
        let forward = share(&rates, &flows).unwrap();
        let reversed: Vec<Flow> = flows.iter().rev().cloned().collect();
        let backward = share(&rates, &reversed).unwrap();
        for (a, b) in forward.ends.iter().zip(backward.ends.iter().rev()) {
            prop_assert!(a.as_picos().abs_diff(b.as_picos()) <= 100);
        }
    }
}
