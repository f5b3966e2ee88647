//! One lane's instructions to [`Code`].

use std::collections::BTreeSet;

use crate::device::Device;
use crate::element::ElementType;
use crate::error::{ProgramError, Site};
use crate::ops::{self, Kind, Op, OperandDefault, OperandSpec, Place, Spec};
use crate::program::{Argument, Instruction, Pipe};

use super::names::Names;
use super::{
    Call, Code, EventDefinition, Index, Instr, Lane, MicroCode, NONE, Operand, Placed, Printed, Variable,
    condition,
};

/// What a lane is compiled against.
pub(super) struct Unit<'a> {
    pub(super) lane: Lane,
    pub(super) tensors: &'a [Placed],
    pub(super) micros: &'a [MicroCode],
    pub(super) micro_names: &'a [&'a String],
    pub(super) device: &'a Device,
}

/// Names of a lane while it is compiled.
#[derive(Default)]
struct Tables {
    variables: Names,
    dtypes: Vec<Option<ElementType>>,
    lists: Names,
    views: Names,
    events: Names,
    made_views: BTreeSet<u32>,
}

/// An instruction under work, for messages.
struct Here<'a> {
    site: &'a Site,
}

impl Here<'_> {
    fn refuse(&self, problem: impl Into<String>) -> ProgramError {
        ProgramError::Instruction { site: Box::new(self.site.clone()), problem: problem.into() }
    }

    fn operand(&self, operand: &str, problem: impl Into<String>) -> ProgramError {
        ProgramError::Operand {
            site: Box::new(self.site.clone()),
            operand: operand.to_owned(),
            problem: problem.into(),
        }
    }
}

pub(super) fn compile(instructions: &[Instruction], unit: &Unit<'_>) -> Result<Code, ProgramError> {
    let mut tables = Tables::default();
    for tensor in unit.tensors {
        tables.views.intern(&tensor.name);
    }
    let sites: Vec<Site> = instructions
        .iter()
        .enumerate()
        .map(|(index, instruction)| Site {
            list: unit.lane.name().to_owned(),
            index,
            op: instruction.op.clone(),
            at: instruction.at.clone(),
        })
        .collect();
    let mut code = Code {
        instrs: Vec::with_capacity(instructions.len()),
        sites: Vec::new(),
        variables: Vec::new(),
        lists: Vec::new(),
        views: Vec::new(),
        conditions: Vec::new(),
        loops: 0,
        events: Vec::new(),
        buffers: Vec::new(),
        calls: Vec::new(),
        prints: Vec::new(),
        texts: Vec::new(),
        serial: true,
    };
    declare(instructions, &sites, &mut tables, &mut code, unit)?;
    for (instruction, site) in instructions.iter().zip(&sites) {
        let here = Here { site };
        let instr = compile_one(instruction, &here, &mut tables, &mut code, unit)?;
        code.serial &= !is_synchronising(instr.op);
        code.instrs.push(instr);
    }
    link(&mut code, &sites)?;
    code.sites = sites;
    code.variables = tables.dtypes.into_iter().map(|dtype| Variable { dtype }).collect();
    code.lists = tables.lists.list;
    code.views = tables.views.list;
    Ok(code)
}

const fn is_synchronising(op: Op) -> bool {
    matches!(
        op,
        Op::CreateSevent
            | Op::CreateDevent
            | Op::CreateTevent
            | Op::CreateQevent
            | Op::EventSet
            | Op::EventSetall
            | Op::EventWait
            | Op::EventRelease
            | Op::SetFlag
            | Op::WaitFlag
    )
}

fn find<'a>(instruction: &Instruction, here: &Here<'_>) -> Result<&'a Spec, ProgramError> {
    ops::lane_spec(&instruction.op).ok_or_else(|| {
        let problem = if ops::micro_spec(&instruction.op).is_some() {
            "a micro instruction belongs into a micro program"
        } else {
            "no such instruction; docs/npu/instructions.md lists them"
        };
        here.refuse(problem)
    })
}

