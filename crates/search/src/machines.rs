//! The clusters that the points of a space name, looked up once.

use std::collections::BTreeMap;

use crate::space::{MachineFacts, Space};
use crate::{Point, Value};

/// Facts for every choice of the hardware knobs.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    /// By the positions of the `cluster` and the `nodes` knob (0 where there is none).
    facts: BTreeMap<(usize, usize), MachineFacts>,
    cluster_knob: Option<usize>,
    nodes_knob: Option<usize>,
}

impl Machines {
    /// Looks up all clusters that `space` can name with `look`, which gets what `--cluster` would get. `cluster` is the
    /// one that the user named, for spaces without a `cluster` knob.
    ///
    /// # Errors
    /// The first error of `look`; `missing` when there is no cluster at all.
    pub fn look_up<E>(
        space: &Space,
        cluster: Option<&str>,
        missing: impl FnOnce() -> E,
        mut look: impl FnMut(&str) -> Result<MachineFacts, E>,
    ) -> Result<Self, E> {
        let (cluster_knob, nodes_knob) = (space.cluster_knob(), space.nodes_knob());
        let names: Vec<String> = match (cluster_knob, cluster) {
            (Some(knob), _) => space.knobs[knob].values.iter().map(Value::to_string).collect(),
            (None, Some(cluster)) => vec![cluster.to_owned()],
            (None, None) => return Err(missing()),
        };
        let nodes: Vec<Option<i64>> = match nodes_knob {
            Some(knob) => space.knobs[knob].values.iter().map(Value::integer).collect(),
            None => vec![None],
        };
        let mut facts = BTreeMap::new();
        for (first, name) in names.iter().enumerate() {
            for (second, nodes) in nodes.iter().enumerate() {
                let spec = match nodes {
                    Some(nodes) => format!("{}:{nodes}", name.split(':').next().unwrap_or(name)),
                    None => name.clone(),
                };
                facts.insert((first, second), look(&spec)?);
            }
        }
        Ok(Self { facts, cluster_knob, nodes_knob })
    }

    /// The cluster of a point.
    ///
    /// # Panics
    /// When the point is none of the space that this was made for.
    #[must_use]
    pub fn of(&self, point: &Point) -> &MachineFacts {
        let position = |knob: Option<usize>| knob.map_or(0, |knob| point.0[knob] as usize);
        let key = (position(self.cluster_knob), position(self.nodes_knob));
        self.facts.get(&key).expect("every choice of the hardware knobs was looked up")
    }

    /// Every cluster, once.
    pub fn all(&self) -> impl Iterator<Item = &MachineFacts> {
        self.facts.values()
    }
}
