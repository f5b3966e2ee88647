//! The interval of the step time.
//!
//! Every operation's estimate has an interval that holds eight of ten real times. Errors inside a family (all matrix
//! products, all element-wise passes) go together, since one model makes them all; families and the host err
//! independently. So the job is replayed with all operations at their low and at their high end, which gives the
//! widest possible change; that is narrowed to what independent families leave of it (the root of the sum of squares
//! over the plain sum); and the change from a faster and a slower host is added in quadrature.

use std::collections::BTreeMap;

use trompe_cluster::{Bound, HostTime, Options, Outcome};
use trompe_results::StepTime;

use super::Simulation;
use crate::SessionError;

/// How much faster and slower the host of the real cluster may be than the one that recorded: assumed, as server
/// processors of neighbouring generations differ by about a third in the speed of one thread.
const HOST_FACTORS: (f64, f64) = (0.7, 1.3);

/// The share of real step times that the interval is meant to hold.
const LEVEL: f64 = 0.8;

/// The step time of `outcome` with its interval.
pub(super) fn step_time(simulation: &Simulation<'_>, outcome: &Outcome) -> Result<StepTime, SessionError> {
    let seconds = simulation.step_seconds(outcome);
    let replay = |bound: Bound, host: HostTime| -> Result<f64, SessionError> {
        let options = Options { bound, host, timeline: None, ..simulation.options.clone() };
        Ok(simulation.step_seconds(&simulation.run(&options)?))
    };
    let host = simulation.options.host;
    let (narrow_low, narrow_high) = narrowing(simulation, outcome);
    let device_low = (seconds - replay(Bound::Low, host)?).max(0.0) * narrow_low;
    let device_high = (replay(Bound::High, host)? - seconds).max(0.0) * narrow_high;
    let (mut host_low, mut host_high) = (0.0, 0.0);
    let factor = simulation.host.factor;
    if let Some(factor) = factor {
        host_low = (seconds - replay(Bound::Expected, HostTime::Scale(factor * HOST_FACTORS.0))?).max(0.0);
        host_high = (replay(Bound::Expected, HostTime::Scale(factor * HOST_FACTORS.1))? - seconds).max(0.0);
    }
    let used = outcome.slowest_rank().used_count;
    let steps = if used == 1 { "one step".to_owned() } else { format!("mean of {used} steps") };
    let host_part = match factor {
        Some(_) => format!(" and a host {:.0} % faster or slower", (HOST_FACTORS.1 - 1.0) * 100.0),
        None => String::new(),
    };
    Ok(StepTime {
        seconds,
        low: seconds - device_low.hypot(host_low),
        high: seconds + device_high.hypot(host_high),
        level: LEVEL,
        basis: format!("{steps}; interval from the kernels' own intervals{host_part}"),
    })
}

/// What remains of the widest change when families err independently, to the low and to the high side.
fn narrowing(simulation: &Simulation<'_>, outcome: &Outcome) -> (f64, f64) {
    let template = simulation.job.ranks[outcome.slowest_rank().rank.index()].template;
    let mut families = BTreeMap::<&str, (f64, f64)>::new();
    let operations = &simulation.job.templates[template].operations;
    for ((operation, priced), used) in
        operations.iter().zip(&simulation.priced[template]).zip(&outcome.operations[template])
    {
        let launches = used.launches as f64;
        let price = priced.price;
        let family = families.entry(operation.descriptor.family()).or_default();
        family.0 += launches * price.time.saturating_sub(price.low).as_secs_f64();
        family.1 += launches * price.high.saturating_sub(price.time).as_secs_f64();
    }
    let narrow = |side: fn(&(f64, f64)) -> f64| {
        let sum: f64 = families.values().map(side).sum();
        let squares: f64 = families.values().map(|family| side(family).powi(2)).sum();
        if sum > 0.0 { squares.sqrt() / sum } else { 1.0 }
    };
    (narrow(|family| family.0), narrow(|family| family.1))
}