/// Makes every name that an instruction defines known, so that a name never defined is an error wherever it is used.
fn declare(
    instructions: &[Instruction],
    sites: &[Site],
    tables: &mut Tables,
    code: &mut Code,
    unit: &Unit<'_>,
) -> Result<(), ProgramError> {
    let mut ids = std::collections::BTreeMap::<(Pipe, Pipe), usize>::new();
    for (instruction, site) in instructions.iter().zip(sites) {
        let here = Here { site };
        let spec = find(instruction, &here)?;
        for operand in &spec.operands {
            let Some(Argument::Text(name)) = instruction.args.get(operand.name) else { continue };
            match operand.kind {
                Kind::Output => {
                    tables.variables.intern(name.split('[').next().unwrap_or(name));
                    tables.dtypes.resize(tables.variables.list.len(), None);
                }
                Kind::View => {
                    let view = tables.views.intern(name);
                    if (view as usize) < unit.tensors.len() {
                        return Err(here.operand(
                            operand.name,
                            format!("`{name}` is a tensor; call the view otherwise"),
                        ));
                    }
                    tables.made_views.insert(view);
                }
                Kind::Event if matches!(spec.operands[0].name, "name") => {
                    let flags = match spec.op {
                        Op::CreateSevent => 1,
                        Op::CreateDevent => 2,
                        Op::CreateTevent => 3,
                        _ => 4,
                    };
                    if tables.events.get(name).is_some() {
                        return Err(here.operand("name", format!("there is an event `{name}` already")));
                    }
                    tables.events.intern(name);
                    let pipe = |operand: &str| {
                        instruction.args.get(operand).and_then(pipe_of).ok_or_else(|| {
                            here.operand(
                                operand,
                                "is missing or no pipe; give S, MTE2, MTE1, M, FIX, V or MTE3",
                            )
                        })
                    };
                    let (source, target) = (pipe("src_pipe")?, pipe("dst_pipe")?);
                    for (operand, pipe) in [("src_pipe", source), ("dst_pipe", target)] {
                        if !unit.lane.pipes().contains(&pipe) {
                            let problem = format!("{} is no pipe of {}", pipe.name(), unit.lane.name());
                            return Err(here.operand(operand, problem));
                        }
                    }
                    let used = ids.entry((source, target)).or_default();
                    *used += flags;
                    if *used > unit.device.events_per_pair {
                        return Err(here.refuse(format!(
                            "{} to {} would use {used} event ids, the device has {}; share an event",
                            source.name(),
                            target.name(),
                            unit.device.events_per_pair
                        )));
                    }
                    let preset = match instruction.args.get("preset") {
                        None | Some(Argument::Bool(false) | Argument::Int(0)) => false,
                        Some(Argument::Bool(true) | Argument::Int(1)) => true,
                        Some(_) => return Err(here.operand("preset", "must be true or false")),
                    };
                    code.events.push(EventDefinition { name: name.clone(), source, target, flags, preset });
                }
                _ => {}
            }
        }
        if spec.op == Op::CreateVarlist {
            let Some(Argument::Text(name)) = instruction.args.get("name") else {
                return Err(here.operand("name", "is missing; give the list a name"));
            };
            tables.lists.intern(name);
        }
    }
    Ok(())
}

fn pipe_of(argument: &Argument) -> Option<Pipe> {
    let Argument::Text(name) = argument else { return None };
    Pipe::ALL.into_iter().find(|pipe| pipe.name() == name)
}

