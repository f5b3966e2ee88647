//! The precedence graph: vertices (events, ordering points), edges with reasons, and the groups that follow.
//!
//! A vertex's group is the length of the longest path to it inside its phase, counted on from the phase before. Only
//! edges inside one phase are needed for that: an edge along the order of the phases always holds, and one against it
//! is refused at once.

use std::collections::VecDeque;
use std::fmt::Write;

use crate::cycle::{Cycle, CycleEdge, quoted};
use crate::error::SetupError;
use crate::event::EventName;
use crate::phase::Phase;

/// Something that can be ordered.
#[derive(Debug)]
pub(crate) struct Vertex {
    pub(crate) name: EventName,
    pub(crate) phase: Phase,
    out: Vec<u32>,
}

#[derive(Debug)]
struct Edge {
    from: u32,
    to: u32,
    reason: String,
    removed: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

impl Graph {
    /// A new vertex without edges.
    pub(crate) fn add_vertex(&mut self, name: EventName, phase: Phase) -> u32 {
        self.vertices.push(Vertex { name, phase, out: Vec::new() });
        u32::try_from(self.vertices.len() - 1).expect("more than 4 billion events are registered")
    }

    /// Lets `from` precede `to`; returns the edge's index. Cycles are not looked for.
    pub(crate) fn add_edge(&mut self, from: u32, to: u32, reason: &str) -> Result<usize, SetupError> {
        let (a, b) = (&self.vertices[from as usize], &self.vertices[to as usize]);
        if a.phase > b.phase {
            return Err(SetupError::AgainstPhases {
                from: a.name.clone(),
                from_phase: a.phase,
                to: b.name.clone(),
                to_phase: b.phase,
                reason: reason.to_owned(),
            });
        }
        let edge = self.edges.len();
        self.edges.push(Edge { from, to, reason: reason.to_owned(), removed: false });
        self.vertices[from as usize]
            .out
            .push(u32::try_from(edge).expect("more than 4 billion precedence edges"));
        Ok(edge)
    }

    /// Takes an edge out again.
    pub(crate) fn remove_edge(&mut self, edge: usize) {
        self.edges[edge].removed = true;
    }

    /// The cycle that edge `edge` closes, if it closes one.
    pub(crate) fn cycle_through(&self, edge: usize) -> Option<Cycle> {
        let first = &self.edges[edge];
        let mut path = self.shortest_path(first.to, first.from)?;
        path.insert(0, edge);
        Some(self.describe(&path))
    }

    /// The group of each vertex, dense from 0, and the number of groups.
    pub(crate) fn groups(&self) -> Result<(Vec<u32>, u32), Cycle> {
        let count = self.vertices.len();
        let mut layer = vec![0u32; count];
        let mut unmet = vec![0u32; count];
        for edge in self.edges_inside_phases() {
            unmet[edge.to as usize] += 1;
        }
        let mut ready: VecDeque<u32> = (0..count as u32).filter(|&v| unmet[v as usize] == 0).collect();
        let mut sorted = 0;
        while let Some(from) = ready.pop_front() {
            sorted += 1;
            let after = layer[from as usize] + 1;
            for edge in self.successors(from) {
                let to = edge.to as usize;
                layer[to] = layer[to].max(after);
                unmet[to] -= 1;
                if unmet[to] == 0 {
                    ready.push_back(edge.to);
                }
            }
        }
        if sorted < count {
            return Err(self.find_cycle(&unmet));
        }
        let mut base = 0;
        for phase in Phase::ALL {
            let members = || (0..count).filter(|&v| self.vertices[v].phase == phase);
            let groups = members().map(|v| layer[v] + 1).max().unwrap_or(0);
            for v in members() {
                layer[v] += base;
            }
            base += groups;
        }
        Ok((layer, base))
    }

    /// `name,phase` per vertex.
    pub(crate) fn vertices_csv(&self) -> String {
        let mut csv = String::from("vertex,phase\n");
        for vertex in &self.vertices {
            writeln!(csv, "{},{}", quoted(&vertex.name.to_string()), vertex.phase)
                .expect("a String takes all text");
        }
        csv
    }

