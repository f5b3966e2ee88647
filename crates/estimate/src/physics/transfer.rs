//! Copies and fills.

use trompe_trace::descriptor::{Copy, Place, Set};

use super::{Bench, streaming};
use crate::{Basis, Estimate};

pub(super) fn copy(copy: &Copy, bench: Bench<'_>) -> Estimate {
    let c = &bench.constants.transfer;
    let bytes = copy.bytes.as_f64();
    let links = &bench.device.interconnect;
    let over = |rate: f64, method: &'static str| {
        Estimate::new(c.latency_us * 1e-6 + bytes / rate, c.spread, method, Basis::Assumed)
    };
    let host = links.pcie_bandwidth.0 * c.link;
    match (copy.from, copy.to) {
        (Place::Device, Place::Device) => {
            let family = bench.constants.streaming("copy");
            let time = streaming::seconds(2.0 * bytes, family, bench);
            Estimate::new(time, family.spread, "physics.copy.device", family.basis)
        }
        (Place::Pageable, _) | (_, Place::Pageable) => over(host.min(c.pageable), "physics.copy.pageable"),
        (Place::Pinned, _) | (_, Place::Pinned) => over(host, "physics.copy.pinned"),
        (Place::Peer, _) | (_, Place::Peer) => {
            let peer = if links.nvlink_links > 0 { links.nvlink_bandwidth.0 * c.link } else { host };
            over(peer, "physics.copy.peer")
        }
    }
}

pub(super) fn set(set: &Set, bench: Bench<'_>) -> Estimate {
    let family = bench.constants.streaming("set");
    let time = streaming::seconds(set.bytes.as_f64(), family, bench);
    Estimate::new(time, family.spread, "physics.set", family.basis)
}