fn compile_one(
    instruction: &Instruction,
    here: &Here<'_>,
    tables: &mut Tables,
    code: &mut Code,
    unit: &Unit<'_>,
) -> Result<Instr, ProgramError> {
    let spec = find(instruction, here)?;
    for name in instruction.args.keys() {
        if !spec.operands.iter().any(|operand| operand.name == name) {
            return Err(here.operand(name, format!("is not known; it takes `{}`", spec.text)));
        }
    }
    let pipe = place(spec, instruction.pipe, here, unit.lane)?;
    let mut instr = Instr {
        op: spec.op,
        pipe,
        tensors: [NONE; 4],
        out: NONE,
        ints: Box::default(),
        val: Operand::Absent,
        jump: NONE,
        aux: NONE,
    };
    let mut ints = Vec::new();
    let mut values = Vec::<(&str, Operand)>::new();
    let mut tensor = 0;
    for operand in &spec.operands {
        let argument = instruction.args.get(operand.name);
        match &operand.kind {
            Kind::Integer | Kind::Number => {
                let value = number(argument, operand, &values, here, tables)?;
                values.push((operand.name, value));
                ints.push(value);
            }
            Kind::Float => instr.val = number(argument, operand, &values, here, tables)?,
            Kind::Word(words) => ints.push(word(argument, operand, words, here)?),
            Kind::Element => {
                let dtype = element(argument, operand, here)?;
                ints.push(dtype.map_or(Operand::Absent, |dtype| Operand::Int(dtype as i64)));
                if let (Op::CreateVar, Some(dtype)) = (spec.op, dtype) {
                    tables.dtypes[instr.out as usize] = Some(dtype);
                }
            }
            Kind::Tensor => {
                let view = match argument {
                    None if operand.default == OperandDefault::Absent => NONE,
                    _ => view_named(argument, operand, here, tables)?,
                };
                instr.tensors[tensor] = view;
                tensor += 1;
            }
            Kind::View => {
                let name = text(argument, operand, here)?;
                instr.out = tables.views.get(name).unwrap_or(NONE);
            }
            Kind::Output => {
                let name = text(argument, operand, here)?;
                if name.contains('[') {
                    // An element of a list: keep the operand, it is stored through it.
                    let item = leaf(name, tables).map_err(|problem| here.operand(operand.name, problem))?;
                    ints.push(item);
                    instr.out = NONE;
                } else {
                    instr.out = tables.variables.get(name).unwrap_or(NONE);
                }
            }
            Kind::Event => {
                let name = text(argument, operand, here)?;
                let event = tables.events.get(name).ok_or_else(|| {
                    here.operand(
                        operand.name,
                        format!("there is no event `{name}`{}", tables.events.hint(name)),
                    )
                })?;
                instr.out = event;
            }
            Kind::Pipe => {
                let pipe = argument.and_then(pipe_of).ok_or_else(|| {
                    here.operand(operand.name, "is missing or no pipe; give S, MTE2, MTE1, M, FIX, V or MTE3")
                })?;
                ints.push(Operand::Int(pipe as i64));
            }
            Kind::List => list(argument, operand, &mut ints, here, tables)?,
            Kind::Register | Kind::Mask => unreachable!("lanes have no registers"),
            Kind::Any => {}
        }
    }
    // An output that is a list's element comes first in the table, so it is the first integer: move it to the end.
    if spec.operands.first().is_some_and(|operand| operand.kind == Kind::Output) && instr.out == NONE {
        ints.rotate_left(1);
    }
    instr.ints = ints.into();
    extra(instruction, &mut instr, here, tables, (code, unit))?;
    Ok(instr)
}

fn place(spec: &Spec, asked: Option<Pipe>, here: &Here<'_>, lane: Lane) -> Result<Pipe, ProgramError> {
    let Place::Pipes(pipes) = &spec.place else {
        return match asked {
            None | Some(Pipe::S) => Ok(Pipe::S),
            Some(pipe) => Err(here.refuse(format!("runs on the control actor, not on {}", pipe.name()))),
        };
    };
    if let Some(pipe) = asked.filter(|pipe| !pipes.contains(pipe)) {
        let known = pipes.iter().map(|pipe| pipe.name()).collect::<Vec<_>>().join(", ");
        return Err(here.refuse(format!("cannot run on {}; it runs on {known}", pipe.name())));
    }
    let found = asked.or_else(|| pipes.iter().copied().find(|pipe| lane.pipes().contains(pipe)));
    found.filter(|pipe| lane.pipes().contains(pipe)).ok_or_else(|| {
        let known = pipes.iter().map(|pipe| pipe.name()).collect::<Vec<_>>().join(", ");
        here.refuse(format!("runs on {known}, which {} does not have; put it into another lane", lane.name()))
    })
}

fn text<'a>(
    argument: Option<&'a Argument>,
    operand: &OperandSpec,
    here: &Here<'_>,
) -> Result<&'a str, ProgramError> {
    match argument {
        Some(Argument::Text(text)) => Ok(text),
        Some(_) => Err(here.operand(operand.name, "must be a name")),
        None => Err(here.operand(operand.name, "is missing")),
    }
}

