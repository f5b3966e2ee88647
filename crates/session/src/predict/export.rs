//! A job trace as Chakra execution traces, with the times of a cluster.

use std::path::PathBuf;

use trompe_base::{Duration, Rank};
use trompe_cluster::{CollectiveCall, HostTime};
use trompe_estimate::WithPrograms;
use trompe_interop::chakra::{self, Costs};
use trompe_trace::job::{Collective, HostEvent};
use trompe_trace::peers::Peers;

use super::{Choices, Simulation};
use crate::estimators::{EstimatorChoice, KernelPricing, Pricer};
use crate::{RunFacts, SessionError, disk, npu, simulate};

/// What to export.
#[derive(Clone, Debug)]
pub struct Request {
    /// The output folder of a run, or a `job.trace`.
    pub trace: PathBuf,
    /// Another cluster than the recorded one.
    pub cluster: Option<String>,
    /// How the host's time passes, and where collective times come from.
    pub choices: Choices,
    /// What prices kernels.
    pub estimators: EstimatorChoice,
    /// Where to: a folder that is made.
    pub out: PathBuf,
}

/// The files that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// One per rank.
    pub ranks: usize,
    /// The members of communicators.
    pub groups: PathBuf,
    /// What ASTRA-sim calls its workload: the files' names without `.RANK.et`.
    pub prefix: PathBuf,
}

/// Writes one execution trace per rank, and the communicators.
///
/// # Errors
/// When there is no trace, the cluster is not known, or a file cannot be written.
pub fn chakra(request: &Request) -> Result<Exported, SessionError> {
    let (job, cluster) = simulate::trace_and_cluster(&request.trace, request.cluster.as_deref())?;
    let run = RunFacts::of(&job.facts);
    let pricer = Pricer::of(&request.estimators)?;
    let estimator = WithPrograms { programs: npu::of_job(&job, &cluster)?, others: pricer.stack() };
    let pricing = KernelPricing { estimator: &estimator, ..pricer.on(&cluster) };
    let simulation = Simulation::new(&job, &cluster, &request.choices, &run, &pricing)?;
    std::fs::create_dir_all(&request.out).map_err(|source| SessionError::writing(&request.out, source))?;
    let groups = request.out.join("comm_group.json");
    disk::write(&groups, chakra::groups(&job).as_bytes())?;
    let peers = Peers::new(&job);
    for rank in 0..job.ranks.len() {
        let path = request.out.join(format!("job.{rank}.et"));
        disk::write_with(&path, |file| {
            let out = std::io::BufWriter::new(file);
            chakra::write_rank_of(&peers, &job, Rank(rank as u32), (&simulation, out))
        })?;
    }
    simulation.collectives.check()?;
    Ok(Exported { ranks: job.ranks.len(), groups, prefix: request.out.join("job") })
}

impl Costs for Simulation<'_> {
    fn operation(&self, template: usize, operation: usize) -> Duration {
        self.prices.templates[template][operation].time
    }

    fn collective(&self, collective: &Collective, members: &[Rank], ends: (u32, u32)) -> Duration {
        let Collective { kind, bytes, dtype, .. } = *collective;
        self.collectives
            .model()
            .price(&CollectiveCall { kind, bytes, dtype, members, ends, together: 1 })
            .time
    }

    fn host(&self, event: &HostEvent) -> Duration {
        use trompe_trace::job::Action::{Collective, Enqueue, Graph};
        let cost = self.options.calls.of(event.call);
        match self.options.host {
            HostTime::Measured => event.gap + cost,
            HostTime::Scale(factor) => event.gap.scale(factor) + cost,
            HostTime::Fixed(time)
                if matches!(event.action, Enqueue { .. } | Collective { .. } | Graph { .. }) =>
            {
                time
            }
            HostTime::Fixed(_) | HostTime::Off => Duration::ZERO,
        }
    }
}
