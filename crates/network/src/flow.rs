//! Transfers that overlap on links: each gets its max-min fair share.
//!
//! A [`Flow`] is a number of bytes over a set of links, one rate on all of them; a collective is one flow per link it
//! uses, or one over all. At every moment the rates are max-min fair: no flow can get more without taking from one that
//! has no more (Bertsekas and Gallager, "Data Networks", 6.5.2, progressive filling). Rates change only when a flow
//! starts or ends, so those are the only moments looked at, however many bytes there are.
//!
//! Bytes and rates are floats; a flow ends when what is left would take less than a picosecond.

use trompe_base::{Duration, SimTime};
use trompe_hardware::BytesPerSecond;

/// A link, by its place in the list that [`share`] is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u32);

/// A transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// When its first byte may leave.
    pub start: SimTime,
    /// How much.
    pub bytes: f64,
    /// The links that it crosses, each once.
    pub links: Vec<Link>,
    /// What its ends can do at most.
    pub limit: BytesPerSecond,
}

/// What became of the flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    /// When each flow's last byte arrives, in their order.
    pub ends: Vec<SimTime>,
    /// Bytes that each link carried, in their order.
    pub carried: Vec<f64>,
    /// Moments at which rates changed.
    pub events: usize,
}

/// Why flows cannot be shared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FlowError {
    /// A link that is not in the list.
    #[error("flow {flow} crosses link {link}, but there are {links} links; number links from 0")]
    Link {
        /// Which flow.
        flow: usize,
        /// Which link.
        link: u32,
        /// How many there are.
        links: usize,
    },
    /// A flow that can never end.
    #[error("flow {flow} has {bytes} bytes left and no rate; give every link and flow a rate above zero")]
    Stuck {
        /// Which flow.
        flow: usize,
        /// What is left.
        bytes: f64,
    },
}

/// Lets `flows` share `links`, the rate of each.
///
/// # Errors
/// When a flow names an unknown link or can never end.
pub fn share(links: &[BytesPerSecond], flows: &[Flow]) -> Result<Shared, FlowError> {
    for (flow, Flow { links: crossed, .. }) in flows.iter().enumerate() {
        if let Some(link) = crossed.iter().find(|link| link.0 as usize >= links.len()) {
            return Err(FlowError::Link { flow, link: link.0, links: links.len() });
        }
    }
    let mut starts: Vec<usize> = (0..flows.len()).collect();
    starts.sort_by_key(|&flow| (flows[flow].start, flow));
    let mut starts = starts.into_iter().peekable();
    let mut shared =
        Shared { ends: vec![SimTime::ZERO; flows.len()], carried: vec![0.0; links.len()], events: 0 };
    let mut left: Vec<f64> = flows.iter().map(|flow| flow.bytes.max(0.0)).collect();
    let mut active: Vec<usize> = Vec::new();
    let mut now = SimTime::ZERO;
    loop {
        if active.is_empty() {
            let Some(&next) = starts.peek() else { return Ok(shared) };
            now = now.max(flows[next].start);
        }
        while let Some(flow) = starts.next_if(|&flow| flows[flow].start <= now) {
            active.push(flow);
        }
        shared.events += 1;
        let rates = rates(links, flows, &active);
        // The next moment at which a flow ends or starts.
        let mut wait = f64::INFINITY;
        for (&flow, rate) in active.iter().zip(&rates) {
            if left[flow] > 0.0 && *rate <= 0.0 {
                return Err(FlowError::Stuck { flow, bytes: left[flow] });
            }
            wait = wait.min(if left[flow] > 0.0 { left[flow] / rate } else { 0.0 });
        }
        let mut then = now + Duration::from_secs_f64(wait);
        let mut passed = wait;
        if let Some(&next) = starts.peek()
            && flows[next].start < then
        {
            then = flows[next].start;
            passed = then.since(now).as_secs_f64();
        }
        for (&flow, rate) in active.iter().zip(&rates) {
            let sent = (rate * passed).min(left[flow]);
            // What would take less than a picosecond goes along.
            let rest = if left[flow] - sent <= rate * 1e-12 { 0.0 } else { left[flow] - sent };
            for link in &flows[flow].links {
                shared.carried[link.0 as usize] += left[flow] - rest;
            }
            left[flow] = rest;
        }
        now = then;
        active.retain(|&flow| {
            if left[flow] == 0.0 {
                shared.ends[flow] = now;
            }
            left[flow] > 0.0
        });
    }
}

/// The max-min fair rate of each active flow in bytes per second, by progressive filling: all rates rise together until
/// a link or a flow's own limit is full; those flows stay, the others rise on.
fn rates(links: &[BytesPerSecond], flows: &[Flow], active: &[usize]) -> Vec<f64> {
    let mut rates = vec![0.0; active.len()];
    let mut open: Vec<usize> = (0..active.len()).collect();
    let mut free: Vec<f64> = links.iter().map(|link| link.0).collect();
    let mut users = vec![0_u32; links.len()];
    let mut level = 0.0;
    for &flow in active {
        for link in &flows[flow].links {
            users[link.0 as usize] += 1;
        }
    }
    while !open.is_empty() {
        let by_link = |link: usize| free[link].max(0.0) / f64::from(users[link]);
        let least_link =
            (0..links.len()).filter(|&link| users[link] > 0).map(by_link).fold(f64::INFINITY, f64::min);
        let own = |&place: &usize| (flows[active[place]].limit.0 - level).max(0.0);
        let rise = open.iter().map(own).fold(least_link, f64::min);
        if !rise.is_finite() {
            // No link and no limit: as fast as anything can be told.
            open.iter().for_each(|&place| rates[place] = f64::MAX);
            return rates;
        }
        level += rise;
        for (link, free) in free.iter_mut().enumerate() {
            *free -= rise * f64::from(users[link]);
        }
        // A link is full when what is left is rounding.
        let full: Vec<bool> =
            (0..links.len()).map(|link| users[link] > 0 && free[link] <= links[link].0 * 1e-12).collect();
        let mut closed = false;
        open.retain(|&place| {
            let flow = &flows[active[place]];
            let stays =
                flow.limit.0 <= level * (1.0 + 1e-12) || flow.links.iter().any(|link| full[link.0 as usize]);
            if stays {
                rates[place] = level;
                closed = true;
                flow.links.iter().for_each(|link| users[link.0 as usize] -= 1);
            }
            !stays
        });
        debug_assert!(closed, "every rise fills a link or a limit");
        if !closed {
            open.iter().for_each(|&place| rates[place] = level);
            return rates;
        }
    }
    rates
}