    /// `from,to,reason` per edge.
    pub(crate) fn edges_csv(&self) -> String {
        let mut csv = String::from("from,to,reason\n");
        for edge in self.edges.iter().filter(|edge| !edge.removed) {
            let name = |v: u32| quoted(&self.vertices[v as usize].name.to_string());
            writeln!(csv, "{},{},{}", name(edge.from), name(edge.to), quoted(&edge.reason))
                .expect("a String takes all text");
        }
        csv
    }

    fn edges_inside_phases(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(|edge| self.counts(edge))
    }

    fn successors(&self, vertex: u32) -> impl Iterator<Item = &Edge> {
        self.vertices[vertex as usize]
            .out
            .iter()
            .map(|&edge| &self.edges[edge as usize])
            .filter(|edge| self.counts(edge))
    }

    /// Whether an edge is alive and inside one phase.
    fn counts(&self, edge: &Edge) -> bool {
        let phase = |v: u32| self.vertices[v as usize].phase;
        !edge.removed && phase(edge.from) == phase(edge.to)
    }

    /// A shortest cycle through some vertex that lies on one; `unmet` is what topological sorting left over.
    fn find_cycle(&self, unmet: &[u32]) -> Cycle {
        // Every vertex left over has a predecessor left over, so walking backwards must come to a vertex twice.
        let left = |v: u32| unmet[v as usize] > 0;
        let mut predecessor = vec![u32::MAX; self.vertices.len()];
        for edge in self.edges_inside_phases().filter(|edge| left(edge.from) && left(edge.to)) {
            predecessor[edge.to as usize] = edge.from;
        }
        let mut seen = vec![false; self.vertices.len()];
        let mut at = (0..self.vertices.len() as u32).find(|&v| left(v)).expect("sorting left a vertex over");
        while !std::mem::replace(&mut seen[at as usize], true) {
            at = predecessor[at as usize];
        }
        let closing = self.successors(at).filter_map(|edge| {
            let mut path = self.shortest_path(edge.to, at)?;
            path.insert(0, self.index_of(edge));
            Some(path)
        });
        self.describe(&closing.min_by_key(Vec::len).expect("the vertex lies on a cycle"))
    }

    /// The edges of a shortest path; empty where both ends are one.
    fn shortest_path(&self, from: u32, to: u32) -> Option<Vec<usize>> {
        let mut came_by: Vec<Option<usize>> = vec![None; self.vertices.len()];
        let mut queue = VecDeque::from([from]);
        let mut seen = vec![false; self.vertices.len()];
        seen[from as usize] = true;
        while let Some(at) = queue.pop_front() {
            if at == to {
                let mut path = Vec::new();
                let mut at = to;
                while let Some(edge) = came_by[at as usize] {
                    path.push(edge);
                    at = self.edges[edge].from;
                }
                path.reverse();
                return Some(path);
            }
            for edge in self.successors(at) {
                if !std::mem::replace(&mut seen[edge.to as usize], true) {
                    came_by[edge.to as usize] = Some(self.index_of(edge));
                    queue.push_back(edge.to);
                }
            }
        }
        None
    }

    fn index_of(&self, edge: &Edge) -> usize {
        let out = &self.vertices[edge.from as usize].out;
        let is = |index: &&u32| std::ptr::eq(&self.edges[**index as usize], edge);
        *out.iter().find(is).expect("an edge is listed at its origin") as usize
    }

    fn describe(&self, path: &[usize]) -> Cycle {
        let name = |v: u32| self.vertices[v as usize].name.clone();
        let edge = |&edge: &usize| {
            let edge = &self.edges[edge];
            CycleEdge { from: name(edge.from), to: name(edge.to), reason: edge.reason.clone() }
        };
        Cycle { edges: path.iter().map(edge).collect() }
    }
}
