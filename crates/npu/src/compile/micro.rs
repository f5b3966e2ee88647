//! A micro program to code over numbered registers, masks, tensors and variables.

use crate::element::ElementType;
use crate::error::{ProgramError, Site};
use crate::ops::{self, Kind, Op, OperandDefault, OperandSpec};
use crate::program::{Argument, Instruction, Micro, ParameterKind};

use super::names::Names;
use super::{NONE, Operand};

/// A micro program that can run.
#[derive(Debug)]
pub(crate) struct MicroCode {
    pub(crate) name: String,
    /// Name, and whether it is a tensor.
    pub(crate) parameters: Vec<(String, bool)>,
    pub(crate) instrs: Vec<MicroInstr>,
    /// Element type of each register.
    pub(crate) registers: Vec<ElementType>,
    pub(crate) masks: usize,
    pub(crate) tensors: Vec<String>,
    pub(crate) variables: usize,
    pub(crate) loops: usize,
}

/// An instruction of a micro program.
#[derive(Debug)]
pub(crate) struct MicroInstr {
    pub(crate) op: Op,
    pub(crate) registers: [Register; 4],
    pub(crate) masks: [u32; 4],
    /// Tensors; the last one is a view that it makes.
    pub(crate) tensors: [u32; 2],
    pub(crate) ints: [Operand; 4],
    pub(crate) val: Operand,
    pub(crate) out: u32,
    pub(crate) jump: u32,
    pub(crate) aux: u32,
}

/// A register, or one of a list of registers that a variable picks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Register {
    pub(crate) base: u32,
    pub(crate) length: u32,
    pub(crate) index: Operand,
}

const NO_REGISTER: Register = Register { base: NONE, length: 0, index: Operand::Int(0) };

#[derive(Default)]
struct Tables {
    registers: Vec<(String, u32, u32)>,
    dtypes: Vec<ElementType>,
    masks: Names,
    tensors: Names,
    variables: Names,
}

pub(super) fn compile(name: &str, micro: &Micro) -> Result<MicroCode, ProgramError> {
    let mut tables = Tables::default();
    let mut parameters = Vec::new();
    for parameter in &micro.parameters {
        let tensor = parameter.kind == ParameterKind::Tensor;
        let names = if tensor { &mut tables.tensors } else { &mut tables.variables };
        names.intern(&parameter.name);
        parameters.push((parameter.name.clone(), tensor));
    }
    let sites: Vec<Site> = micro
        .instructions
        .iter()
        .enumerate()
        .map(|(index, instruction)| Site {
            list: format!("micro {name}"),
            index,
            op: instruction.op.clone(),
            at: instruction.at.clone(),
        })
        .collect();
    let mut instrs = Vec::new();
    let mut open = Vec::<usize>::new();
    let mut loops = 0;
    for (instruction, site) in micro.instructions.iter().zip(&sites) {
        let mut instr = compile_one(instruction, site, &mut tables)?;
        match instr.op {
            Op::StartLoop | Op::StartMicroLoop => {
                instr.aux = loops as u32;
                loops += 1;
                open.push(instrs.len());
            }
            Op::EndLoop => {
                let start = open.pop().ok_or_else(|| refuse(site, "ends no loop"))?;
                let end = instrs.len() as u32;
                instr.jump = start as u32;
                let start: &mut MicroInstr = &mut instrs[start];
                start.jump = end;
            }
            _ => {}
        }
        instrs.push(instr);
    }
    if let Some(&start) = open.last() {
        return Err(refuse(&sites[start], "is never ended"));
    }
    Ok(MicroCode {
        name: name.to_owned(),
        parameters,
        instrs,
        registers: tables.dtypes,
        masks: tables.masks.list.len(),
        tensors: tables.tensors.list,
        variables: tables.variables.list.len(),
        loops,
    })
}

fn refuse(site: &Site, problem: impl Into<String>) -> ProgramError {
    ProgramError::Instruction { site: Box::new(site.clone()), problem: problem.into() }
}

