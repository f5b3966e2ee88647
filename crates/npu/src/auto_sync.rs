//! Automatic synchronisation: events between the pipes of a lane for marked regions.
//!
//! Between `start_auto_sync` and `end_auto_sync` every buffer (a local tensor, or the slots of a `get_buf`) is followed
//! through the innermost block that holds all its accesses. There the pipes that touch it form a cycle, for example
//! MTE2, V, MTE3: from each run of accesses to the next a *ready* event is inserted, and from the last back to the first
//! a *valid* event that is set as often at the start as the buffer has slots. So a pipe waits until the one before has
//! done its part, and the first one until a slot is free. Buffers with the same pipes in the same block share events.
//!
//! Events are named after their buffers, `a+b filled` and `a+b freed`, since reports say what a pipe waited for.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ProgramError, Site};
use crate::ops::{self, Kind, Place};
use crate::program::{Argument, Instruction, Pipe, Space, Tensor};

/// A block of a region: indices of instructions, or nested loops and branches.
#[derive(Debug)]
enum Node {
    Leaf(usize),
    /// First and last instruction, and what is between.
    Block(usize, usize, Vec<Node>),
}

impl Node {
    const fn first(&self) -> usize {
        match self {
            Self::Leaf(at) | Self::Block(at, ..) => *at,
        }
    }

    const fn last(&self) -> usize {
        match self {
            Self::Leaf(at) | Self::Block(_, at, _) => *at,
        }
    }
}

/// The cycle of a buffer: where (first and last instruction of each run) and on which pipe.
#[derive(Debug)]
struct Cycle {
    runs: Vec<(Pipe, usize, usize)>,
    slots: usize,
    buffers: Vec<String>,
}

/// What is put before and after an instruction.
type Inserted = BTreeMap<usize, (Vec<Instruction>, Vec<Instruction>)>;

/// Replaces the marked regions of a lane by explicit events.
pub(crate) fn expand(
    lane: &str,
    instructions: &[Instruction],
    tensors: &[Tensor],
    pipes: &[Pipe],
) -> Result<Vec<Instruction>, ProgramError> {
    let mut out = Vec::with_capacity(instructions.len());
    let mut at = 0;
    let mut names: BTreeSet<String> = instructions.iter().filter_map(event_name).collect();
    while at < instructions.len() {
        let refuse = |index: usize, problem: &str| {
            let instruction: &Instruction = &instructions[index];
            let site =
                Site { list: lane.to_owned(), index, op: instruction.op.clone(), at: instruction.at.clone() };
            ProgramError::Instruction { site: Box::new(site), problem: problem.to_owned() }
        };
        match instructions[at].op.as_str() {
            "start_auto_sync" => {
                let end = instructions[at..].iter().position(|instruction| instruction.op == "end_auto_sync");
                let end = at + end.ok_or_else(|| refuse(at, "is never ended"))?;
                let region = Region { instructions, tensors, pipes };
                let expanded = region.expand(at + 1, end, &mut names);
                out.extend(expanded.map_err(|(index, problem)| refuse(index, &problem))?);
                at = end + 1;
            }
            "end_auto_sync" => return Err(refuse(at, "ends no region")),
            _ => {
                out.push(instructions[at].clone());
                at += 1;
            }
        }
    }
    Ok(out)
}

struct Region<'a> {
    instructions: &'a [Instruction],
    tensors: &'a [Tensor],
    pipes: &'a [Pipe],
}

