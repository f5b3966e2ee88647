//! How the host program's time is modelled: what the user chose, and what calls cost on the simulated host.

use std::fmt;
use std::str::FromStr;

use trompe_base::Duration;
use trompe_cluster::{CallCosts, HostTime};
use trompe_hardware::{Catalogue, HardwareError, HostSheet, resolve_host};

/// The user's choice (`--host`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HostChoice {
    /// The recorded gaps between calls, plus what the real calls cost.
    #[default]
    Measured,
    /// The same time for every call that launches device work, its own cost included.
    Fixed(Duration),
    /// The recorded gaps times a factor, plus what the real calls cost.
    Scale(f64),
    /// The recorded gaps times the ratio of single-thread speeds of the recording machine and the host of this sheet,
    /// plus what calls cost on that host.
    Named(String),
    /// The host takes no time.
    Off,
}

/// A `--host` value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no host model: {reason}; write `measured`, `fixed=44us`, `scale=0.6`, `off`, or a host: {}",
    known_hosts()
)]
pub struct BadHostChoice {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// The names of the built-in host sheets, for messages.
fn known_hosts() -> String {
    Catalogue::builtin().hosts().join(", ")
}

impl FromStr for HostChoice {
    type Err = BadHostChoice;

    fn from_str(text: &str) -> Result<Self, BadHostChoice> {
        let bad = |reason| BadHostChoice { text: text.to_owned(), reason };
        match text.split_once('=') {
            None if text == "measured" => Ok(Self::Measured),
            None if text == "off" => Ok(Self::Off),
            Some(("fixed", value)) => duration(value).map(Self::Fixed).map_err(bad),
            Some(("scale", value)) => match value.parse::<f64>() {
                Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(Self::Scale(factor)),
                _ => Err(bad("the factor must be a number that is not negative")),
            },
            None if text == "fixed" || text == "scale" => Err(bad("its value is missing")),
            None if Catalogue::builtin().host(text).is_ok() || text.ends_with(".toml") => {
                Ok(Self::Named(text.to_owned()))
            }
            _ => Err(bad("there is no such model")),
        }
    }
}

impl fmt::Display for HostChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => f.write_str("measured"),
            Self::Fixed(time) => write!(f, "fixed={}us", time.as_micros_f64()),
            Self::Scale(factor) => write!(f, "scale={factor}"),
            Self::Named(name) => f.write_str(name),
            Self::Off => f.write_str("off"),
        }
    }
}

/// A time with its unit; a bare number counts as microseconds.
fn duration(text: &str) -> Result<Duration, &'static str> {
    const UNITS: [(&str, f64); 4] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1e-6));
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 && value * factor < 1e6 => {
            Ok(Duration::from_secs_f64(value * factor))
        }
        _ => Err("the time must be a number with `ns`, `us`, `ms` or `s`"),
    }
}

/// A choice, worked out for one recording and one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The host whose calls are charged.
    pub sheet: HostSheet,
    /// The same in the replay's terms.
    pub time: HostTime,
    /// Factor on the recorded gaps; `None` when they do not count.
    pub factor: Option<f64>,
    /// How the factor of a named host was found, for people.
    pub reason: Option<String>,
}

impl HostChoice {
    /// Works the choice out for gaps recorded on `processor`; `own` is the host of the simulated cluster.
    ///
    /// # Errors
    /// When the sheet of a named host cannot be had.
    pub fn resolve(&self, processor: Option<&str>, own: &HostSheet) -> Result<Host, HardwareError> {
        let host = |time, factor| Host { sheet: own.clone(), time, factor, reason: None };
        Ok(match self {
            Self::Measured => host(HostTime::Measured, Some(1.0)),
            Self::Fixed(time) => host(HostTime::Fixed(*time), None),
            Self::Scale(factor) => host(HostTime::Scale(*factor), Some(*factor)),
            Self::Off => host(HostTime::Off, None),
            Self::Named(name) => {
                let sheet = resolve_host(name)?;
                let recorded = processor.and_then(|processor| Catalogue::builtin().host_with(processor));
                let speed = recorded.as_ref().map_or(1.0, |host| host.single_thread);
                let factor = speed / sheet.single_thread;
                let on = match &recorded {
                    Some(host) => format!("`{}` ({speed})", host.name),
                    None => format!(
                        "{}, which no sheet knows (taken as 1)",
                        processor.unwrap_or("an unknown processor")
                    ),
                };
                let reason = format!(
                    "single-thread speed of the recording machine {on} over that of `{}` ({})",
                    sheet.name, sheet.single_thread
                );
                Host { sheet, time: HostTime::Scale(factor), factor: Some(factor), reason: Some(reason) }
            }
        })
    }
}

/// Host time of each class of call on a host of `sheet`.
///
/// A library launch (cuBLAS, cuDNN) and a collective end in a kernel launch; what the library itself does before that is
/// taken to be the same on every host ([`LIBRARY_WORK`], [`COLLECTIVE_WORK`]).
#[must_use]
pub fn call_costs(sheet: &HostSheet) -> CallCosts {
    let api = &sheet.api;
    CallCosts {
        launch: api.launch_kernel,
        library_launch: api.launch_kernel + LIBRARY_WORK,
        collective: api.launch_kernel + COLLECTIVE_WORK,
        copy: api.memcpy_async,
        event: api.event_record,
        synchronize: api.synchronize,
        memory: DRIVER_MEMORY,
        pool: POOL_MEMORY,
        graph: api.graph_launch,
    }
}

