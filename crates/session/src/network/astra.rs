//! Collective times from ASTRA-sim's analytical back end.
//!
//! For each distinct collective (operation, bytes, shape of its group) the program runs once: a trace with that one
//! collective for every member, on a network of two dimensions, the devices of a node and the nodes, with the rates of the
//! cluster's sheet. Its cycles are nanoseconds. What ASTRA-sim does not know (broadcast, reduce, gather, scatter, messages,
//! groups that do not fill their nodes alike) is priced by the own model.
//!
//! The program is started without a shell, in a folder of its own that is removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use trompe_base::{Duration, Rank};
use trompe_cluster::{CollectiveCall, CollectiveModel, Network, Price};
use trompe_hardware::ClusterSheet;
use trompe_interop::chakra::single_collective;
use trompe_trace::record::CollectiveKind;

use crate::SessionError;

/// What distinguishes questions: operation, bytes, devices per node, nodes.
type Question = (CollectiveKind, u64, u32, u32);

/// Devices or nodes, and GB/s and nanoseconds between them.
type Dimension = (u32, (f64, f64));

/// Asks a program for times.
pub(crate) struct AstraSim {
    program: PathBuf,
    own: Network,
    /// Devices of a node.
    devices: u32,
    /// GB/s and nanoseconds inside a node and between nodes, per device.
    inside: (f64, f64),
    between: (f64, f64),
    known: Mutex<BTreeMap<Question, Result<Price, String>>>,
}

const SYSTEM: &str = r#"{
  "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
  "all-reduce-implementation": [IMPL], "all-gather-implementation": [IMPL], "reduce-scatter-implementation": [IMPL],
  "all-to-all-implementation": [DIRECT], "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0,
  "roofline-enabled": 0, "peak-perf": 900
}
"#;

impl AstraSim {
    /// A model that asks `program`, which is tried once.
    pub(crate) fn new(program: &Path, cluster: &ClusterSheet) -> Result<Self, SessionError> {
        let node = &cluster.node;
        let adapters = f64::from(node.nic_count) / f64::from(node.device_count.max(1));
        let rate = |link: &trompe_hardware::LinkSheet| link.bandwidth.0 / 1e9;
        let latency = |link: &trompe_hardware::LinkSheet| link.latency.as_micros_f64() * 1e3;
        let model = Self {
            program: program.to_owned(),
            own: Network::of_cluster(cluster),
            devices: node.device_count.max(1),
            inside: (rate(&node.peer), latency(&node.peer)),
            between: (rate(&node.nic) * adapters.max(1e-3), latency(&node.nic)),
            known: Mutex::default(),
        };
        model.ask((CollectiveKind::AllReduce, 1 << 20, 2, 1)).map_err(SessionError::Network)?;
        Ok(model)
    }

    /// The first thing that went wrong.
    pub(crate) fn check(&self) -> Result<(), SessionError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.values().find_map(|answer| answer.as_ref().err()) {
            Some(reason) => Err(SessionError::Network(reason.clone())),
            None => Ok(()),
        }
    }

    fn question(&self, call: &CollectiveCall<'_>) -> Option<Question> {
        use CollectiveKind::{AllGather, AllReduce, AllToAll, ReduceScatter};
        if !matches!(call.kind, AllReduce | AllGather | ReduceScatter | AllToAll) || call.members.len() < 2 {
            return None;
        }
        let mut nodes: BTreeMap<u32, u32> = BTreeMap::new();
        for rank in call.members {
            *nodes.entry(rank.0 / self.devices).or_default() += 1;
        }
        let local = *nodes.values().next()?;
        let even = nodes.values().all(|&count| count == local);
        even.then_some((call.kind, call.bytes.0, local, nodes.len() as u32))
    }

    /// Runs the program.
    fn ask(&self, (kind, bytes, local, nodes): Question) -> Result<Price, String> {
        let folder = tempfile::Builder::new().prefix("trompe-astra-").tempdir();
        let folder = folder.map_err(|error| format!("no folder for ASTRA-sim: {error}"))?;
        let outcome = self.run(folder.path(), (kind, bytes, local, nodes));
        let nanos = outcome.map_err(|reason| {
            format!(
                "ASTRA-sim (`{}`) gave no time for {kind:?} of {bytes} bytes on {nodes} x {local} devices: {reason}; give \
                 the program `AstraSim_Analytical_Congestion_Unaware` (or `…_Aware`) that its build made",
                self.program.display()
            )
        })?;
        Ok(Price::exact(Duration::from_secs_f64(nanos as f64 * 1e-9)))
    }

    fn run(&self, folder: &Path, (kind, bytes, local, nodes): Question) -> Result<u64, String> {
        let write = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, content)
                .map_err(|error| format!("`{}`: {error}", path.display()))
                .map(|()| path)
        };
        let trace = single_collective(kind, bytes, local * nodes).ok_or("it knows no such collective")?;
        for rank in 0..local * nodes {
            write(&format!("job.{rank}.et"), &trace)?;
        }
        let dimensions = [(local, self.inside), (nodes, self.between)];
        let sizes: Vec<Dimension> = dimensions.into_iter().filter(|(size, _)| *size > 1).collect();
        let list =
            |text: &dyn Fn(&Dimension) -> String| sizes.iter().map(text).collect::<Vec<_>>().join(", ");
        let network = format!(
            "topology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ {} ]\nlatency: [ {} ]\n",
            list(&|_| "Switch".to_owned()),
            list(&|(size, _)| size.to_string()),
            list(&|(_, (rate, _))| format!("{rate:?}")),
            list(&|(_, (_, latency))| format!("{latency:?}"))
        );
        let system = SYSTEM.replace("IMPL", &list(&|_| "\"ring\"".to_owned()));
        let system = system.replace("DIRECT", &list(&|_| "\"direct\"".to_owned()));
        let network = write("network.yml", network.as_bytes())?;
        let system = write("system.json", system.as_bytes())?;
        let memory = write("memory.json", b"{ \"memory-type\": \"NO_MEMORY_EXPANSION\" }\n")?;
        let argument = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let output = Command::new(&self.program)
            .current_dir(folder)
            .arg(argument("workload-configuration", &folder.join("job")))
            .arg(argument("system-configuration", &system))
            .arg(argument("remote-memory-configuration", &memory))
            .arg(argument("network-configuration", &network))
            .output()
            .map_err(|error| format!("it cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = || {
            let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
            all.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output").to_owned()
        };
        if !output.status.success() {
            return Err(format!("it ended with {}: {}", output.status, last()));
        }
        cycles(&text)
            .ok_or_else(|| format!("it printed no `finished, N cycles`; its last line is `{}`", last()))
    }
}

