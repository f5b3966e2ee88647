//! The program file: what a kernel is, as plain data.
//!
//! A program is JSON: tensors, micro programs, and one list of instructions per lane. Everything in it is named; names
//! are resolved once, by [`crate::compile`], which also says what is wrong with a program and where. The JSON schema
//! of this type is published as `docs/npu/program.schema.json`, and the instructions as `docs/npu/instructions.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::element::ElementType;
use crate::error::LoadError;

/// What the `format` field of a program says.
pub const FORMAT: &str = "trompe-npu-program";
/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 1;

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Always `trompe-npu-program`.
    pub format: String,
    /// Always 1.
    pub version: u32,
    /// The kernel's name.
    pub name: String,
    /// Number of cores; 0 takes as many as the device has.
    #[serde(default)]
    pub cores: u32,
    /// All tensors, in global memory and in the memories of a core.
    pub tensors: Vec<Tensor>,
    /// Micro programs that `call_micro` runs.
    #[serde(default)]
    pub micros: BTreeMap<String, Micro>,
    /// The lanes that have work.
    pub lanes: Vec<LaneProgram>,
    /// Free notes of whoever made the program; not read.
    #[serde(default)]
    pub metadata: BTreeMap<String, serde_json::Value>,
}

/// A named piece of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// How instructions call it.
    pub name: String,
    /// Where it lies.
    pub space: Space,
    /// Type of its elements.
    pub dtype: ElementType,
    /// Its shape; two dimensions count as rows and columns.
    pub shape: Vec<u64>,
    /// What a tensor in global memory is for.
    #[serde(default)]
    pub role: Role,
    /// Byte offset in its memory; without one the loader places it after the tensors before it, aligned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// A view: shares the storage of the tensor of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_of: Option<String>,
    /// First element of a view, in elements of this tensor's type.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub view_offset: u64,
    /// Elements between two rows of a view; without it rows follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_stride: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// Global memory, shared by all cores.
    Gm,
    /// Level-1 buffer of a core's cube.
    L1,
    /// Left operand of the matrix unit.
    L0a,
    /// Right operand of the matrix unit.
    L0b,
    /// Accumulator of the matrix unit.
    L0c,
    /// Unified buffer; each vector lane has its own, with the same layout.
    Ub,
}

impl Space {
    /// The name in programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gm => "gm",
            Self::L1 => "l1",
            Self::L0a => "l0a",
            Self::L0b => "l0b",
            Self::L0c => "l0c",
            Self::Ub => "ub",
        }
    }
}

/// What a tensor in global memory is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Needed before the run, not written out.
    Input,
    /// Zero before the run, written out.
    Output,
    /// Needed before the run and written out.
    Inout,
    /// Zero before the run, not written out; also every tensor of a core's own memories.
    #[default]
    Workspace,
}

/// The instructions of a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaneProgram {
    /// Which lane; `vec` stands for both vector lanes.
    pub lane: LaneName,
    /// What its control actor executes.
    pub instructions: Vec<Instruction>,
}

/// The lanes of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LaneName {
    /// The matrix lane.
    Cube,
    /// Both vector lanes, one program.
    Vec,
    /// The first vector lane.
    Vec0,
    /// The second vector lane.
    Vec1,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Its name.
    pub op: String,
    /// The pipe that runs it, where the instruction may run on more than one; `S` is the lane's control actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe: Option<Pipe>,
    /// Its operands by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, Argument>,
    /// Where it comes from, for messages: `kernel.py:31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// An operand: a literal, or the name of a variable, tensor or event; a condition is text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Argument {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Argument>),
    Map(BTreeMap<String, Argument>),
}

/// A unit that runs instructions in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Pipe {
    /// The control actor.
    S,
    /// Global memory to L1 or to the unified buffer.
    #[serde(rename = "MTE2")]
    Mte2,
    /// L1 to the operands of the matrix unit.
    #[serde(rename = "MTE1")]
    Mte1,
    /// The matrix unit.
    M,
    /// From the accumulator outwards.
    #[serde(rename = "FIX")]
    Fix,
    /// The vector unit.
    V,
    /// From the unified buffer outwards.
    #[serde(rename = "MTE3")]
    Mte3,
}

impl Pipe {
    /// Every pipe.
    pub const ALL: [Self; 7] = [Self::S, Self::Mte2, Self::Mte1, Self::M, Self::Fix, Self::V, Self::Mte3];

    /// The name in programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::Mte2 => "MTE2",
            Self::Mte1 => "MTE1",
            Self::M => "M",
            Self::Fix => "FIX",
            Self::V => "V",
            Self::Mte3 => "MTE3",
        }
    }
}

/// A micro program: what one `call_micro` does on the vector unit's registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Micro {
    /// Names that `call_micro` binds, in order: tensors first or mixed with numbers.
    pub parameters: Vec<Parameter>,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// A parameter of a micro program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What may be bound to it.
    pub kind: ParameterKind,
}

/// What may be bound to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// A tensor or view in the unified buffer.
    Tensor,
    /// A number.
    Scalar,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// When the text is no JSON, ends early, is of another format or version, or has unknown or missing fields.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        versioned(text, (FORMAT, VERSION))
    }

    /// The program as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a program has only text keys")
    }

    /// The published JSON schema of programs.
    #[must_use]
    pub fn schema() -> String {
        schema_text::<Self>()
    }
}

/// Reads a file of this format and version; errors name the place, as in `lanes[0].instructions[3].args`.
pub(crate) fn versioned<T: serde::de::DeserializeOwned>(
    text: &str,
    (format, version): (&'static str, u32),
) -> Result<T, LoadError> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| LoadError::Json(error.to_string()))?;
    let found = value.get("format").and_then(serde_json::Value::as_str).unwrap_or("none");
    if found != format {
        return Err(LoadError::Format { found: found.to_owned(), expected: format });
    }
    let found = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found != u64::from(version) {
        return Err(LoadError::Version { found, expected: version });
    }
    serde_path_to_error::deserialize(value).map_err(|error| LoadError::Json(error.to_string()))
}

/// The JSON schema of `T` as text.
pub(crate) fn schema_text<T: JsonSchema>() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is JSON") + "\n"
}
