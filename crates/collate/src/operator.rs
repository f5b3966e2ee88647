//! Framework operators: which of them were open when something happened, and on which tensors.
//!
//! Each thread has a stack of open operators, exact because begin and end are both recorded: a kernel belongs to the
//! innermost operator that is open on its thread when it is launched, never to a helper operator that ended before.
//! A [`Frame`] is one execution of one operator; frames point to their parents, so that the whole stack of any event
//! is known later, outputs included.
//!
//! Phases: everything under `Optimizer.step#…` is the optimizer's. Under an autograd node it is backward, except for
//! forward operators that run there again: those directly under the node of a reentrant checkpoint
//! (`CheckpointFunctionBackward`), and those that record gradients (they have a sequence number, which PyTorch gives
//! only where gradients are enabled), as the unpack hooks of the non-reentrant checkpoint do.

use std::cell::OnceCell;

use trompe_base::DType;
use trompe_trace::job::Phase;
use trompe_trace::values::{self, Tensor, Value};

/// `at::RecordScope` numbers.
const SCOPE_BACKWARD: u8 = 1;
const SCOPE_USER: u8 = 6;

const ENGINE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// One execution of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'a> {
    /// For example `aten::add_`, or the autograd node without the engine's prefix.
    pub name: &'a str,
    /// Kind of frame.
    pub kind: FrameKind,
    /// Row of the enclosing frame.
    pub parent: Option<usize>,
    /// Packed inputs.
    pub inputs: &'a [u8],
    /// Packed outputs; empty until the operator has ended.
    pub outputs: &'a [u8],
    /// Part of the step.
    pub phase: Phase,
    /// The named range or autograd node that the frame is under.
    pub range: Option<&'a str>,
    /// Events of the host timeline before it.
    pub begin: usize,
    /// It records gradients: it has a sequence number.
    pub recording: bool,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An operator of the dispatcher.
    Operator,
    /// A node of the autograd graph.
    Node,
    /// A range that the program or a library marks.
    Range,
}

/// The open operators of one thread.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    open: Vec<usize>,
    /// The thread's first frame was an autograd node: it is a thread of the autograd engine.
    engine: bool,
    seen: bool,
}

/// What an `OperatorBegin` record says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin<'a> {
    /// Name as recorded.
    pub name: &'a str,
    /// `at::RecordScope` number.
    pub scope: u8,
    /// Autograd sequence number or -1.
    pub sequence: i64,
    /// Packed inputs.
    pub inputs: &'a [u8],
    /// Events of the host timeline before it.
    pub at: usize,
}

impl Stack {
    /// The innermost open frame.
    pub(crate) fn top(&self) -> Option<usize> {
        self.open.last().copied()
    }

    /// The phase of something that happens now.
    pub(crate) fn phase(&self, frames: &[Frame<'_>]) -> Phase {
        match self.top() {
            Some(top) => frames[top].phase,
            None if self.engine => Phase::Backward,
            None => Phase::Forward,
        }
    }

    /// Opens a frame and returns its row.
    pub(crate) fn push<'a>(&mut self, begin: Begin<'a>, frames: &mut Vec<Frame<'a>>) -> usize {
        let parent = self.top();
        let frame = frame(begin, parent, frames);
        if !self.seen {
            self.seen = true;
            self.engine = frame.kind == FrameKind::Node;
        }
        frames.push(frame);
        self.open.push(frames.len() - 1);
        frames.len() - 1
    }

    /// Closes the innermost frame and returns its row.
    pub(crate) fn pop<'a>(&mut self, outputs: &'a [u8], frames: &mut [Frame<'a>]) -> Option<usize> {
        let top = self.open.pop()?;
        frames[top].outputs = outputs;
        Some(top)
    }
}

/// Whether a range's name is an optimizer's.
pub(crate) fn is_optimizer_step(name: &str) -> bool {
    name.starts_with("Optimizer.step#")
}