fn compile_one(
    instruction: &Instruction,
    site: &Site,
    tables: &mut Tables,
) -> Result<MicroInstr, ProgramError> {
    let spec = ops::micro_spec(&instruction.op)
        .ok_or_else(|| refuse(site, "no such micro instruction; docs/npu/instructions.md lists them"))?;
    let bad = |operand: &str, problem: String| ProgramError::Operand {
        site: Box::new(site.clone()),
        operand: operand.to_owned(),
        problem,
    };
    for name in instruction.args.keys() {
        if !spec.operands.iter().any(|operand| operand.name == name) {
            return Err(bad(name, format!("is not known; it takes `{}`", spec.text)));
        }
    }
    if instruction.pipe.is_some() {
        return Err(refuse(site, "is a micro instruction and takes no pipe"));
    }
    let mut instr = MicroInstr {
        op: spec.op,
        registers: [NO_REGISTER; 4],
        masks: [NONE; 4],
        tensors: [NONE; 2],
        ints: [Operand::Absent; 4],
        val: Operand::Absent,
        out: NONE,
        jump: NONE,
        aux: NONE,
    };
    let (mut registers, mut masks, mut tensors, mut ints) = (0, 0, 0, 0);
    let declares = matches!(spec.op, Op::CreateReg | Op::CreateReglist | Op::CreateMaskreg);
    for operand in &spec.operands {
        let argument = instruction.args.get(operand.name);
        let fail = |problem: String| bad(operand.name, problem);
        let text = || match argument {
            Some(Argument::Text(text)) => Ok(text.as_str()),
            Some(_) => Err(fail("must be a name".to_owned())),
            None => Err(fail("is missing".to_owned())),
        };
        let optional = argument.is_none() && operand.default == OperandDefault::Absent;
        match &operand.kind {
            Kind::Register if declares => {
                let name = text()?;
                let length = match instruction.args.get("length") {
                    None => 1,
                    Some(Argument::Int(length @ 1..=64)) => *length as u32,
                    Some(_) => return Err(bad("length", "must be a number from 1 to 64".to_owned())),
                };
                let base = tables.dtypes.len() as u32;
                let dtype = element(instruction, operand, &bad)?;
                tables.registers.retain(|(known, _, _)| known != name);
                tables.registers.push((name.to_owned(), base, length));
                tables.dtypes.extend((0..length).map(|_| dtype));
                instr.registers[0] = Register { base, length, index: Operand::Int(0) };
            }
            Kind::Register => {
                let name = text()?;
                instr.registers[registers] = register(name, tables).map_err(fail)?;
                registers += 1;
            }
            Kind::Mask if optional => masks += 1,
            Kind::Mask => {
                let name = text()?;
                let writes = declares || operand.name.starts_with("dst");
                let known = tables.masks.get(name);
                if known.is_none() && !writes {
                    return Err(fail(format!("there is no mask `{name}`{}", tables.masks.hint(name))));
                }
                instr.masks[masks] = tables.masks.intern(name);
                masks += 1;
            }
            Kind::Tensor | Kind::View => {
                let name = text()?;
                let view = operand.kind == Kind::View;
                let known = if view { Some(tables.tensors.intern(name)) } else { tables.tensors.get(name) };
                let known = known.ok_or_else(|| {
                    fail(format!("there is no tensor `{name}`{}", tables.tensors.hint(name)))
                })?;
                let at = if spec.op == Op::MicroSlice { usize::from(view) } else { tensors };
                instr.tensors[at] = known;
                tensors += 1;
            }
            Kind::Output => {
                let name = text()?;
                if spec.op == Op::UpdateMask && tables.variables.get(name).is_none() {
                    return Err(fail(format!("there is no variable `{name}`")));
                }
                instr.out = tables.variables.intern(name);
            }
            Kind::Integer | Kind::Number | Kind::Float => {
                let value = match (argument, &operand.default) {
                    (Some(Argument::Int(value)), _) => Operand::Int(*value),
                    (Some(Argument::Bool(value)), _) => Operand::Int(i64::from(*value)),
                    (Some(Argument::Float(value)), _) => Operand::Float(*value),
                    (Some(Argument::Text(name)), _) => variable(name, tables).map_err(fail)?,
                    (Some(_), _) => return Err(fail("must be a number or a variable".to_owned())),
                    (None, OperandDefault::Value(value)) => Operand::Int(*value as i64),
                    (None, _) => return Err(fail("is missing".to_owned())),
                };
                if operand.kind == Kind::Float {
                    instr.val = value;
                } else {
                    instr.ints[ints] = value;
                    ints += 1;
                }
            }
            Kind::Word(words) => {
                let word = match (argument, &operand.default) {
                    (Some(Argument::Text(word)), _) => word,
                    (None, OperandDefault::Word(word)) => *word,
                    _ => "nothing",
                };
                let found = words.iter().position(|known| *known == word);
                let found =
                    found.ok_or_else(|| fail(format!("is `{word}`; give one of {}", words.join(", "))))?;
                instr.ints[ints] = Operand::Int(found as i64);
                ints += 1;
            }
            Kind::Element if declares => {}
            Kind::Element => {}
            Kind::Any if spec.op == Op::CreateMaskreg => {
                instr.aux = match argument {
                    None => u32::MAX - 1,
                    Some(Argument::Text(mode)) => mask_mode(mode).ok_or_else(|| {
                        fail(format!("`{mode}` is no mode; give ALL, ALLF, VL1 to VL128, H, Q, M3 or M4"))
                    })?,
                    Some(_) => return Err(fail("must be text".to_owned())),
                };
                instr.ints[3] = Operand::Int(element(instruction, operand, &bad)? as i64);
            }
            _ => {}
        }
    }
    Ok(instr)
}

