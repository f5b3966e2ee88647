//! Where tensors lie in the memories of a core, and which of them lie over each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::Device;
use crate::error::ProgramError;
use crate::ops::Op;
use crate::program::{Role, Space, Tensor};

use super::{Code, NONE, Placed, View};

/// A tensor larger than this is taken for a mistake.
const LARGEST: u64 = 1 << 38;

/// Places every tensor; also returns the bytes used in each memory.
pub(super) fn place(
    tensors: &[Tensor],
    device: &Device,
) -> Result<(Vec<Placed>, BTreeMap<Space, u64>), ProgramError> {
    let mut placed: Vec<Placed> = Vec::with_capacity(tensors.len());
    let mut index: BTreeMap<&str, u32> = BTreeMap::new();
    let mut ends: BTreeMap<Space, u64> = BTreeMap::new();
    for (at, tensor) in tensors.iter().enumerate() {
        let refuse = |problem: String| Err(ProgramError::Tensor { tensor: tensor.name.clone(), problem });
        if index.insert(&tensor.name, at as u32).is_some() {
            return refuse("two tensors have this name; rename one".to_owned());
        }
        let elements = tensor.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
        let size = tensor.dtype.size() as u64;
        let Some(bytes) = elements.and_then(|n| n.checked_mul(size)).filter(|&bytes| bytes <= LARGEST) else {
            return refuse(format!("its shape {:?} is too large to be meant", tensor.shape));
        };
        if bytes == 0 || tensor.shape.len() > 4 {
            return refuse(format!("its shape is {:?}; give one to four dimensions above 0", tensor.shape));
        }
        if tensor.space != Space::Gm && tensor.role != Role::Workspace {
            return refuse("only tensors in global memory have a role".to_owned());
        }
        let (rows, cols) = match tensor.shape.as_slice() {
            [rest @ .., cols] if !rest.is_empty() => (rest.iter().product::<u64>(), *cols),
            _ => (1, bytes / size),
        };
        if rows > u64::from(u32::MAX) || cols > u64::from(u32::MAX) {
            return refuse(format!("its shape {:?} is too large to be meant", tensor.shape));
        }
        let stride = tensor.row_stride.unwrap_or(cols).min(u64::from(u32::MAX)) as u32;
        let mut view = View {
            space: tensor.space,
            dtype: tensor.dtype,
            tensor: at as u32,
            rows: rows as u32,
            cols: cols as u32,
            row_stride: stride,
            offset: 0,
            limit: bytes,
        };
        if let Some(source) = &tensor.view_of {
            let Some(root) = index.get(source.as_str()).map(|&root| &placed[root as usize]) else {
                return refuse(format!("it is a view of `{source}`, which is not declared before it"));
            };
            if root.view.space != tensor.space {
                return refuse(format!(
                    "it is in {}, its source in {}",
                    tensor.space.name(),
                    root.view.space.name()
                ));
            }
            let span = ((rows - 1) * u64::from(stride) + cols) * size;
            view.tensor = root.view.tensor;
            view.offset = root.view.offset + tensor.view_offset * size;
            view.limit = view.offset + span;
            if view.limit > root.view.limit {
                return refuse(format!("it ends at byte {}, `{source}` at {}", view.limit, root.view.limit));
            }
            placed.push(Placed {
                name: tensor.name.clone(),
                role: Role::Workspace,
                shape: tensor.shape.clone(),
                view,
                bytes: 0,
            });
            continue;
        }
        if tensor.row_stride.is_some() || tensor.view_offset != 0 {
            return refuse("only a view (`view_of`) has an offset and a row stride".to_owned());
        }
        if tensor.space != Space::Gm {
            let alignment = device.alignment.of(tensor.space);
            let end = ends.entry(tensor.space).or_insert(0);
            let offset = tensor.offset.unwrap_or_else(|| end.next_multiple_of(alignment));
            if offset % alignment != 0 {
                return refuse(format!(
                    "its offset {offset} is not a multiple of {alignment}, as {} asks",
                    tensor.space.name()
                ));
            }
            let capacity = device.capacity_kib.of(tensor.space) * 1024;
            if offset.saturating_add(bytes) > capacity {
                return Err(ProgramError::Capacity {
                    tensor: tensor.name.clone(),
                    bank: tensor.space.name(),
                    request: bytes,
                    used: offset,
                    capacity,
                });
            }
            *end = (*end).max(offset + bytes);
            view.offset = offset;
            view.limit = offset + bytes;
        } else if tensor.offset.is_some() {
            return refuse("tensors in global memory have no offset".to_owned());
        }
        placed.push(Placed {
            name: tensor.name.clone(),
            role: tensor.role,
            shape: tensor.shape.clone(),
            view,
            bytes,
        });
    }
    Ok((placed, ends))
}