fn frame<'a>(begin: Begin<'a>, parent: Option<usize>, frames: &[Frame<'a>]) -> Frame<'a> {
    let above = parent.map(|row| &frames[row]);
    let stripped = begin.name.strip_prefix(ENGINE_PREFIX);
    let kind = match begin.scope {
        _ if stripped.is_some() => FrameKind::Node,
        SCOPE_BACKWARD => FrameKind::Node,
        SCOPE_USER => FrameKind::Range,
        // Operators have a namespace; ranges of `record_function` may come without a scope of their own.
        _ if !begin.name.contains("::") => FrameKind::Range,
        _ => FrameKind::Operator,
    };
    let name = stripped.unwrap_or(begin.name);
    let phase = phase(kind, name, begin.sequence, above);
    let inherited = above.and_then(|frame| frame.range);
    let range = match kind {
        // The innermost node, but a range inside of a node does not hide it.
        FrameKind::Node => Some(name),
        FrameKind::Range => inherited.or(Some(name)),
        FrameKind::Operator => inherited,
    };
    Frame {
        name,
        kind,
        parent,
        inputs: begin.inputs,
        outputs: &[],
        phase,
        range,
        begin: begin.at,
        recording: begin.sequence >= 0,
    }
}

fn phase(kind: FrameKind, name: &str, sequence: i64, above: Option<&Frame<'_>>) -> Phase {
    let outer = above.map_or(Phase::Forward, |frame| frame.phase);
    if outer == Phase::Optimizer || is_optimizer_step(name) || name.starts_with("Optimizer.zero_grad#") {
        return Phase::Optimizer;
    }
    if kind == FrameKind::Node {
        return Phase::Backward;
    }
    let under_checkpoint = above.is_some_and(|frame| {
        frame.kind == FrameKind::Node && frame.name.contains("CheckpointFunctionBackward")
    });
    match outer {
        Phase::Backward if under_checkpoint || (kind == FrameKind::Operator && sequence >= 0) => {
            Phase::Recompute
        }
        other => other,
    }
}

/// Takes back what was taken for recomputation when all operators of a node record gradients: then the backward pass is
/// itself differentiated (`create_graph`). Where something is recomputed, the node's own operators record none.
pub(crate) fn tell_double_backward(frames: &mut [Frame<'_>]) {
    let mut plain = vec![false; frames.len()];
    for frame in frames.iter().filter(|frame| frame.kind == FrameKind::Operator && !frame.recording) {
        if let Some(parent) = frame.parent {
            plain[parent] = true;
        }
    }
    for row in 0..frames.len() {
        let Some(parent) = frames[row].parent.filter(|_| frames[row].phase == Phase::Recompute) else {
            continue;
        };
        let above = &frames[parent];
        let phase = match above.kind {
            FrameKind::Node if above.name.contains("CheckpointFunctionBackward") || plain[parent] => {
                Phase::Recompute
            }
            FrameKind::Node => Phase::Backward,
            _ => above.phase,
        };
        frames[row].phase = phase;
    }
}

/// An operator's name with its decoded arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call<'a> {
    /// For example `aten::add_`.
    pub name: &'a str,
    /// Arguments.
    pub inputs: Vec<Value>,
    /// Results.
    pub outputs: Vec<Value>,
}

impl Call<'_> {
    /// The name without its namespace.
    pub(crate) fn short(&self) -> &str {
        self.name.rsplit("::").next().unwrap_or(self.name)
    }

    /// Whether it writes to its first argument (`add_`, `_foreach_add_`, not `__and__`).
    pub(crate) fn in_place(&self) -> bool {
        self.short().ends_with('_') && !self.short().ends_with("__")
    }

    /// The tensor that is argument `index`.
    pub(crate) fn tensor(&self, index: usize) -> Option<&Tensor> {
        match self.inputs.get(index) {
            Some(Value::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The integer that is argument `index`.
    pub(crate) fn int(&self, index: usize) -> Option<i64> {
        match self.inputs.get(index) {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// The boolean that is argument `index`.
    pub(crate) fn bool(&self, index: usize) -> Option<bool> {
        match self.inputs.get(index) {
            Some(Value::Bool(b)) => Some(*b),
            _ => None,
        }
    }

    /// The float that is argument `index`.
    pub(crate) fn float(&self, index: usize) -> Option<f64> {
        match self.inputs.get(index) {
            Some(Value::Float(f)) => Some(*f),
            Some(Value::Int(n)) => Some(*n as f64),
            _ => None,
        }
    }

    /// All argument tensors on the device, lists flattened.
    pub(crate) fn device_inputs(&self) -> Vec<&Tensor> {
        device_tensors(&self.inputs)
    }

    /// All result tensors on the device, lists flattened.
    pub(crate) fn device_outputs(&self) -> Vec<&Tensor> {
        device_tensors(&self.outputs)
    }
}

fn device_tensors(values: &[Value]) -> Vec<&Tensor> {
    fn walk<'v>(values: &'v [Value], found: &mut Vec<&'v Tensor>) {
        for value in values {
            match value {
                Value::Tensor(tensor) if tensor.on_device => found.push(tensor),
                Value::List(list) => walk(list, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(values, &mut found);
    found
}

/// The operators around one event, decoded when asked for.
#[derive(Debug)]
pub(crate) struct Context<'f, 'a> {
    frames: &'f [Frame<'a>],
    innermost: Option<usize>,
    call: OnceCell<Option<Call<'a>>>,
    /// Calls that are known already, from the innermost outwards; then there are no frames.
    known: &'f [Call<'a>],
}

impl<'f, 'a> Context<'f, 'a> {
    /// The context of an event in frame `top`.
    pub(crate) fn new(frames: &'f [Frame<'a>], top: Option<usize>) -> Self {
        let innermost = top.filter(|row| frames[*row].kind == FrameKind::Operator);
        Self { frames, innermost, call: OnceCell::new(), known: &[] }
    }

    /// The context inside of `calls`, from the innermost outwards.
    pub(crate) fn of_calls(calls: &'f [Call<'a>]) -> Self {
        Self { frames: &[], innermost: None, call: OnceCell::new(), known: calls }
    }

    /// The innermost operator.
    pub(crate) fn call(&self) -> Option<&Call<'a>> {
        if let Some(call) = self.known.first() {
            return Some(call);
        }
        self.call.get_or_init(|| self.innermost.map(|row| self.decode(row))).as_ref()
    }

    /// The innermost operator's name, or an empty text.
    pub(crate) fn name(&self) -> &'a str {
        match self.known.first() {
            Some(call) => call.name,
            None => self.innermost.map_or("", |row| self.frames[row].name),
        }
    }

    /// The nearest operator, from the innermost outwards, whose name is one of `names`.
    pub(crate) fn enclosing(&self, names: &[&str]) -> Option<Call<'a>> {
        if let Some(call) = self.known.iter().find(|call| names.contains(&call.name)) {
            return Some(call.clone());
        }
        self.ancestors().find(|row| names.contains(&self.frames[*row].name)).map(|row| self.decode(row))
    }

    fn ancestors(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost, |row| self.frames[*row].parent)
            .take_while(|row| self.frames[*row].kind == FrameKind::Operator)
    }

    fn decode(&self, row: usize) -> Call<'a> {
        let frame = &self.frames[row];
        Call { name: frame.name, inputs: decode(frame.inputs), outputs: decode(frame.outputs) }
    }
}

