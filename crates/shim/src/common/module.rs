//! Modules and libraries of kernels loaded at run time: Triton's cubins, NVRTC's results.

use std::collections::BTreeMap;
use std::sync::Arc;

use trompe_cuda_abi::pointer::{In, Out, Text};
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::compiler;
use trompe_device::kernel::Module;
use trompe_fatbin::{KernelInfo, Parameter, cubin};

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// First word of a fat binary and of its wrapper.
const FATBIN_MAGIC: u32 = 0xba55_ed50;
const FATBIN_WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// A cubin that says it is larger than this is damaged.
const LARGEST_IMAGE: u64 = 1 << 30;
/// PTX text longer than this is not looked at.
const LONGEST_PTX: usize = 64 << 20;

/// Loads an image: a cubin, a fat binary, or PTX text.
pub(crate) fn load(call: &mut Call<'_>, out: Out<u64>, image: Address) -> Outcome {
    if image == 0 {
        return Err(Failure::InvalidValue);
    }
    let device = call.device();
    call.activate(device)?;
    let module = read_image(image)?;
    let handle = call.machine().kernels.add_module(module);
    call.arguments = [handle, 0, 0, 0];
    out.write(handle)?;
    Ok(())
}

/// Loads a file.
pub(crate) fn load_file(call: &mut Call<'_>, out: Out<u64>, path: Text) -> Outcome {
    let mut image = std::fs::read(path.read()?).map_err(|_| RuntimeError::FILE_NOT_FOUND)?;
    // Text must end like a C string.
    image.push(0);
    load(call, out, image.as_ptr() as u64)
}

fn read_image(image: Address) -> Result<Module, Failure> {
    let bytes = |count: usize| {
        let mut content = Vec::new();
        In::<u8>::new(image as usize).append_to(&mut content, count).map(|()| content)
    };
    match In::<u32>::new(image as usize).read()? {
        // What the fat binary holds is compressed for several devices; its kernels are taken by name.
        FATBIN_MAGIC | FATBIN_WRAPPER_MAGIC => return Ok(Module::default()),
        word if word.to_le_bytes() == *b"\x7fELF" => {
            let size = cubin::image_size(&bytes(64)?).filter(|&size| size <= LARGEST_IMAGE);
            let size = size.ok_or(RuntimeError::INVALID_KERNEL_IMAGE)?;
            let content = bytes(size as usize)?;
            let kernels = cubin::kernels(&content).map_err(|_| RuntimeError::INVALID_KERNEL_IMAGE)?;
            let kernels = kernels.into_iter().map(|(name, info)| (name.to_owned(), Arc::new(info))).collect();
            return Ok(Module { kernels, complete: true, ..Module::default() });
        }
        _ => {}
    }
    let text = Text::new(image as usize).read()?;
    if let Some(kernels) = compiler::kernels(&text) {
        let kernels = kernels.map(|(name, sizes)| (name.to_owned(), Arc::new(laid_out(&sizes)))).collect();
        return Ok(Module { kernels, ..Module::default() });
    }
    if !text.contains(".version") || text.len() > LONGEST_PTX {
        return Ok(Module::default());
    }
    Ok(Module { kernels: ptx_kernels(&text), complete: true, ..Module::default() })
}

/// The entry points of PTX text with their parameter sizes.
fn ptx_kernels(text: &str) -> BTreeMap<String, Arc<KernelInfo>> {
    let mut kernels = BTreeMap::new();
    for entry in text.split(".entry").skip(1) {
        let entry = entry.trim_start();
        let name: String = entry.chars().take_while(|c| c.is_alphanumeric() || "_$%".contains(*c)).collect();
        let list = entry[name.len()..].trim_start();
        let list = list.strip_prefix('(').and_then(|rest| rest.split(')').next()).unwrap_or("");
        let mut parameters = Vec::new();
        let mut next = 0u32;
        for declaration in list.split(',').filter(|declaration| declaration.contains(".param")) {
            let (size, alignment) = ptx_parameter(declaration);
            let offset = next.next_multiple_of(alignment);
            parameters.push(Parameter { offset, size });
            next = offset + size;
        }
        kernels.insert(name, Arc::new(KernelInfo { parameters, ..KernelInfo::default() }));
    }
    kernels
}

