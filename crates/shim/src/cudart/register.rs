//! Kernels and variables that libraries register while they are loaded.
//!
//! A framework registers tens of thousands of them before `main`; most are never used. So registering only notes
//! addresses, and the table by address is made when something is first looked up.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trompe_cuda_abi::pointer::{Out, Text};
use trompe_cuda_abi::runtime::{Address, RuntimeError};
use trompe_device::kernel::Facts;

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// A registered variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    host: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    host: u64,
    name: u64,
}

/// What libraries registered.
#[derive(Debug)]
pub(crate) struct Registry {
    functions: Vec<Function>,
    variables: Vec<Variable>,
    indexed_functions: usize,
    indexed_variables: usize,
    function_names: Option<HashMap<u64, u64>>,
    variable_sizes: Option<HashMap<u64, u64>>,
    kernels: Option<HashMap<u64, u64>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    functions: Vec::new(),
    variables: Vec::new(),
    indexed_functions: 0,
    indexed_variables: 0,
    function_names: None,
    variable_sizes: None,
    kernels: None,
});

/// The registry, locked; never taken while the machine's lock is wanted.
pub(crate) fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Forgets which handles of the machine stand for the functions: the machine is made anew.
    pub(crate) fn forget_kernels(&mut self) {
        self.kernels = None;
    }

    /// The handle of the kernel that a host function launches.
    ///
    /// # Errors
    /// When no such function was registered.
    pub(crate) fn kernel(&mut self, machine: &mut HostMachine, host: Address) -> Result<u64, Failure> {
        let kernels = self.kernels.get_or_insert_default();
        if let Some(&kernel) = kernels.get(&host) {
            return Ok(kernel);
        }
        let names = self.function_names.get_or_insert_default();
        names.extend(self.functions[self.indexed_functions..].iter().map(|entry| (entry.host, entry.name)));
        self.indexed_functions = self.functions.len();
        let &name = names.get(&host).ok_or(RuntimeError::INVALID_DEVICE_FUNCTION)?;
        // The name lies in the registering library, which stays loaded while its functions are called.
        let name = Text::new(name as usize).read().map_err(|_| RuntimeError::INVALID_DEVICE_FUNCTION)?;
        let kernel = machine.kernels.add(&name, Facts::NotAsked, false);
        kernels.insert(host, kernel);
        Ok(kernel)
    }

    /// The size of the variable that a host symbol stands for.
    ///
    /// # Errors
    /// When no such variable was registered.
    pub(crate) fn variable(&mut self, host: Address) -> Result<u64, Failure> {
        let sizes = self.variable_sizes.get_or_insert_default();
        sizes.extend(self.variables[self.indexed_variables..].iter().map(|entry| (entry.host, entry.bytes)));
        self.indexed_variables = self.variables.len();
        sizes.get(&host).copied().ok_or(RuntimeError::INVALID_SYMBOL.into())
    }
}

/// `__cudaRegisterFatBinary`: the handle only has to be unlike null.
pub(crate) fn fat_binary(_: &mut Call<'_>, wrapper: Address) -> Address {
    wrapper
}

/// `__cudaRegisterFatBinaryEnd`, `__cudaUnregisterFatBinary`, `__cudaInitModule`.
pub(crate) fn nothing(_: &mut Call<'_>, _: Address) -> i32 {
    1
}

/// `__cudaRegisterFunction`.
pub(crate) fn function(
    _: &mut Call<'_>,
    _: Address,
    host: Address,
    _: Address,
    name: Address,
    _: i32,
    _: Address,
    _: Address,
    _: Address,
    _: Address,
    _: Address,
) -> i32 {
    registry().functions.push(Function { host, name });
    0
}

/// `__cudaRegisterVar`, `__cudaRegisterManagedVar`-like.
pub(crate) fn variable(
    _: &mut Call<'_>,
    _: Address,
    host: Address,
    _: Address,
    _: Address,
    _: i32,
    bytes: usize,
    _: i32,
    _: i32,
) -> i32 {
    registry().variables.push(Variable { host, bytes: bytes as u64 });
    0
}

/// The kernel behind what the runtime calls a function: a registered host function or a kernel handle.
///
/// # Errors
/// When it is neither.
pub(crate) fn resolve(machine: &mut HostMachine, function: Address) -> Result<u64, Failure> {
    if machine.kernels.get(function).is_ok() {
        return Ok(function);
    }
    registry().kernel(machine, function)
}

/// `__cudaGetKernel`, `cudaGetKernel`, `cudaGetFuncBySymbol`.
pub(crate) fn get_kernel(call: &mut Call<'_>, out: Out<u64>, function: Address) -> Outcome {
    let kernel = resolve(&mut call.machine(), function)?;
    out.write(kernel)?;
    Ok(())
}
