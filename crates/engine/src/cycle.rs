//! A contradiction among precedence edges: the cycle alone, with the reason of each edge.

use std::fmt::{self, Write};

use crate::event::EventName;

/// A closed chain of precedence edges; no order of firing can satisfy it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The edges in order; each one's `to` is the next one's `from`, and the last one leads to the first.
    pub edges: Vec<CycleEdge>,
}

/// One edge of a [`Cycle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleEdge {
    /// The event that must fire first.
    pub from: EventName,
    /// The event that must fire second.
    pub to: EventName,
    /// Why.
    pub reason: String,
}

impl Cycle {
    /// The cycle as a Graphviz graph.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph cycle {\n");
        for edge in &self.edges {
            writeln!(
                dot,
                "  {} -> {} [label={}];",
                quoted(&edge.from.to_string()),
                quoted(&edge.to.to_string()),
                quoted(&edge.reason)
            )
            .expect("a String takes all text");
        }
        dot.push_str("}\n");
        dot
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the order of {} events is circular; drop one of these edges:", self.edges.len())?;
        for (i, edge) in self.edges.iter().enumerate() {
            let end = if i + 1 == self.edges.len() { "" } else { "\n" };
            write!(f, "  `{}` precedes `{}`, because {}{end}", edge.from, edge.to, edge.reason)?;
        }
        Ok(())
    }
}

/// A DOT string literal.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