fn view_named(
    argument: Option<&Argument>,
    operand: &OperandSpec,
    here: &Here<'_>,
    tables: &Tables,
) -> Result<u32, ProgramError> {
    let name = text(argument, operand, here)?;
    tables.views.get(name).ok_or_else(|| {
        here.operand(operand.name, format!("there is no tensor or view `{name}`{}", tables.views.hint(name)))
    })
}

/// A name or a literal as text.
fn leaf(text: &str, tables: &Tables) -> Result<Operand, String> {
    match text {
        "true" | "True" => return Ok(Operand::Int(1)),
        "false" | "False" => return Ok(Operand::Int(0)),
        _ => {}
    }
    if let Ok(value) = text.parse() {
        return Ok(Operand::Int(value));
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')) {
        return text.parse().map(Operand::Float).map_err(|_| format!("`{text}` is no number"));
    }
    if let Some((list, index)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        let found = tables.lists.get(list);
        let list = found.ok_or_else(|| format!("there is no list `{list}`{}", tables.lists.hint(list)))?;
        return match leaf(index, tables)? {
            Operand::Int(at) if at >= 0 => Ok(Operand::Item { list, at: Index::At(at as u32) }),
            Operand::Variable(at) => Ok(Operand::Item { list, at: Index::Variable(at) }),
            _ => Err(format!("`{index}` is no index; use a number or a variable")),
        };
    }
    let found = tables.variables.get(text).map(Operand::Variable);
    found.ok_or_else(|| format!("there is no variable `{text}`{}", tables.variables.hint(text)))
}

fn number(
    argument: Option<&Argument>,
    operand: &OperandSpec,
    before: &[(&str, Operand)],
    here: &Here<'_>,
    tables: &Tables,
) -> Result<Operand, ProgramError> {
    match (argument, &operand.default) {
        (Some(Argument::Int(value)), _) => Ok(Operand::Int(*value)),
        (Some(Argument::Bool(value)), _) => Ok(Operand::Int(i64::from(*value))),
        (Some(Argument::Float(value)), _) => Ok(Operand::Float(*value)),
        (Some(Argument::Text(name)), _) => {
            leaf(name, tables).map_err(|problem| here.operand(operand.name, problem))
        }
        (Some(_), _) => Err(here.operand(operand.name, "must be a number or the name of a variable")),
        (None, OperandDefault::Value(value)) if value.fract() == 0.0 => Ok(Operand::Int(*value as i64)),
        (None, OperandDefault::Value(value)) => Ok(Operand::Float(*value)),
        (None, OperandDefault::Like(other)) => {
            let found = before.iter().find(|(name, _)| name == other);
            Ok(found.map_or(Operand::Absent, |(_, value)| *value))
        }
        (None, OperandDefault::Absent) => Ok(Operand::Absent),
        (None, _) => Err(here.operand(operand.name, "is missing")),
    }
}

fn word(
    argument: Option<&Argument>,
    operand: &OperandSpec,
    words: &[&str],
    here: &Here<'_>,
) -> Result<Operand, ProgramError> {
    let chosen = match (argument, &operand.default) {
        (Some(Argument::Text(word)), _) => word.as_str(),
        (None, OperandDefault::Word(word)) => word,
        _ => "nothing",
    };
    let found = words.iter().position(|word| *word == chosen);
    found
        .map(|at| Operand::Int(at as i64))
        .ok_or_else(|| here.operand(operand.name, format!("is `{chosen}`; give one of {}", words.join(", "))))
}

fn element(
    argument: Option<&Argument>,
    operand: &OperandSpec,
    here: &Here<'_>,
) -> Result<Option<ElementType>, ProgramError> {
    match argument {
        None if operand.default == OperandDefault::Absent => Ok(None),
        Some(Argument::Text(name)) => ElementType::from_name(name).map(Some).ok_or_else(|| {
            here.operand(operand.name, format!("`{name}` is no element type; for example `f16`"))
        }),
        _ => Err(here.operand(operand.name, "is missing; give an element type such as `f16`")),
    }
}

