//! Stream capture and graphs.
//!
//! While a stream captures, what is enqueued on it becomes nodes of a graph and does not run. Other streams join the
//! capture by waiting for an event that was recorded in it, and the capture ends on the stream that it began on.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::StreamId;

use crate::handle::{HandleTable, Kind, NotLive};

/// A small effect that a graph has when it is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Copies bytes.
    Copy {
        /// Where to.
        to: u64,
        /// Where from.
        from: u64,
        /// How many.
        bytes: u64,
    },
    /// Repeats a pattern.
    Fill {
        /// Where to.
        to: u64,
        /// One element.
        pattern: Vec<u8>,
        /// How many elements.
        count: u64,
    },
    /// Calls a function of the program on the host.
    Host {
        /// Its address.
        function: u64,
        /// Its argument.
        argument: u64,
    },
}

/// Kinds of nodes; the numbers are `CUgraphNodeType`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[repr(u8)]
pub enum NodeKind {
    Kernel = 0,
    Copy = 1,
    Set = 2,
    Host = 3,
    Child = 4,
    Empty = 5,
    WaitEvent = 6,
    RecordEvent = 7,
    Allocate = 10,
    Free = 11,
    Conditional = 13,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Handles of the nodes that it waits for.
    pub dependencies: Vec<u64>,
    /// Graph that it belongs to, by number.
    pub graph: u32,
}

/// A graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Number in records.
    pub id: u32,
    /// Node handles in the order of their making.
    pub nodes: Vec<u64>,
    /// What launching it does, in order.
    pub effects: Vec<Effect>,
    /// User objects that it keeps alive, by handle.
    pub retained: Vec<u64>,
}

/// An executable graph.
#[derive(Clone, Debug)]
pub struct Executable {
    /// Number in records.
    pub id: u32,
    /// The graph that it was made from, by number.
    pub graph: u32,
    /// Number of nodes.
    pub nodes: usize,
    /// What launching it does, in order.
    pub effects: Vec<Effect>,
    /// User objects that it keeps alive, by handle.
    pub retained: Vec<u64>,
}

/// A capture under way.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The graph's handle.
    pub graph: u64,
    /// The graph's number.
    pub id: u32,
    /// Stream that it began on.
    pub origin: StreamId,
    /// The thread that began it, when calls of that thread elsewhere can break it (the global capture mode).
    pub thread: Option<u64>,
    /// Something forbidden happened.
    pub invalidated: bool,
    /// Latest nodes of each stream that takes part.
    pub frontier: BTreeMap<StreamId, Vec<u64>>,
}

/// Why a capture could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The stream does not capture, or captures already.
    #[error("the stream is in the wrong capture state")]
    IllegalState,
    /// The capture was ended on another stream than it began on.
    #[error("the capture did not begin on this stream")]
    Unmatched,
    /// Something forbidden happened before.
    #[error("the capture was invalidated by an earlier error")]
    Invalidated,
    /// Streams that joined were not joined back.
    #[error("a stream that joined the capture was not joined back")]
    Unjoined,
    /// The two belong to different captures.
    #[error("two captures would be merged")]
    Merge,
    /// A handle is not live.
    #[error(transparent)]
    NotLive(#[from] NotLive),
}

/// Graphs, nodes, executables and captures.
#[derive(Debug)]
pub struct Graphs {
    graphs: HandleTable<Graph>,
    nodes: HandleTable<Node>,
    executables: HandleTable<Executable>,
    captures: BTreeMap<u32, Capture>,
    next_graph: u32,
    next_executable: u32,
}

impl Default for Graphs {
    fn default() -> Self {
        Self {
            graphs: HandleTable::new(Kind::Graph),
            nodes: HandleTable::new(Kind::GraphNode),
            executables: HandleTable::new(Kind::GraphExec),
            captures: BTreeMap::new(),
            next_graph: 1,
            next_executable: 1,
        }
    }
}

impl Graphs {
    /// Makes an empty graph.
    pub fn create(&mut self) -> u64 {
        let id = self.next_graph;
        self.next_graph += 1;
        self.graphs.insert(Graph { id, ..Graph::default() }).0
    }