/// More elements than any device has bytes; tensors beyond are damage, and sums over real ones never overflow.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 44;

/// Decodes packed values; tensors of impossible sizes become opaque.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Value> {
    values::decode(bytes).into_iter().map(plausible).collect()
}

fn plausible(value: Value) -> Value {
    match value {
        Value::Tensor(tensor) if product(&tensor.sizes).is_none() => Value::Opaque,
        Value::List(list) => Value::List(list.into_iter().map(plausible).collect()),
        other => other,
    }
}

/// The product of some extents; `None` when it is impossibly large.
pub(crate) fn product(extents: &[u64]) -> Option<u64> {
    // Zero extents hide the others from the product, not from those who divide by one of them.
    let all = extents.iter().try_fold(1u64, |a, b| a.checked_mul((*b).max(1)));
    all.filter(|n| *n <= MOST_ELEMENTS)?;
    Some(extents.iter().product())
}

/// Bytes of a tensor's elements in memory, those that a broadcast repeats counted once.
pub(crate) fn distinct_bytes(tensor: &Tensor) -> u64 {
    distinct_elements(tensor) * tensor.dtype.map_or(0, DType::size)
}

/// Elements of a tensor in memory, those that a broadcast repeats counted once.
pub(crate) fn distinct_elements(tensor: &Tensor) -> u64 {
    if tensor.sizes.contains(&0) {
        return 0;
    }
    tensor
        .sizes
        .iter()
        .zip(&tensor.strides)
        .filter(|(_, stride)| **stride != 0)
        .map(|(size, _)| size)
        .product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens `path` from the outside in and returns the phase and range of the innermost.
    fn check(path: &[(&'static str, u8, i64)], phase: Phase, range: Option<&str>) {
        let mut stack = Stack::default();
        let mut frames = Vec::new();
        for &(name, scope, sequence) in path {
            stack.push(Begin { name, scope, sequence, inputs: &[], at: 0 }, &mut frames);
        }
        let top = &frames[stack.top().unwrap()];
        assert_eq!((top.phase, top.range), (phase, range), "{path:?}");
    }

    const NODE: (&str, u8, i64) = ("autograd::engine::evaluate_function: MulBackward0", 0, -1);
    const CHECKPOINT: (&str, u8, i64) = ("CheckpointFunctionBackward", 1, 7);

    #[test]
    fn phases_follow_from_the_stack() {
        use Phase::{Backward, Forward, Optimizer, Recompute};
        check(&[("aten::mul", 0, 3)], Forward, None);
        check(&[NODE, ("MulBackward0", 1, 3), ("aten::mul", 0, -1)], Backward, Some("MulBackward0"));
        check(&[NODE, ("aten::linear", 0, 9), ("aten::addmm", 0, -1)], Recompute, Some("MulBackward0"));
        check(&[CHECKPOINT, ("aten::mul", 0, -1)], Recompute, Some("CheckpointFunctionBackward"));
        check(&[CHECKPOINT, NODE, ("aten::mul", 0, -1)], Backward, Some("MulBackward0"));
        let step = ("Optimizer.step#AdamW.step", 6, -1);
        check(&[step, ("aten::_fused_adamw_", 0, -1)], Optimizer, Some("Optimizer.step#AdamW.step"));
        let fast = ("Optimizer.step#SGD.step", 0, -1);
        check(&[fast, ("aten::add_", 0, -1)], Optimizer, Some("Optimizer.step#SGD.step"));
        check(&[("module", 6, -1), ("inner", 6, -1), ("aten::add", 0, 1)], Forward, Some("module"));
    }

    #[test]
    fn a_differentiated_backward_pass_is_no_recomputation() {
        let phase = |own: i64| {
            let mut stack = Stack::default();
            let mut frames = Vec::new();
            let mut open = |name, scope, sequence| {
                stack.push(Begin { name, scope, sequence, inputs: &[], at: 0 }, &mut frames);
            };
            open("MulBackward0", 1, 3);
            open("aten::linear", 0, 9);
            open("aten::addmm", 0, -1);
            stack.pop(&[], &mut frames);
            stack.pop(&[], &mut frames);
            stack.push(Begin { name: "aten::mul", scope: 0, sequence: own, inputs: &[], at: 0 }, &mut frames);
            tell_double_backward(&mut frames);
            (frames[1].phase, frames[2].phase)
        };
        assert_eq!(phase(-1), (Phase::Recompute, Phase::Recompute));
        assert_eq!(phase(4), (Phase::Backward, Phase::Backward));
    }

    #[test]
    fn broadcast_elements_count_once() {
        let tensor = Tensor {
            dtype: Some(DType::F32),
            address: 0,
            sizes: vec![8, 1024, 1],
            strides: vec![0, 1, 0],
            contiguous: false,
            requires_grad: false,
            on_device: true,
            channels_last: false,
        };
        assert_eq!(distinct_bytes(&tensor), 4096);
        assert_eq!(distinct_bytes(&Tensor { sizes: vec![0, 3], strides: vec![0, 1], ..tensor }), 0);
    }
}
