//! Spaces that work, to start from: `trompe search spaces NAME` prints one.

/// Name and text of each.
pub const SPACES: [(&str, &str); 4] = [
    ("megatron", include_str!("../spaces/megatron.toml")),
    ("fsdp", include_str!("../spaces/fsdp.toml")),
    ("deepspeed", include_str!("../spaces/deepspeed.toml")),
    ("torchtitan", include_str!("../spaces/torchtitan.toml")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::MachineFacts;
    use crate::{Feasible, Machines, Space, feasible};

    #[test]
    fn every_ready_space_has_points_and_jobs_on_a_small_cluster() {
        for (name, text) in SPACES {
            let space = Space::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let facts = MachineFacts {
                cluster: "dgx-h100:2".to_owned(),
                gpu: "h100-sxm5-80".to_owned(),
                gpus: 16,
                gpus_per_node: 8,
                nodes: 2,
                memory_bytes: 80 << 30,
            };
            let machines =
                Machines::look_up(&space, Some("x"), || (), |_| Ok::<_, ()>(facts.clone())).unwrap();
            let feasible = Feasible::of(&space, &machines).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(feasible.points.len() > 20, "{name} has {} points", feasible.points.len());
            for point in &feasible.points {
                let values = feasible::values(&space, &machines, point).unwrap();
                let job = space.job.resolve(&values).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(job.command.iter().all(|word| !word.contains('{')), "{name}: {:?}", job.command);
            }
        }
    }
}