    /// A graph.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn graph(&self, handle: u64) -> Result<&Graph, NotLive> {
        self.graphs.get(handle)
    }

    /// A graph, to change it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn graph_mut(&mut self, handle: u64) -> Result<&mut Graph, NotLive> {
        self.graphs.get_mut(handle)
    }

    /// Destroys a graph and its nodes, and returns the user objects that it kept alive.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<Vec<u64>, NotLive> {
        let graph = self.graphs.remove(handle)?;
        for node in graph.nodes {
            self.nodes.remove(node)?;
        }
        Ok(graph.retained)
    }

    /// A node.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn node(&self, handle: u64) -> Result<&Node, NotLive> {
        self.nodes.get(handle)
    }

    /// Adds a node to a graph by hand.
    ///
    /// # Errors
    /// When a handle is not live.
    pub fn add_node(&mut self, graph: u64, kind: NodeKind, dependencies: Vec<u64>) -> Result<u64, NotLive> {
        for &dependency in &dependencies {
            self.nodes.get(dependency)?;
        }
        let id = self.graphs.get(graph)?.id;
        let node = self.nodes.insert(Node { kind, dependencies, graph: id }).0;
        self.graphs.get_mut(graph)?.nodes.push(node);
        Ok(node)
    }

    /// Begins a capture into a new graph, or into `graph` after the given nodes. Returns the graph's number.
    ///
    /// # Errors
    /// When `graph` is not live.
    pub fn begin(
        &mut self,
        origin: StreamId,
        graph: Option<u64>,
        after: Vec<u64>,
    ) -> Result<u32, CaptureError> {
        let graph = match graph {
            Some(graph) => graph,
            None => self.create(),
        };
        let id = self.graphs.get(graph)?.id;
        let frontier = BTreeMap::from([(origin, after)]);
        self.captures.insert(id, Capture { graph, id, origin, thread: None, invalidated: false, frontier });
        Ok(id)
    }

    /// The capture into the graph with number `id`.
    #[must_use]
    pub fn capture(&self, id: u32) -> Option<&Capture> {
        self.captures.get(&id)
    }

    /// The capture into the graph with number `id`, to change it.
    pub fn capture_mut(&mut self, id: u32) -> Option<&mut Capture> {
        self.captures.get_mut(&id)
    }

    /// Whether any stream captures.
    #[must_use]
    pub fn is_capturing(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Whether `thread` began a capture in global mode that is under way.
    #[must_use]
    pub fn captures_on_thread(&self, thread: u64) -> bool {
        self.captures.values().any(|capture| capture.thread == Some(thread))
    }

    /// Invalidates the captures that `thread` began in global mode.
    pub fn invalidate_on_thread(&mut self, thread: u64) {
        for capture in self.captures.values_mut().filter(|capture| capture.thread == Some(thread)) {
            capture.invalidated = true;
        }
    }

    /// Enqueues a node on a capturing stream.
    pub fn enqueue(&mut self, capture: u32, stream: StreamId, kind: NodeKind, effect: Option<Effect>) {
        let Some(state) = self.captures.get_mut(&capture) else { return };
        let frontier = state.frontier.entry(stream).or_default();
        let node = Node { kind, dependencies: std::mem::take(frontier), graph: state.id };
        let node = self.nodes.insert(node).0;
        frontier.push(node);
        if let Ok(graph) = self.graphs.get_mut(state.graph) {
            graph.nodes.push(node);
            graph.effects.extend(effect);
        }
    }

    /// A stream waits, inside a capture, for what `nodes` stand for.
    pub fn join(&mut self, capture: u32, stream: StreamId, nodes: &[u64]) {
        if let Some(state) = self.captures.get_mut(&capture) {
            let frontier = state.frontier.entry(stream).or_default();
            frontier
                .extend(nodes.iter().filter(|node| !frontier.contains(node)).copied().collect::<Vec<_>>());
        }
    }

    /// Ends a capture and returns the graph's handle.
    ///
    /// # Errors
    /// When it did not begin on `stream`, or was invalidated; the capture is over in the second case.
    pub fn end(&mut self, capture: u32, stream: StreamId) -> Result<u64, CaptureError> {
        let state = self.captures.get(&capture).ok_or(CaptureError::IllegalState)?;
        if state.origin != stream {
            return Err(CaptureError::Unmatched);
        }
        let state = self.captures.remove(&capture).ok_or(CaptureError::IllegalState)?;
        let error = if state.invalidated {
            CaptureError::Invalidated
        } else if self.is_unjoined(&state) {
            CaptureError::Unjoined
        } else {
            return Ok(state.graph);
        };
        self.destroy(state.graph)?;
        Err(error)
    }

    /// Whether another stream's latest node is not among what the origin waits for.
    fn is_unjoined(&self, state: &Capture) -> bool {
        let mut reached = BTreeSet::new();
        let mut open: Vec<u64> = state.frontier.get(&state.origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if reached.insert(node)
                && let Ok(node) = self.nodes.get(node)
            {
                open.extend(&node.dependencies);
            }
        }
        state.frontier.values().flatten().any(|node| !reached.contains(node))
    }

    /// Makes an executable graph.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn instantiate(&mut self, graph: u64) -> Result<(u64, u32, u32), NotLive> {
        let graph = self.graphs.get(graph)?;
        let id = self.next_executable;
        self.next_executable += 1;
        let executable = Executable {
            id,
            graph: graph.id,
            nodes: graph.nodes.len(),
            effects: graph.effects.clone(),
            retained: graph.retained.clone(),
        };
        let number = graph.id;
        Ok((self.executables.insert(executable).0, number, id))
    }

    /// An executable graph.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn executable(&self, handle: u64) -> Result<&Executable, NotLive> {
        self.executables.get(handle)
    }

    /// Destroys an executable graph and returns the user objects that it kept alive.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn destroy_executable(&mut self, handle: u64) -> Result<Vec<u64>, NotLive> {
        self.executables.remove(handle).map(|executable| executable.retained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: StreamId = StreamId(300);
    const SIDE: StreamId = StreamId(301);

    #[test]
    fn a_forked_and_joined_capture_keeps_its_dependencies() {
        let mut graphs = Graphs::default();
        let capture = graphs.begin(MAIN, None, vec![]).expect("new");
        graphs.enqueue(capture, MAIN, NodeKind::Kernel, None);
        let fork = graphs.capture(capture).expect("live").frontier[&MAIN].clone();
        graphs.join(capture, SIDE, &fork);
        graphs.enqueue(capture, SIDE, NodeKind::Kernel, None);
        graphs.enqueue(capture, MAIN, NodeKind::Copy, None);
        let side = graphs.capture(capture).expect("live").frontier[&SIDE].clone();
        graphs.join(capture, MAIN, &side);
        graphs.enqueue(capture, MAIN, NodeKind::Kernel, None);
        assert_eq!(graphs.end(capture, SIDE), Err(CaptureError::Unmatched));
        let graph = graphs.end(capture, MAIN).expect("valid");
        let nodes = graphs.graph(graph).expect("live").nodes.clone();
        assert_eq!(nodes.len(), 4);
        assert_eq!(graphs.node(nodes[1]).expect("live").dependencies, [nodes[0]]);
        assert_eq!(graphs.node(nodes[3]).expect("live").dependencies, [nodes[2], nodes[1]]);
        let (executable, number, _) = graphs.instantiate(graph).expect("live");
        assert_eq!(number, capture);
        graphs.destroy(graph).expect("live");
        assert!(graphs.node(nodes[0]).is_err());
        assert_eq!(graphs.executable(executable).expect("live").nodes, 4, "outlives its graph");
    }

    #[test]
    fn a_stream_that_is_not_joined_back_is_an_error() {
        let mut graphs = Graphs::default();
        let capture = graphs.begin(MAIN, None, vec![]).expect("new");
        graphs.enqueue(capture, MAIN, NodeKind::Kernel, None);
        graphs.enqueue(capture, SIDE, NodeKind::Kernel, None);
        assert_eq!(graphs.end(capture, MAIN), Err(CaptureError::Unjoined));
    }

    #[test]
    fn an_invalidated_capture_gives_no_graph() {
        let mut graphs = Graphs::default();
        let capture = graphs.begin(MAIN, None, vec![]).expect("new");
        graphs.capture_mut(capture).expect("live").invalidated = true;
        assert_eq!(graphs.end(capture, MAIN), Err(CaptureError::Invalidated));
        assert!(!graphs.is_capturing());
    }
}