impl Region<'_> {
    fn expand(
        &self,
        start: usize,
        end: usize,
        names: &mut BTreeSet<String>,
    ) -> Result<Vec<Instruction>, (usize, String)> {
        let mut at = start;
        let root = Node::Block(start, end.max(start + 1) - 1, self.tree(&mut at, end)?);
        let (buffers, slots) = self.buffers(start, end);
        let mut by_buffer: BTreeMap<&str, Vec<(usize, Pipe)>> = BTreeMap::new();
        for index in start..end {
            for (buffer, pipe) in self.accesses(index, &buffers) {
                by_buffer.entry(buffer).or_default().push((index, pipe));
            }
        }
        let mut cycles: BTreeMap<(usize, Vec<Pipe>), Cycle> = BTreeMap::new();
        for (buffer, accesses) in &by_buffer {
            let used: BTreeSet<Pipe> = accesses.iter().map(|access| access.1).collect();
            if used.len() > 1 {
                let buffer = (*buffer, slots.get(buffer).copied().unwrap_or(1));
                self.follow(&root, accesses, buffer, &mut cycles)?;
            }
        }
        let (mut created, mut inserted) = (Vec::new(), Inserted::new());
        for cycle in cycles.values() {
            insert(cycle, names, &mut created, &mut inserted);
        }
        let mut out = created;
        for index in start..end {
            let (before, after) = inserted.remove(&index).unwrap_or_default();
            out.extend(before);
            out.push(self.instructions[index].clone());
            out.extend(after);
        }
        Ok(out)
    }

    /// Loops and branches from `at` to `end` as a tree.
    fn tree(&self, at: &mut usize, end: usize) -> Result<Vec<Node>, (usize, String)> {
        let mut nodes = Vec::new();
        while *at < end {
            match self.instructions[*at].op.as_str() {
                "start_loop" | "start_micro_loop" | "start_if" => {
                    let first = *at;
                    *at += 1;
                    let inner = self.tree(at, end)?;
                    if *at >= end {
                        return Err((first, "is not ended inside the auto-sync region".to_owned()));
                    }
                    nodes.push(Node::Block(first, *at, inner));
                    *at += 1;
                }
                "end_loop" | "end_if" => return Ok(nodes),
                "break_loop" | "continue_loop" => {
                    return Err((*at, "would leave events unpaired; use explicit events here".to_owned()));
                }
                _ => {
                    nodes.push(Node::Leaf(*at));
                    *at += 1;
                }
            }
        }
        Ok(nodes)
    }

    /// Which buffer each name stands for, and how many slots it has.
    fn buffers(&self, start: usize, end: usize) -> (BTreeMap<&str, &str>, BTreeMap<&str, usize>) {
        let mut buffers: BTreeMap<&str, &str> = BTreeMap::new();
        let mut slots = BTreeMap::new();
        for tensor in self.tensors.iter().filter(|tensor| tensor.space != Space::Gm) {
            let root = tensor.view_of.as_deref().and_then(|root| buffers.get(root).copied());
            buffers.insert(&tensor.name, root.unwrap_or(&tensor.name));
        }
        for _ in 0..2 {
            for instruction in &self.instructions[..end] {
                let Some(Argument::Text(view)) = instruction.args.get("view_name") else { continue };
                match (instruction.args.get("slot_names"), instruction.args.get("source_name")) {
                    (Some(Argument::List(names)), _) => {
                        let Some(Argument::Text(first)) = names.first() else { continue };
                        for name in names {
                            if let Argument::Text(name) = name {
                                buffers.insert(name, first);
                            }
                        }
                        buffers.insert(view, first);
                        slots.insert(first.as_str(), names.len());
                    }
                    (_, Some(Argument::Text(source))) => {
                        if let Some(&root) = buffers.get(source.as_str()) {
                            buffers.insert(view, root);
                        }
                    }
                    _ => {}
                }
            }
        }
        let _ = start;
        (buffers, slots)
    }

    /// Local buffers that an instruction of a pipe touches.
    fn accesses<'b>(&self, index: usize, buffers: &BTreeMap<&'b str, &'b str>) -> Vec<(&'b str, Pipe)> {
        let instruction = &self.instructions[index];
        let Some(spec) = ops::lane_spec(&instruction.op) else { return Vec::new() };
        let Place::Pipes(known) = &spec.place else { return Vec::new() };
        let pipe = instruction.pipe.or_else(|| known.iter().copied().find(|pipe| self.pipes.contains(pipe)));
        let Some(pipe) = pipe.filter(|pipe| *pipe != Pipe::S) else { return Vec::new() };
        let mut names: Vec<&str> = spec
            .operands
            .iter()
            .filter(|operand| operand.kind == Kind::Tensor)
            .filter_map(|operand| match instruction.args.get(operand.name) {
                Some(Argument::Text(name)) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let bound: Vec<&Argument> = match instruction.args.get("call_bindings") {
            Some(Argument::List(list)) => list.iter().collect(),
            Some(Argument::Map(map)) => map.values().collect(),
            _ => Vec::new(),
        };
        names.extend(bound.into_iter().filter_map(|bound| match bound {
            Argument::Text(name) => Some(name.as_str()),
            _ => None,
        }));
        let mut found: Vec<(&str, Pipe)> =
            names.into_iter().filter_map(|name| buffers.get(name).map(|buffer| (*buffer, pipe))).collect();
        found.dedup();
        // A cube's store into the unified buffers is ordered against the vector lanes by flags.
        if self.pipes.contains(&Pipe::M) {
            let local = |name: &str| {
                self.tensors.iter().any(|tensor| tensor.name == name && tensor.space == Space::Ub)
            };
            found.retain(|(buffer, _)| !local(buffer));
        }
        found
    }

    /// Finds the blocks in which the accesses alternate between pipes.
    fn follow(
        &self,
        node: &Node,
        accesses: &[(usize, Pipe)],
        (buffer, slots): (&str, usize),
        cycles: &mut BTreeMap<(usize, Vec<Pipe>), Cycle>,
    ) -> Result<(), (usize, String)> {
        let Node::Block(first, _, children) = node else { return Ok(()) };
        let mut runs: Vec<(Pipe, usize, usize)> = Vec::new();
        let inside = |child: &Node| -> BTreeSet<Pipe> {
            let range = child.first()..=child.last();
            accesses.iter().filter(|access| range.contains(&access.0)).map(|access| access.1).collect()
        };
        let busy: Vec<&Node> = children.iter().filter(|child| !inside(child).is_empty()).collect();
        if let [only] = busy.as_slice()
            && matches!(only, Node::Block(..))
        {
            return self.follow(only, accesses, (buffer, slots), cycles);
        }
        for child in busy {
            let pipes = inside(child);
            if pipes.len() > 1 {
                let problem = "holds accesses of several pipes to a buffer that is also used outside it; \
                               use explicit events here";
                return Err((child.first(), problem.to_owned()));
            }
            let Some(&pipe) = pipes.first() else { continue };
            match runs.last_mut().filter(|run| run.0 == pipe) {
                Some(run) => run.2 = child.last(),
                None => runs.push((pipe, child.first(), child.last())),
            }
        }
        // The first slot stands for the buffer.
        let buffer = buffer.strip_suffix(".0").unwrap_or(buffer).to_owned();
        let key = (*first, runs.iter().map(|run| run.0).collect::<Vec<_>>());
        match cycles.get_mut(&key) {
            // Share the events where the runs do not change their order by it.
            Some(cycle) if merged(cycle, &runs) => {
                for (mine, theirs) in cycle.runs.iter_mut().zip(&runs) {
                    mine.1 = mine.1.min(theirs.1);
                    mine.2 = mine.2.max(theirs.2);
                }
                cycle.slots = cycle.slots.min(slots);
                cycle.buffers.push(buffer);
            }
            Some(_) => {
                let unique = (key.0 + cycles.len() * 1_000_000, key.1);
                cycles.insert(unique, Cycle { runs, slots, buffers: vec![buffer] });
            }
            None => {
                cycles.insert(key, Cycle { runs, slots, buffers: vec![buffer] });
            }
        }
        Ok(())
    }
}

/// Puts the events of a cycle around its runs.
fn insert(
    cycle: &Cycle,
    names: &mut BTreeSet<String>,
    created: &mut Vec<Instruction>,
    inserted: &mut Inserted,
) {
    let create =
        ["create_sevent", "create_devent", "create_tevent", "create_qevent"][cycle.slots.clamp(1, 4) - 1];
    let count = cycle.runs.len();
    for at in 0..count {
        let (next, wraps) = ((at + 1) % count, at + 1 == count);
        let ((source, _, end), (target, begin, _)) = (cycle.runs[at], cycle.runs[next]);
        if source == target {
            continue;
        }
        let name = fresh_name(&cycle.buffers, if wraps { "freed" } else { "filled" }, names);
        created.push(instruction(
            create,
            &[
                ("name", Argument::Text(name.clone())),
                ("src_pipe", Argument::Text(source.name().to_owned())),
                ("dst_pipe", Argument::Text(target.name().to_owned())),
                ("preset", Argument::Bool(wraps)),
            ],
        ));
        let event = [("event", Argument::Text(name))];
        inserted.entry(begin).or_default().0.push(instruction("event_wait", &event));
        inserted.entry(end).or_default().1.push(instruction("event_set", &event));
    }
}

/// A name that no event has yet, for example `a+b filled`.
fn fresh_name(buffers: &[String], what: &str, names: &mut BTreeSet<String>) -> String {
    const SHOWN: usize = 3;
    let more = if buffers.len() > SHOWN { "+…" } else { "" };
    let base = format!("{}{more} {what}", buffers[..buffers.len().min(SHOWN)].join("+"));
    let mut name = base.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{base} {number}");
        number += 1;
    }
    name
}

/// The name that an instruction gives to an event.
fn event_name(instruction: &Instruction) -> Option<String> {
    match instruction.args.get("name") {
        Some(Argument::Text(name)) if instruction.op.ends_with("event") => Some(name.clone()),
        _ => None,
    }
}

/// Whether two cycles of the same pipes can share events: every run of the one meets the same run of the other only.
fn merged(cycle: &Cycle, runs: &[(Pipe, usize, usize)]) -> bool {
    let joined: Vec<(usize, usize)> =
        cycle.runs.iter().zip(runs).map(|(a, b)| (a.1.min(b.1), a.2.max(b.2))).collect();
    joined.windows(2).all(|pair| pair[0].1 < pair[1].0)
}

fn instruction(op: &str, args: &[(&str, Argument)]) -> Instruction {
    Instruction {
        op: op.to_owned(),
        pipe: None,
        args: args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        at: Some("auto_sync".to_owned()),
    }
}