/// A list becomes its length and four integers.
fn list(
    argument: Option<&Argument>,
    operand: &OperandSpec,
    ints: &mut Vec<Operand>,
    here: &Here<'_>,
    tables: &Tables,
) -> Result<(), ProgramError> {
    let empty = Vec::new();
    let members = match argument {
        Some(Argument::List(members)) if !members.is_empty() && members.len() <= 4 => members,
        None if operand.default == OperandDefault::Absent => &empty,
        _ => return Err(here.operand(operand.name, "must be a list of one to four integers or variables")),
    };
    ints.push(Operand::Int(members.len() as i64));
    for at in 0..4 {
        ints.push(match members.get(at) {
            None => Operand::Absent,
            member => number(member, operand, &[], here, tables)?,
        });
    }
    Ok(())
}

/// What a few instructions carry besides numbers and tensors.
fn extra(
    instruction: &Instruction,
    instr: &mut Instr,
    here: &Here<'_>,
    tables: &mut Tables,
    (code, unit): (&mut Code, &Unit<'_>),
) -> Result<(), ProgramError> {
    let argument = |name: &str| instruction.args.get(name);
    match instr.op {
        Op::StartIf | Op::StartElif => {
            let condition = match argument("cond") {
                Some(Argument::Text(text)) => condition::parse(text, &mut |text| leaf(text, tables))
                    .map_err(|problem| here.operand("cond", problem))?,
                Some(Argument::Bool(value)) => condition::Condition::Truth(Operand::Int(i64::from(*value))),
                Some(Argument::Int(value)) => condition::Condition::Truth(Operand::Int(*value)),
                Some(Argument::Float(value)) => condition::Condition::Truth(Operand::Float(*value)),
                _ => return Err(here.operand("cond", "must be text, a number or a truth value")),
            };
            instr.aux = code.conditions.len() as u32;
            code.conditions.push(condition);
        }
        Op::StartLoop | Op::StartMicroLoop => {
            instr.aux = code.loops as u32;
            code.loops += 1;
        }
        Op::CreateVarlist => {
            let Some(Argument::Text(name)) = argument("name") else { unreachable!("declared before") };
            instr.out = tables.lists.get(name).unwrap_or(NONE);
        }
        Op::GetBuf => {
            let Some(Argument::List(slots)) = argument("slot_names") else {
                return Err(here.operand("slot_names", "must be a list of tensors"));
            };
            if slots.is_empty() || slots.len() > 4 {
                return Err(
                    here.operand("slot_names", format!("has {} slots; give one to four", slots.len()))
                );
            }
            let spec =
                OperandSpec { name: "slot_names", kind: Kind::Tensor, default: OperandDefault::Required };
            let slots = slots.iter().map(|slot| view_named(Some(slot), &spec, here, tables));
            instr.aux = code.buffers.len() as u32;
            code.buffers.push(slots.collect::<Result<_, _>>()?);
        }
        Op::Barrier => instr.aux = u32::from(instr.ints[0] == Operand::Int(0)),
        Op::SimPrint => {
            let empty = Vec::new();
            let parts = match argument("payload") {
                Some(Argument::List(parts)) => parts,
                None => &empty,
                Some(_) => return Err(here.operand("payload", "must be a list")),
            };
            let parts = parts.iter().map(|part| match part {
                Argument::Text(text) => tables.views.get(text).map(Printed::Tensor).unwrap_or_else(|| {
                    leaf(text, tables).map_or_else(|_| Printed::Text(text.clone()), Printed::Number)
                }),
                Argument::Int(value) => Printed::Number(Operand::Int(*value)),
                Argument::Float(value) => Printed::Number(Operand::Float(*value)),
                other => Printed::Text(format!("{other:?}")),
            });
            instr.aux = code.prints.len() as u32;
            code.prints.push(parts.collect());
        }
        Op::SimDump => {
            let Some(Argument::Text(name)) = argument("filename") else {
                return Err(here.operand("filename", "must be text"));
            };
            if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
                return Err(here.operand("filename", format!("is `{name}`; give a plain file name")));
            }
            instr.aux = code.texts.len() as u32;
            code.texts.push(name.clone());
        }
        Op::CallMicro => {
            let Some(Argument::Text(name)) = argument("name") else {
                return Err(here.operand("name", "must be the name of a micro program"));
            };
            let Some(micro) = unit.micro_names.iter().position(|known| *known == name) else {
                return Err(here.operand("name", format!("there is no micro program `{name}`")));
            };
            instr.aux = code.calls.len() as u32;
            code.calls.push(bind(
                &unit.micros[micro],
                micro as u32,
                argument("call_bindings"),
                here,
                tables,
            )?);
        }
        _ => {}
    }
    Ok(())
}