/// Refuses tensors that lie over each other and live at the same time.
///
/// A tensor lives in a lane from its first to its last use, in whole outermost loops; one that several lanes use
/// lives throughout.
pub(super) fn check_overlaps(tensors: &[Placed], lanes: &[Option<Arc<Code>>; 3]) -> Result<(), ProgramError> {
    let mut by_space: BTreeMap<Space, Vec<usize>> = BTreeMap::new();
    for (at, tensor) in tensors.iter().enumerate() {
        if tensor.view.space != Space::Gm && tensor.bytes > 0 {
            by_space.entry(tensor.view.space).or_default().push(at);
        }
    }
    let mut pairs = Vec::new();
    for members in by_space.values() {
        for (i, &a) in members.iter().enumerate() {
            for &b in &members[i + 1..] {
                let (x, y) = (&tensors[a].view, &tensors[b].view);
                if x.offset < y.limit && y.offset < x.limit {
                    pairs.push((a, b));
                }
            }
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let lives: Vec<Option<Lives>> =
        lanes.iter().map(|code| code.as_ref().map(|code| lives(tensors, code))).collect();
    for (a, b) in pairs {
        let used = |tensor: usize| -> Vec<usize> {
            let lane = |lane: &usize| lives[*lane].as_ref().is_some_and(|lives| lives[tensor].is_some());
            (0..3).filter(lane).collect()
        };
        let (in_a, in_b) = (used(a), used(b));
        // The unified buffers of two vector lanes are two memories; the same code runs in both.
        let own_memories = tensors[a].view.space == Space::Ub && !in_a.contains(&0) && !in_b.contains(&0);
        let after_each_other = |lane: usize| {
            let life = |tensor: usize| lives[lane].as_ref().and_then(|lives| lives[tensor]);
            life(a).zip(life(b)).is_none_or(|(x, y)| x.1 < y.0 || y.1 < x.0)
        };
        let one_lane = in_a == in_b && in_a.len() == 1;
        let apart =
            in_a.is_empty() || in_b.is_empty() || (own_memories || one_lane) && (0..3).all(after_each_other);
        if !apart {
            return Err(ProgramError::Tensor {
                tensor: tensors[b].name.clone(),
                problem: format!(
                    "it lies over `{}` in {} (bytes {}..{} and {}..{}) while both are in use; move one",
                    tensors[a].name,
                    tensors[a].view.space.name(),
                    tensors[b].view.offset,
                    tensors[b].view.limit,
                    tensors[a].view.offset,
                    tensors[a].view.limit
                ),
            });
        }
    }
    Ok(())
}

/// First and last instruction that uses each tensor.
type Lives = Vec<Option<(usize, usize)>>;

fn lives(tensors: &[Placed], code: &Code) -> Lives {
    // What each view may stand for.
    let mut roots: Vec<Vec<u32>> = (0..code.views.len())
        .map(|view| tensors.get(view).map_or_else(Vec::new, |tensor| vec![tensor.view.tensor]))
        .collect();
    for _ in 0..2 {
        for instr in &code.instrs {
            let sources: Vec<u32> = match instr.op {
                Op::GetBuf => code.buffers[instr.aux as usize].clone(),
                Op::SliceGm | Op::SliceTensor => vec![instr.tensors[0]],
                _ => continue,
            };
            for source in sources {
                let add = roots[source as usize].clone();
                let to = &mut roots[instr.out as usize];
                add.into_iter().for_each(|root| {
                    if !to.contains(&root) {
                        to.push(root)
                    }
                });
            }
        }
    }
    let mut lives = vec![None; tensors.len()];
    let (mut depth, mut outermost) = (0, 0);
    let mut spans = Vec::new();
    for (at, instr) in code.instrs.iter().enumerate() {
        match instr.op {
            Op::StartLoop | Op::StartMicroLoop => {
                if depth == 0 {
                    outermost = at;
                }
                depth += 1;
            }
            Op::EndLoop => {
                depth -= 1;
                if depth == 0 {
                    spans.push((outermost, at));
                }
            }
            _ => {}
        }
    }
    for (at, instr) in code.instrs.iter().enumerate() {
        let span = spans.iter().find(|span| span.0 <= at && at <= span.1).copied().unwrap_or((at, at));
        let mut used: Vec<u32> = instr.tensors.iter().copied().filter(|&view| view != NONE).collect();
        if instr.op == Op::CallMicro {
            used.extend(&code.calls[instr.aux as usize].tensors);
        }
        for root in used.iter().flat_map(|&view| &roots[view as usize]) {
            let life = &mut lives[*root as usize];
            *life = Some(
                life.map_or(span, |(first, last): (usize, usize)| (first.min(span.0), last.max(span.1))),
            );
        }
    }
    lives
}
