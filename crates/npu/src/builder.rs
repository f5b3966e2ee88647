//! Writes programs: a kernel in a few lines of Rust.
//!
//! Names are made up where none is given; every instruction of the table is reached through [`Lane::emit`], the common
//! ones have methods. Operands are anything that becomes an [`Argument`]: numbers, [`Var`]s, [`Buffer`]s.
//!
//! ```
//! use trompe_npu::{ElementType::F32, Role, builder::Kernel};
//! let mut kernel = Kernel::new("double", 1);
//! let x = kernel.global("x", F32, &[4, 64], Role::Input);
//! let y = kernel.global("y", F32, &[4, 64], Role::Output);
//! let (input, output) = (kernel.buffer("input", ("ub", 2), F32, &[1, 64]), kernel.buffer("output", ("ub", 2), F32, &[1, 64]));
//! kernel.vector(|lane| {
//!     lane.auto_sync(|lane| {
//!         lane.range(0, 4, 1, |lane, row| {
//!             let (a, b) = (lane.slot(&input, &row), lane.slot(&output, &row));
//!             let from = lane.rows(&x, &row, 1, [4, 64]);
//!             let to = lane.rows(&y, &row, 1, [4, 64]);
//!             lane.emit("gm_to_ub_pad", &[("dst", (&a).into()), ("src", (&from).into()), ("n_burst", 1.into()), ("burst_len_byte", 256.into())]);
//!             lane.emit("muls", &[("dst", (&b).into()), ("src", (&a).into()), ("val", 2.0.into()), ("repeat", 1.into())]);
//!             lane.emit("ub_to_gm_pad", &[("dst", (&to).into()), ("src", (&b).into()), ("n_burst", 1.into()), ("burst_len_byte", 256.into())]);
//!         });
//!     });
//! });
//! assert_eq!(kernel.build().lanes[0].instructions.len(), 11);
//! ```

use std::collections::BTreeMap;

use crate::element::ElementType;
use crate::program::{
    Argument, FORMAT, Instruction, LaneName, LaneProgram, Micro, Parameter, ParameterKind, Pipe, Program,
    Role, Space, Tensor, VERSION,
};

/// A program under construction.
#[derive(Debug)]
pub struct Kernel {
    program: Program,
}