/// ALL 0, ALLF 1, H 2, Q 3, M3 4, M4 5, VLn 100 + n.
fn mask_mode(mode: &str) -> Option<u32> {
    let named = ["ALL", "ALLF", "H", "Q", "M3", "M4"].iter().position(|known| *known == mode);
    named.map(|at| at as u32).or_else(|| {
        let lanes: u32 = mode.strip_prefix("VL")?.parse().ok()?;
        (lanes.is_power_of_two() && lanes <= 128 || lanes == 256).then_some(100 + lanes)
    })
}

fn element(
    instruction: &Instruction,
    operand: &OperandSpec,
    bad: &dyn Fn(&str, String) -> ProgramError,
) -> Result<ElementType, ProgramError> {
    let _ = operand;
    match instruction.args.get("dtype") {
        None if instruction.op == "create_maskreg" => Ok(ElementType::F32),
        Some(Argument::Text(name)) => ElementType::from_name(name)
            .ok_or_else(|| bad("dtype", format!("`{name}` is no element type; for example `f32`"))),
        _ => Err(bad("dtype", "is missing; give an element type such as `f32`".to_owned())),
    }
}

fn variable(name: &str, tables: &Tables) -> Result<Operand, String> {
    let found = tables.variables.get(name).map(Operand::Variable);
    found.ok_or_else(|| format!("there is no variable `{name}`{}", tables.variables.hint(name)))
}

fn register(text: &str, tables: &Tables) -> Result<Register, String> {
    let (name, index) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, index)) => (name, Some(index)),
        None => (text, None),
    };
    let found = tables.registers.iter().find(|(known, _, _)| known == name);
    let &(_, base, length) = found.ok_or_else(|| format!("there is no register `{name}`"))?;
    let index = match index {
        None if length > 1 => return Err(format!("`{name}` is a list; say which, as in `{name}[0]`")),
        None => Operand::Int(0),
        Some(index) => match index.parse::<i64>() {
            Ok(at) if at >= 0 && at < i64::from(length) => Operand::Int(at),
            Ok(at) => return Err(format!("`{name}` has {length} registers, not one at {at}")),
            Err(_) => variable(index, tables)?,
        },
    };
    Ok(Register { base, length, index })
}