fn bind(
    micro: &MicroCode,
    index: u32,
    bindings: Option<&Argument>,
    here: &Here<'_>,
    tables: &Tables,
) -> Result<Call, ProgramError> {
    let find = |at: usize, name: &str| match bindings {
        Some(Argument::List(list)) => list.get(at),
        Some(Argument::Map(map)) => map.get(name),
        _ => None,
    };
    let given = match bindings {
        Some(Argument::List(list)) => list.len(),
        Some(Argument::Map(map)) => map.len(),
        _ => 0,
    };
    if given != micro.parameters.len() {
        let problem = format!("binds {given} names, `{}` has {}", micro.name, micro.parameters.len());
        return Err(here.operand("call_bindings", problem));
    }
    let mut call = Call { micro: index, tensors: Vec::new(), scalars: Vec::new() };
    for (at, (name, tensor)) in micro.parameters.iter().enumerate() {
        let bound = find(at, name);
        if bound.is_none() {
            return Err(here.operand("call_bindings", format!("does not bind `{name}`")));
        }
        if *tensor {
            let spec =
                OperandSpec { name: "call_bindings", kind: Kind::Tensor, default: OperandDefault::Required };
            call.tensors.push(view_named(bound, &spec, here, tables)?);
        } else {
            let spec =
                OperandSpec { name: "call_bindings", kind: Kind::Number, default: OperandDefault::Required };
            call.scalars.push(number(bound, &spec, &[], here, tables)?);
        }
    }
    if call.scalars.len() > 8 || call.tensors.len() > 12 {
        return Err(
            here.operand("call_bindings", "binds more than 8 numbers or 12 tensors; split the micro program")
        );
    }
    Ok(call)
}

/// Fills in where loops and branches go.
fn link(code: &mut Code, sites: &[Site]) -> Result<(), ProgramError> {
    let mut open: Vec<Vec<usize>> = Vec::new();
    let is_loop = |op| matches!(op, Op::StartLoop | Op::StartMicroLoop);
    for (at, site) in sites.iter().enumerate() {
        let here = Here { site };
        let op = code.instrs[at].op;
        match op {
            Op::StartLoop | Op::StartMicroLoop | Op::StartIf => open.push(vec![at]),
            Op::StartElif | Op::StartElse => {
                let branch = open.last_mut().filter(|branch| !is_loop(code.instrs[branch[0]].op));
                let branch = branch.ok_or_else(|| here.refuse("has no `start_if` before it"))?;
                let last = branch[branch.len() - 1];
                if code.instrs[last].op == Op::StartElse {
                    return Err(here.refuse("comes after `start_else`; that must be the last branch"));
                }
                code.instrs[last].jump = at as u32;
                branch.push(at);
            }
            Op::EndIf => {
                let branch = open.pop().filter(|branch| !is_loop(code.instrs[branch[0]].op));
                let branch = branch.ok_or_else(|| here.refuse("ends no `start_if`"))?;
                for &part in &branch {
                    code.instrs[part].out = at as u32;
                }
                code.instrs[branch[branch.len() - 1]].jump = at as u32;
            }
            Op::EndLoop => {
                let start =
                    open.pop().map(|branch| branch[0]).filter(|&start| is_loop(code.instrs[start].op));
                let start = start.ok_or_else(|| here.refuse("ends no loop"))?;
                code.instrs[start].jump = at as u32;
                code.instrs[at].jump = start as u32;
            }
            Op::BreakLoop | Op::ContinueLoop => {
                let start =
                    open.iter().rev().map(|branch| branch[0]).find(|&start| is_loop(code.instrs[start].op));
                let start = start.ok_or_else(|| here.refuse("is not in a loop"))?;
                code.instrs[at].aux = start as u32;
            }
            _ => {}
        }
    }
    if let Some(branch) = open.last() {
        return Err(Here { site: &sites[branch[0]] }.refuse("is never ended"));
    }
    Ok(())
}
