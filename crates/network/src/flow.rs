//! Transfers that overlap on links: each gets its max-min fair share.
//!
//! A [`Flow`] is a number of bytes over a set of links, one rate on all of them; a collective is one flow per link it
//! uses, or one over all. At every moment the rates are max-min fair: no flow can get more without taking from one that
//! has no more (Bertsekas and Gallager, "Data Networks", 6.5.2, progressive filling). Rates change only when a flow
//! starts or ends, so those are the only moments looked at, however many bytes there are.
//!
//! [`share`] does this for a list of transfers at once; [`speeds`] says how fast operations are that are under way together,
//! for whoever keeps the time.
//!
//! Bytes and rates are floats; a flow ends when what is left would take less than a picosecond.

mod fair;
mod load;

use trompe_base::{Duration, SimTime};
use trompe_hardware::BytesPerSecond;

use fair::User;
pub use load::{Load, speeds};

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

/// The max-min fair rate of each active flow in bytes per second.
fn rates(links: &[BytesPerSecond], flows: &[Flow], active: &[usize]) -> Vec<f64> {
    let capacities: Vec<f64> = links.iter().map(|link| link.0).collect();
    let user = |&flow: &usize| User {
        limit: flows[flow].limit.0,
        links: flows[flow].links.iter().map(|link| (link.0 as usize, 1.0)).collect(),
    };
    let users: Vec<User> = active.iter().map(user).collect();
    fair::rates(&capacities, &users)
}