/// What cuBLAS and cuDNN do on the host before they launch (choosing an algorithm, packing arguments), with warm caches:
/// assumed, within what public traces allow. In a Kineto trace of the HolisticTraceAnalysis samples (128 ranks, rank 0)
/// `aten::mm` takes 25 us beside its launch and `aten::mul` 6 us (lower deciles, profiler attached); part of the
/// difference is the framework's own work, which the recording has already.
pub const LIBRARY_WORK: Duration = Duration::from_micros(4);

/// What NCCL does on the host to enqueue one collective of an existing communicator: assumed. An all-reduce of 8 bytes
/// on a DGX H100 takes 13.7 us in nccl-tests (NVIDIA dgxc-benchmarking), launch and kernel included.
pub const COLLECTIVE_WORK: Duration = Duration::from_micros(5);

/// `cudaMalloc` and `cudaFree` of the framework's segments: the median `cudaMalloc` takes 208 us, 253 us and 335 us in
/// three public Kineto traces (HolisticTraceAnalysis, PARAM), and milliseconds in others.
pub const DRIVER_MEMORY: Duration = Duration::from_micros(200);

/// `cudaMallocAsync` and `cudaFreeAsync` served by a pool that has grown to what the step needs: assumed, as much as
/// other calls that put something on a stream without launching a kernel. No vendor gives a number. That it is small but
/// not free is seen in cuDF's benchmarks (NVIDIA/cudf issue 23464): the two of 362 that allocate 10 000 times a call are
/// the only ones to become clearly slower when a pool in the process gives way to the driver's.
pub const POOL_MEMORY: Duration = Duration::from_micros(2);

/// Where [`call_costs`] come from, for the report.
#[must_use]
pub fn cost_source(sheet: &HostSheet, choice: &HostChoice) -> String {
    match choice {
        HostChoice::Fixed(time) => format!("{time} for every launch, as given with --host"),
        HostChoice::Off => "none: the host takes no time (--host off)".to_owned(),
        HostChoice::Measured | HostChoice::Scale(_) | HostChoice::Named(_) => format!(
            "host sheet `{}`: {} per kernel launch, {} per library launch, {} per copy; {DRIVER_MEMORY} per driver \
             allocation, {POOL_MEMORY} per allocation from a stream-ordered pool (assumed)",
            sheet.name,
            sheet.api.launch_kernel,
            sheet.api.launch_kernel + LIBRARY_WORK,
            sheet.api.memcpy_async
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_written() {
        let check = |text: &str, expect: HostChoice| assert_eq!(text.parse(), Ok(expect));
        check("measured", HostChoice::Measured);
        check("off", HostChoice::Off);
        check("fixed=44us", HostChoice::Fixed(Duration::from_micros(44)));
        check("fixed=44", HostChoice::Fixed(Duration::from_micros(44)));
        check("fixed=1.5ms", HostChoice::Fixed(Duration::from_micros(1_500)));
        check("fixed=800ns", HostChoice::Fixed(Duration::from_nanos(800)));
        check("scale=0.6", HostChoice::Scale(0.6));
        check("epyc-9654-x2", HostChoice::Named("epyc-9654-x2".into()));
        check("mine.toml", HostChoice::Named("mine.toml".into()));
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        let check = |text: &str, expect: &str| {
            let error = text.parse::<HostChoice>().unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check("fast", "no such model");
        check("fast", "epyc-7742-x2");
        check("fixed", "its value is missing");
        check("fixed=-1us", "must be a number with");
        check("fixed=1e99s", "must be a number with");
        check("scale=x", "must be a number that is not negative");
        check("scale=-1", "must be a number that is not negative");
    }

    #[test]
    fn what_is_displayed_is_read_back() {
        for text in ["measured", "off", "fixed=44us", "fixed=0.5us", "scale=0.6", "xeon-8358-x2"] {
            assert_eq!(text.parse::<HostChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn named_hosts_scale_by_their_single_thread_speeds() {
        let own = trompe_hardware::resolve("h100-sxm").unwrap().node.host;
        let choice = HostChoice::Named("xeon-8358-x2".into());
        let check = |processor: &str, expect: f64| {
            let host = choice.resolve(Some(processor), &own).unwrap();
            assert!((host.factor.unwrap() - expect).abs() < 1e-9, "{host:?}");
            assert_eq!(host.sheet.name, "xeon-8358-x2");
        };
        check("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", 1.0);
        check("AMD EPYC 9654 96-Core Processor", 1.46 / 1.18);
        check("Some Processor", 1.0 / 1.18);
        let host = HostChoice::Named("none.toml".into()).resolve(None, &own);
        assert!(host.is_err());
        assert_eq!(HostChoice::Measured.resolve(None, &own).unwrap().sheet, own);
    }

    #[test]
    fn an_allocation_from_a_pool_is_none_of_the_driver() {
        let sheet = trompe_hardware::resolve("h100-sxm").unwrap().node.host;
        let costs = call_costs(&sheet);
        assert!(costs.pool * 50 < costs.memory, "{costs:?}");
        let source = cost_source(&sheet, &HostChoice::Measured);
        assert!(source.contains("2.00 us per allocation from a stream-ordered pool (assumed)"), "{source}");
    }
}
