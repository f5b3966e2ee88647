//! CUDA graphs: what is captured, and what a launch expands to.
//!
//! While a stream captures, operations on it become nodes and do not run; a stream that waits for an event recorded
//! in the capture joins it, as CUDA says. Nodes are kept in the order of the calls, which respects every dependency.
//!
//! What the program was doing meanwhile is kept too: a launch repeats it without any operator that would say so.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use trompe_base::{EventId, StreamId};
use trompe_trace::job::{Action, Collective, Phase};

/// One node of a graph.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A device operation.
    Operation(u32),
    /// A collective.
    Collective(Collective),
}

/// What a graph holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    nodes: Vec<Node>,
    /// Part of its work is a backward pass.
    pub backward: bool,
    /// An optimizer's step ended during the capture.
    pub optimizer: bool,
    /// Events of the job trace during which it was captured; its operators stand there.
    pub rows: Range<usize>,
}

/// Captures in progress and finished.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    capturing: BTreeMap<StreamId, u32>,
    events: BTreeSet<(EventId, u32)>,
    event_graphs: BTreeMap<(EventId, u32), u32>,
    graphs: BTreeMap<u32, Captured>,
    executables: BTreeMap<u32, u32>,
}

impl Captures {
    /// Whether any graph holds collectives.
    pub(crate) fn have_collectives(&self) -> bool {
        let mut nodes = self.graphs.values().flat_map(|graph| &graph.nodes);
        nodes.any(|node| matches!(node, Node::Collective(_)))
    }

    /// A capture begins before event `row`.
    pub(crate) fn begin(&mut self, stream: StreamId, graph: u32, row: usize) {
        self.capturing.insert(stream, graph);
        self.graphs.entry(graph).or_insert_with(|| Captured { rows: row..row, ..Captured::default() });
    }

    /// A capture ends before event `row`.
    pub(crate) fn end(&mut self, graph: u32, row: usize) {
        if let Some(captured) = self.graphs.get_mut(&graph) {
            captured.rows.end = row;
        }
        self.capturing.retain(|_, owner| *owner != graph);
        self.event_graphs.retain(|event, owner| {
            let over = *owner == graph;
            if over {
                self.events.remove(event);
            }
            !over
        });
    }

    pub(crate) fn instantiate(&mut self, graph: u32, executable: u32) {
        self.executables.insert(executable, graph);
    }

    /// Takes the end of an optimizer's step: true when it is part of a graph and nothing has run yet.
    pub(crate) fn end_optimizer(&mut self) -> bool {
        let Some(graph) = self.capturing.values().next() else { return false };
        self.graphs.entry(*graph).or_default().optimizer = true;
        true
    }

    /// Takes an operation: a node when its stream captures, otherwise the action that enqueues it.
    pub(crate) fn node(&mut self, stream: StreamId, node: Node, blocking: bool, phase: Phase) -> Action {
        if let Some(graph) = self.capturing.get(&stream) {
            let captured = self.graphs.entry(*graph).or_default();
            captured.nodes.push(node);
            captured.backward |= phase == Phase::Backward;
            return Action::Host;
        }
        match node {
            Node::Operation(operation) => Action::Enqueue { stream, operation, blocking },
            Node::Collective(collective) => Action::Collective { stream, collective },
        }
    }

    /// Whether the recording belongs to a capture.
    pub(crate) fn record_event(&mut self, stream: StreamId, event: EventId, version: u32) -> bool {
        let Some(graph) = self.capturing.get(&stream) else { return false };
        self.events.insert((event, version));
        self.event_graphs.insert((event, version), *graph);
        true
    }

    /// Whether the wait belongs to a capture; the waiting stream joins it.
    pub(crate) fn wait_event(&mut self, stream: StreamId, event: EventId, version: u32) -> bool {
        let Some(graph) = self.event_graphs.get(&(event, version)) else { return false };
        self.capturing.insert(stream, *graph);
        true
    }

    /// The graph of an executable, or `None` when its capture was not seen.
    pub(crate) fn captured(&self, executable: u32) -> Option<&Captured> {
        self.executables.get(&executable).and_then(|graph| self.graphs.get(graph))
    }

    /// What launching an executable does, or `None` when its capture was not seen.
    pub(crate) fn launch(&self, executable: u32, stream: StreamId) -> Option<Vec<Action>> {
        let nodes = &self.captured(executable)?.nodes;
        let mut actions = Vec::new();
        let mut operations = Vec::new();
        for node in nodes {
            match node {
                Node::Operation(operation) => operations.push(*operation),
                Node::Collective(collective) => {
                    if !operations.is_empty() {
                        actions.push(Action::Graph { stream, operations: std::mem::take(&mut operations) });
                    }
                    actions.push(Action::Collective { stream, collective: collective.clone() });
                }
            }
        }
        if !operations.is_empty() || actions.is_empty() {
            actions.push(Action::Graph { stream, operations });
        }
        Some(actions)
    }
}