/// Instructions of a lane or a micro program under construction.
#[derive(Debug, Default)]
pub struct Lane {
    instructions: Vec<Instruction>,
    names: usize,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var(String);

/// A tensor or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View(String);

/// One tensor per slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer(Vec<String>);

impl From<&Var> for Argument {
    fn from(value: &Var) -> Self {
        Self::Text(value.0.clone())
    }
}

impl From<&View> for Argument {
    fn from(value: &View) -> Self {
        Self::Text(value.0.clone())
    }
}

impl From<&Buffer> for Argument {
    fn from(value: &Buffer) -> Self {
        Self::Text(value.0[0].clone())
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Argument {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Argument {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Argument>> From<Vec<T>> for Argument {
    fn from(value: Vec<T>) -> Self {
        Self::List(value.into_iter().map(Into::into).collect())
    }
}

impl Var {
    /// How conditions call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The name of a memory in programs.
fn space(name: &str) -> Space {
    match name {
        "gm" => Space::Gm,
        "l1" => Space::L1,
        "l0a" => Space::L0a,
        "l0b" => Space::L0b,
        "l0c" => Space::L0c,
        "ub" => Space::Ub,
        other => panic!("`{other}` is no memory; give gm, l1, l0a, l0b, l0c or ub"),
    }
}

impl Kernel {
    /// An empty program for so many cores (0: all of the device).
    #[must_use]
    pub fn new(name: &str, cores: u32) -> Self {
        Self {
            program: Program {
                format: FORMAT.to_owned(),
                version: VERSION,
                name: name.to_owned(),
                cores,
                tensors: Vec::new(),
                micros: BTreeMap::new(),
                lanes: Vec::new(),
                metadata: BTreeMap::new(),
            },
        }
    }

    /// A tensor in global memory.
    pub fn global(&mut self, name: &str, dtype: ElementType, shape: &[u64], role: Role) -> View {
        self.tensor(name, (Space::Gm, role), dtype, shape)
    }

    fn tensor(
        &mut self,
        name: &str,
        (space, role): (Space, Role),
        dtype: ElementType,
        shape: &[u64],
    ) -> View {
        self.program.tensors.push(Tensor {
            name: name.to_owned(),
            space,
            dtype,
            shape: shape.to_vec(),
            role,
            offset: None,
            view_of: None,
            view_offset: 0,
            row_stride: None,
        });
        View(name.to_owned())
    }

    /// A tensor in a memory of a core, by the memory's name.
    ///
    /// # Panics
    /// When there is no such memory.
    pub fn local(&mut self, name: &str, memory: &str, dtype: ElementType, shape: &[u64]) -> View {
        self.tensor(name, (space(memory), Role::Workspace), dtype, shape)
    }

    /// A buffer of one to four slots.
    ///
    /// # Panics
    /// When there is no such memory or the number of slots is another.
    pub fn buffer(
        &mut self,
        name: &str,
        (memory, slots): (&str, usize),
        dtype: ElementType,
        shape: &[u64],
    ) -> Buffer {
        assert!((1..=4).contains(&slots), "a buffer has one to four slots");
        let names: Vec<String> = (0..slots).map(|slot| format!("{name}.{slot}")).collect();
        for name in &names {
            self.local(name, memory, dtype, shape);
        }
        Buffer(names)
    }

    /// The last tensor that was declared, to set what the methods do not.
    pub fn last_tensor(&mut self) -> &mut Tensor {
        self.program.tensors.last_mut().expect("a tensor was declared")
    }

    /// The cube lane.
    pub fn cube(&mut self, write: impl FnOnce(&mut Lane)) {
        self.lane(LaneName::Cube, write);
    }

    /// Both vector lanes.
    pub fn vector(&mut self, write: impl FnOnce(&mut Lane)) {
        self.lane(LaneName::Vec, write);
    }

    /// A lane by name.
    pub fn lane(&mut self, lane: LaneName, write: impl FnOnce(&mut Lane)) {
        let mut body = Lane::default();
        write(&mut body);
        self.program.lanes.push(LaneProgram { lane, instructions: body.instructions });
    }

    /// A micro program with these parameters; a name that begins with `$` is a number, any other a tensor.
    pub fn micro(&mut self, name: &str, parameters: &[&str], write: impl FnOnce(&mut Lane)) {
        let parameters = parameters
            .iter()
            .map(|parameter| match parameter.strip_prefix('$') {
                Some(name) => Parameter { name: name.to_owned(), kind: ParameterKind::Scalar },
                None => Parameter { name: (*parameter).to_owned(), kind: ParameterKind::Tensor },
            })
            .collect();
        let mut body = Lane::default();
        write(&mut body);
        self.program.micros.insert(name.to_owned(), Micro { parameters, instructions: body.instructions });
    }

    /// The program.
    #[must_use]
    pub fn build(self) -> Program {
        self.program
    }
}

impl Lane {
    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("_{stem}{}", self.names)
    }

    /// Any instruction.
    pub fn emit(&mut self, op: &str, args: &[(&str, Argument)]) -> &mut Self {
        self.emit_on(None, op, args)
    }

    /// Any instruction on a pipe.
    pub fn emit_on(&mut self, pipe: Option<Pipe>, op: &str, args: &[(&str, Argument)]) -> &mut Self {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.instructions.push(Instruction { op: op.to_owned(), pipe, args, at: None });
        self
    }

    /// A variable of a given name.
    pub fn var(&mut self, name: &str, value: impl Into<Argument>) -> Var {
        self.emit("create_var", &[("var_name", name.into()), ("value", value.into())]);
        Var(name.to_owned())
    }

    /// `out = a op b` with one of the scalar instructions; for example `var_mul`.
    pub fn calc(&mut self, op: &str, a: impl Into<Argument>, b: impl Into<Argument>) -> Var {
        let out = self.fresh("v");
        self.emit(op, &[("out", out.as_str().into()), ("a", a.into()), ("b", b.into())]);
        Var(out)
    }

    /// A scalar that the topology gives: `GetCubeIdx` and its like.
    pub fn ask(&mut self, op: &str) -> Var {
        let out = self.fresh("v");
        self.emit(op, &[("out", out.as_str().into())]);
        Var(out)
    }

    /// A loop.
    pub fn range(
        &mut self,
        start: impl Into<Argument>,
        stop: impl Into<Argument>,
        step: impl Into<Argument>,
        body: impl FnOnce(&mut Self, Var),
    ) {
        let name = self.fresh("i");
        self.emit(
            "start_loop",
            &[
                ("var_name", name.as_str().into()),
                ("start", start.into()),
                ("stop", stop.into()),
                ("step", step.into()),
            ],
        );
        body(self, Var(name));
        self.emit("end_loop", &[]);
    }

    /// A branch.
    pub fn when(&mut self, condition: &str, body: impl FnOnce(&mut Self)) {
        self.emit("start_if", &[("cond", condition.into())]);
        body(self);
        self.emit("end_if", &[]);
    }

    /// A region in which events between pipes are inserted.
    pub fn auto_sync(&mut self, body: impl FnOnce(&mut Self)) {
        self.emit("start_auto_sync", &[]);
        body(self);
        self.emit("end_auto_sync", &[]);
    }

    /// The slot of a buffer for a turn.
    pub fn slot(&mut self, buffer: &Buffer, index: &Var) -> View {
        let view = self.fresh("slot");
        let slots: Vec<&str> = buffer.0.iter().map(String::as_str).collect();
        self.emit(
            "get_buf",
            &[("view_name", view.as_str().into()), ("index", index.into()), ("slot_names", slots.into())],
        );
        View(view)
    }

    /// `count` rows from `first` on of a two-dimensional tensor in global memory.
    pub fn rows(&mut self, tensor: &View, first: &Var, count: i64, shape: [i64; 2]) -> View {
        self.window(tensor, [first.into(), 0.into()], [count.into(), shape[1].into()], shape)
    }

    /// `count` elements from `first` on of a tensor of `length` elements in global memory.
    pub fn span(&mut self, tensor: &View, first: &Var, count: &Var, length: i64) -> View {
        let view = self.fresh("gm");
        self.emit(
            "slice_gm_tensor",
            &[
                ("view_name", view.as_str().into()),
                ("source_name", tensor.into()),
                ("offset", vec![first].into()),
                ("src_dim", vec![length].into()),
                ("span", vec![count].into()),
            ],
        );
        View(view)
    }

    /// A window of a two-dimensional tensor in global memory.
    pub fn window(
        &mut self,
        tensor: &View,
        offset: [Argument; 2],
        span: [Argument; 2],
        shape: [i64; 2],
    ) -> View {
        let view = self.fresh("gm");
        self.emit(
            "slice_gm_tensor",
            &[
                ("view_name", view.as_str().into()),
                ("source_name", tensor.into()),
                ("offset", Argument::List(offset.into())),
                ("src_dim", shape.to_vec().into()),
                ("span", Argument::List(span.into())),
            ],
        );
        View(view)
    }

    /// A window of a two-dimensional tensor in a core's memory.
    pub fn part(&mut self, tensor: &View, offset: [Argument; 2], span: [Argument; 2]) -> View {
        let view = self.fresh("part");
        self.emit(
            "slice_tensor",
            &[
                ("view_name", view.as_str().into()),
                ("source_name", tensor.into()),
                ("offset", Argument::List(offset.into())),
                ("span", Argument::List(span.into())),
            ],
        );
        View(view)
    }

    /// A window of a tensor that is known by name.
    pub fn part_of(&mut self, tensor: &str, offset: [i64; 2], span: [i64; 2]) -> View {
        self.part(&View(tensor.to_owned()), offset.map(Into::into), span.map(Into::into))
    }

    /// An event: `create_sevent` and its like.
    pub fn event(&mut self, op: &str, name: &str, (source, target): (&str, &str), preset: bool) {
        self.emit(
            op,
            &[
                ("name", name.into()),
                ("src_pipe", source.into()),
                ("dst_pipe", target.into()),
                ("preset", preset.into()),
            ],
        );
    }
}
