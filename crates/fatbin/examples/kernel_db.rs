//! Builds a kernel database: `kernel_db DESTINATION ARCH LIBRARY…`, for example `kernel_db /tmp/k.db 90 libtorch_cuda.so`.

use std::error::Error;
use std::path::{Path, PathBuf};

use trompe_fatbin::{KernelDb, SmArch, extract};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(destination), Some(arch)) = (arguments.next(), arguments.next()) else {
        return Err("usage: kernel_db DESTINATION ARCH LIBRARY…".into());
    };
    let libraries: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let stats = extract::build_file(&libraries, SmArch(arch.parse()?), Path::new(&destination))?;
    println!("{stats:#?}");
    println!("{} kernels in `{destination}`", KernelDb::load(Path::new(&destination))?.len());
    Ok(())
}