/// The most cycles that a device reports (`sys[3] finished, 12345 cycles, …`).
fn cycles(text: &str) -> Option<u64> {
    let line = |line: &str| {
        let after = line.split_once("finished, ")?.1;
        after.split_once(" cycles")?.0.trim().parse().ok()
    };
    text.lines().filter_map(line).max()
}

impl CollectiveModel for AstraSim {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        let Some(question) = self.question(call) else { return self.own.price(call) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = known.entry(question).or_insert_with(|| self.ask(question));
        answer.clone().unwrap_or_else(|_| self.own.price(call))
    }

    fn channels(&self, call: &CollectiveCall<'_>) -> u32 {
        self.own.channels(call)
    }

    fn likeness(&self, members: &[Rank], pairs: bool) -> Vec<u32> {
        self.own.likeness(members, pairs)
    }

    fn crosses_nodes(&self, members: &[Rank]) -> bool {
        self.own.crosses_nodes(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_device_counts() {
        let text = "[workload] [info] sys[0] finished, 100 cycles, exposed communication 1 cycles.\n\
                    sys[1] finished, 250 cycles, exposed communication 3 cycles.\nbye\n";
        assert_eq!(cycles(text), Some(250));
        assert_eq!(cycles("nothing"), None);
    }

    /// A program that notes how often it ran and prints `words`.
    fn program(folder: &Path, words: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("simulator");
        let log = folder.join("calls").display().to_string();
        std::fs::write(
            &path,
            format!(
                "#!/bin/sh\necho \"$@\" >> {log}\nls job.0.et network.yml > /dev/null || exit 3\n{words}\n"
            ),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_is_asked_once_for_each_collective() {
        let folder = tempfile::tempdir().unwrap();
        let path =
            program(folder.path(), "echo 'sys[0] finished, 40000 cycles, exposed communication 1 cycles.'");
        let cluster = trompe_hardware::resolve("dgx-h100:2").unwrap();
        let model = AstraSim::new(&path, &cluster).unwrap();
        let price = |kind, members: &[u32]| {
            let members: Vec<Rank> = members.iter().copied().map(Rank).collect();
            let bytes = trompe_base::Bytes(1 << 22);
            let call = CollectiveCall {
                kind,
                bytes,
                dtype: trompe_base::DType::F32,
                members: &members,
                ends: (0, 0),
                together: 1,
            };
            model.price(&call).time.as_micros_f64()
        };
        // Two groups of one shape are one question; what it does not know is priced here.
        assert_eq!(price(CollectiveKind::AllReduce, &[0, 1]), 40.0);
        assert_eq!(price(CollectiveKind::AllReduce, &[8, 9]), 40.0);
        assert_eq!(price(CollectiveKind::AllGather, &[0, 8]), 40.0);
        assert_ne!(price(CollectiveKind::Broadcast, &[0, 8]), 40.0);
        assert_ne!(price(CollectiveKind::AllReduce, &[0, 1, 8]), 40.0);
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        assert_eq!(calls.lines().count(), 3, "{calls}");
        model.check().unwrap();
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = trompe_hardware::resolve("dgx-h100").unwrap();
        let refused = |path: &Path, expect: &str| {
            let error = AstraSim::new(path, &cluster).err().expect("it gave no time").to_string();
            assert!(error.contains(expect), "{error}");
        };
        refused(&program(folder.path(), "echo broken; exit 7"), "broken");
        refused(&program(folder.path(), "echo nothing"), "no `finished, N cycles`");
        refused(Path::new("/no/such/program"), "cannot be started");
    }
}
