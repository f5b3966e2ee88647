//! Kernels and the modules that they come from.
//!
//! A kernel is known by its mangled name. Its parameter layout and resources come from a database of the framework's fat
//! binaries (looked up once, at the first launch) or from the module image that it was loaded from.

use std::collections::BTreeMap;
use std::sync::Arc;

use trompe_base::KernelId;
use trompe_fatbin::KernelInfo;

use crate::handle::{HandleTable, Kind, NotLive};

/// What is known about a kernel's layout and resources.
#[derive(Clone, Debug)]
pub enum Facts {
    /// Nobody asked yet.
    NotAsked,
    /// No binary describes it.
    Unknown,
    /// From a binary.
    Known(Arc<KernelInfo>),
}

/// Device work that is really done, because its result is likely to be read by the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Semantics {
    /// Writes one value of this many bytes to each element: parameters are count, functor (the value), data pointer.
    Fill {
        /// Bytes per element.
        element: u8,
    },
}

/// One kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Id in records.
    pub id: KernelId,
    /// Mangled name.
    pub name: Arc<str>,
    /// Layout and resources.
    pub facts: Facts,
    /// What of it is really done.
    pub semantics: Option<Semantics>,
    /// Loaded at run time (Triton, NVRTC), not compiled into a library.
    pub from_module: bool,
    /// Generation of the record file that names it.
    pub announced: u32,
    /// Opted-in dynamic shared memory in bytes (`cudaFuncAttributeMaxDynamicSharedMemorySize`).
    pub max_dynamic_shared: u32,
    /// Other attributes that were set, by number.
    pub attributes: BTreeMap<i32, i32>,
}

impl Kernel {
    /// Layout and resources, if known.
    #[must_use]
    pub fn info(&self) -> Option<&KernelInfo> {
        match &self.facts {
            Facts::Known(info) => Some(info),
            Facts::NotAsked | Facts::Unknown => None,
        }
    }
}

/// A module or library loaded at run time.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Kernels that its image holds.
    pub kernels: BTreeMap<String, Arc<KernelInfo>>,
    /// Handles given out for its kernels, by name.
    pub functions: BTreeMap<String, u64>,
    /// Addresses given out for its variables, by name.
    pub globals: BTreeMap<String, u64>,
    /// The image could be read, so a name that it lacks does not exist.
    pub complete: bool,
}

/// Kernels and modules by handle.
#[derive(Debug)]
pub struct Kernels {
    kernels: HandleTable<Kernel>,
    modules: HandleTable<Module>,
    next: u32,
}

impl Default for Kernels {
    fn default() -> Self {
        Self { kernels: HandleTable::new(Kind::Function), modules: HandleTable::new(Kind::Module), next: 0 }
    }
}

impl Kernels {
    /// Makes a kernel known and returns its handle.
    pub fn add(&mut self, name: &str, facts: Facts, from_module: bool) -> u64 {
        let id = KernelId(self.next);
        self.next += 1;
        let kernel = Kernel {
            id,
            name: name.into(),
            facts,
            semantics: semantics_of(name),
            from_module,
            announced: 0,
            max_dynamic_shared: 0,
            attributes: BTreeMap::new(),
        };
        self.kernels.insert(kernel).0
    }

    /// A kernel.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get(&self, handle: u64) -> Result<&Kernel, NotLive> {
        self.kernels.get(handle)
    }

    /// A kernel, to change it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut Kernel, NotLive> {
        self.kernels.get_mut(handle)
    }

    /// Keeps a module and returns its handle.
    pub fn add_module(&mut self, module: Module) -> u64 {
        self.modules.insert(module).0
    }

    /// A module.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn module(&self, handle: u64) -> Result<&Module, NotLive> {
        self.modules.get(handle)
    }

    /// A module, to change it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn module_mut(&mut self, handle: u64) -> Result<&mut Module, NotLive> {
        self.modules.get_mut(handle)
    }

    /// Forgets a module with its kernels and returns it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn unload(&mut self, handle: u64) -> Result<Module, NotLive> {
        let module = self.modules.remove(handle)?;
        for &function in module.functions.values() {
            self.kernels.remove(function)?;
        }
        Ok(module)
    }

    /// The handle of a module's kernel; `None` when the module has no such kernel.
    ///
    /// # Errors
    /// When the module's handle is not live.
    pub fn function(&mut self, module: u64, name: &str) -> Result<Option<u64>, NotLive> {
        let found = self.modules.get(module)?;
        if let Some(&function) = found.functions.get(name) {
            return Ok(Some(function));
        }
        let facts = match found.kernels.get(name) {
            Some(info) => Facts::Known(Arc::clone(info)),
            None if found.complete => return Ok(None),
            None => Facts::Unknown,
        };
        let function = self.add(name, facts, true);
        self.modules.get_mut(module)?.functions.insert(name.to_owned(), function);
        Ok(Some(function))
    }
}

/// What of a kernel is really done, by its mangled name.
///
/// `at::native::FillFunctor<T>` in `vectorized_elementwise_kernel`: the T decides the element's size (Itanium C++ ABI,
/// "Builtin types", and the nested names of `c10::Half` and friends).
fn semantics_of(name: &str) -> Option<Semantics> {
    if !name.contains("vectorized_elementwise_kernel") {
        return None;
    }
    let (_, element) = name.split_once("FillFunctorI")?;
    let element = match element.as_bytes().first()? {
        b'b' | b'a' | b'h' => 1,
        b's' | b't' => 2,
        b'i' | b'j' | b'f' => 4,
        b'l' | b'm' | b'd' => 8,
        b'N' if element.starts_with("N3c104HalfE") || element.starts_with("N3c108BFloat16E") => 2,
        b'N' if element.starts_with("N3c1013Float8") => 1,
        b'N' if element.starts_with("N3c107complexIfE") => 8,
        b'N' if element.starts_with("N3c107complexIdE") => 16,
        _ => return None,
    };
    Some(Semantics::Fill { element })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_kernels_are_recognised_by_name() {
        let name = |element: &str| {
            format!(
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorI{element}EESt5arrayIPcLm1EEEEviT0_T1_"
            )
        };
        assert_eq!(semantics_of(&name("f")), Some(Semantics::Fill { element: 4 }));
        assert_eq!(semantics_of(&name("l")), Some(Semantics::Fill { element: 8 }));
        assert_eq!(semantics_of(&name("N3c108BFloat16E")), Some(Semantics::Fill { element: 2 }));
        assert_eq!(
            semantics_of("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10AddFunctorIfEE"),
            None
        );
    }

    #[test]
    fn a_complete_module_knows_its_kernels() {
        let mut kernels = Kernels::default();
        let mut module = Module { complete: true, ..Module::default() };
        module.kernels.insert("triton_add".to_owned(), Arc::default());
        let handle = kernels.add_module(module);
        let function = kernels.function(handle, "triton_add").expect("live").expect("there");
        assert_eq!(
            kernels.function(handle, "triton_add"),
            Ok(Some(function)),
            "the same kernel, the same handle"
        );
        assert_eq!(kernels.function(handle, "other"), Ok(None));
        kernels.unload(handle).expect("live");
        assert!(kernels.get(function).is_err());
        assert!(kernels.function(handle, "triton_add").is_err());
    }
}