/// A kernel whose parameters lie one after the other, each at a multiple of its size.
fn laid_out(sizes: &[u32]) -> KernelInfo {
    let mut next = 0u32;
    let parameter = |&size: &u32| {
        let offset = next.next_multiple_of(size.max(1));
        next = offset + size;
        Parameter { offset, size }
    };
    KernelInfo { parameters: sizes.iter().map(parameter).collect(), ..KernelInfo::default() }
}

/// Size and alignment of a declaration like `.param .align 16 .b8 name[64]` or `.param .u64 .ptr name`.
fn ptx_parameter(declaration: &str) -> (u32, u32) {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let width = words
        .iter()
        .filter_map(|word| {
            let digits = word.strip_prefix('.')?.trim_start_matches(['b', 'u', 's', 'f']);
            digits.parse::<u32>().ok().map(|bits| bits / 8)
        })
        .next()
        .unwrap_or(8);
    let after_align = words.iter().position(|word| *word == ".align").and_then(|at| words.get(at + 1));
    let alignment = after_align.and_then(|word| word.parse().ok()).unwrap_or(width).max(1);
    let count = declaration
        .split_once('[')
        .and_then(|(_, rest)| rest.split(']').next()?.trim().parse::<u32>().ok())
        .unwrap_or(1);
    (width * count, alignment)
}

/// `cuModuleUnload`, `cuLibraryUnload`, `cudaLibraryUnload`.
pub(crate) fn unload(call: &mut Call<'_>, module: Address) -> Outcome {
    call.machine().kernels.unload(module)?;
    Ok(())
}

/// `cuModuleGetFunction`, `cuLibraryGetKernel`, `cudaLibraryGetKernel`.
pub(crate) fn function(call: &mut Call<'_>, out: Out<u64>, module: Address, name: Text) -> Outcome {
    let name = name.read()?;
    let function = call.machine().kernels.function(module, &name)?;
    out.write(function.ok_or(Failure::Cuda(RuntimeError::SYMBOL_NOT_FOUND))?)?;
    Ok(())
}

/// `cuModuleGetFunctionCount`, `cuLibraryGetKernelCount`, `cudaLibraryGetKernelCount`.
pub(crate) fn function_count(call: &mut Call<'_>, count: Out<u32>, module: Address) -> Outcome {
    let found = call.machine().kernels.module(module)?.kernels.len();
    count.write(found as u32)?;
    Ok(())
}

/// `cuModuleGetGlobal`, `cuLibraryGetGlobal`, `cudaLibraryGetGlobal`: variables get a page each, made when asked for.
pub(crate) fn global(
    call: &mut Call<'_>,
    address: Out<u64>,
    bytes: Out<u64>,
    module: Address,
    name: Text,
) -> Outcome {
    const ROOM: u64 = 4096;
    let name = name.read()?;
    let device = call.device();
    let mut machine = call.machine();
    let known = machine.kernels.module(module)?.globals.get(&name).copied();
    let at = match known {
        Some(at) => at,
        None => {
            let at = machine.memory.allocate(device, ROOM)?;
            machine.kernels.module_mut(module)?.globals.insert(name, at);
            at
        }
    };
    address.write_if_given(at);
    bytes.write_if_given(ROOM);
    Ok(())
}

/// `cuLibraryGetModule`, `cuKernelGetFunction`, `cudaGetKernel`-like conversions: one handle stands for both.
pub(crate) fn same_module(call: &mut Call<'_>, out: Out<u64>, handle: Address) -> Outcome {
    call.machine().kernels.module(handle)?;
    out.write(handle)?;
    Ok(())
}

/// `cuKernelGetFunction`: a kernel and its function are one.
pub(crate) fn same_function(call: &mut Call<'_>, out: Out<u64>, handle: Address) -> Outcome {
    call.machine().kernels.get(handle)?;
    out.write(handle)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_entries_have_names_and_parameter_layouts() {
        let text = ".version 8.4\n.target sm_90\n.visible .entry add(\n\t.param .u64 .ptr .global .align 1 add_p0,\n\t\
                    .param .u32 add_p1,\n\t.param .align 16 .b8 add_p2[64]\n)\n{ ret; }\n.entry none()\n{ ret; }";
        let kernels = ptx_kernels(text);
        let layout = |name: &str| -> Vec<(u32, u32)> {
            kernels[name].parameters.iter().map(|parameter| (parameter.offset, parameter.size)).collect()
        };
        assert_eq!(layout("add"), [(0, 8), (8, 4), (16, 64)]);
        assert_eq!(layout("none"), []);
    }
}
