//! `cargo xtask dist`: the folder that a job's `LD_LIBRARY_PATH` names.
//!
//! All code is in `libtrompe_shim.so`. Beside it lies one *thin* library per CUDA library: the right file name, the
//! right symbol-version node, and a need for the real one. The dynamic linker looks for the version node in the library
//! that a program names and for the symbol anywhere, so the thin libraries need no symbols. They come from the same
//! tables as the exported functions. A link without a version stands beside each, as beside real ones.
//!
//! Safe to run twice: a file is written only when what it is made from has changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use trompe_cuda_abi::Library;
use trompe_cuda_abi::tables::{COMPANIONS, LIBRARIES, OF_CUDA_12};

const SHIM: &str = "libtrompe_shim.so";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Build with optimisation.
    #[arg(long)]
    release: bool,
    /// Folder to fill instead of `target/<profile>/trompe-lib`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let built = build_shim(arguments.release)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => built.parent().context("the library lies in a folder")?.join("trompe-lib"),
    };
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create `{}`", out.display()))?;
    let mut written = usize::from(copy_if_changed(&built, &out.join(SHIM))?);
    let libraries = || LIBRARIES.iter().chain(COMPANIONS).chain(OF_CUDA_12);
    for library in libraries() {
        written += usize::from(thin(library, &out)?);
    }
    for library in LIBRARIES.iter().chain(COMPANIONS) {
        development_name(library, &out)?;
    }
    eprintln!("{} of {} libraries written to {}", written, libraries().count() + 1, out.display());
    Ok(())
}

/// Builds the shim and returns where it lies.
fn build_shim(release: bool) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "trompe-shim",
        "--message-format",
        "json-render-diagnostics",
    ]);
    if release {
        cargo.arg("--release");
    }
    let output = cargo.stderr(std::process::Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the preloaded library does not build");
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains("\"compiler-artifact\""))
        .flat_map(|line| line.split('"'))
        .find(|word| word.ends_with(SHIM))
        .map(PathBuf::from)
        .with_context(|| format!("cargo did not say where it put {SHIM}"))
}

fn copy_if_changed(from: &Path, to: &Path) -> anyhow::Result<bool> {
    let content = std::fs::read(from).with_context(|| format!("cannot read `{}`", from.display()))?;
    if std::fs::read(to).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    // A new file in place of the old one: a job that runs at this moment keeps what it has mapped.
    let temporary = to.with_extension("new");
    std::fs::write(&temporary, content).with_context(|| format!("cannot write `{}`", temporary.display()))?;
    std::fs::rename(&temporary, to).with_context(|| format!("cannot write `{}`", to.display()))?;
    Ok(true)
}

/// Links the thin library for `library`, unless it is there already.
fn thin(library: &Library, out: &Path) -> anyhow::Result<bool> {
    let path = out.join(library.soname);
    let sources = out.join("thin");
    std::fs::create_dir_all(&sources).with_context(|| format!("cannot create `{}`", sources.display()))?;
    let marker = format!("trompe_thin_{}", library.name);
    let source = format!("const char {marker}[] = \"{}\";\n", library.soname);
    let map = match library.version_node {
        Some(node) => format!("{node} {{ global: {marker}; local: *; }};\n"),
        None => format!("{{ global: {marker}; local: *; }};\n"),
    };
    let source_path = sources.join(format!("{}.c", library.name));
    let map_path = sources.join(format!("{}.map", library.name));
    let changed = write_if_changed(&source_path, &source)? | write_if_changed(&map_path, &map)?;
    if path.is_file() && !changed {
        return Ok(false);
    }
    #[expect(clippy::disallowed_methods, reason = "the usual variable that names the C compiler")]
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(&compiler)
        .args(["-shared", "-nostdlib", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"])
        .arg(format!("-Wl,-soname,{}", library.soname))
        .arg(format!("-Wl,--version-script,{}", map_path.display()))
        .arg("-o")
        .arg(&path)
        .arg(&source_path)
        .arg("-L")
        .arg(out)
        .arg("-ltrompe_shim")
        .status()
        .with_context(|| format!("cannot run `{}`; install gcc or set CC", compiler.display()))?;
    if !status.success() {
        let _ = std::fs::remove_file(&map_path);
        bail!("`{}` cannot be linked", path.display());
    }
    Ok(true)
}

/// Links the name without a version, as a toolkit for development has it: programs that look for a library themselves
/// ask for `libcudnn.so` (TransformerEngine, numba, CuPy).
fn development_name(library: &Library, out: &Path) -> anyhow::Result<()> {
    let Some((stem, _)) = library.soname.split_once(".so.") else { return Ok(()) };
    let path = out.join(format!("{stem}.so"));
    if std::fs::read_link(&path).is_ok_and(|old| old == Path::new(library.soname)) {
        return Ok(());
    }
    let _ = std::fs::remove_file(&path);
    std::os::unix::fs::symlink(library.soname, &path)
        .with_context(|| format!("cannot link `{}`", path.display()))
}

fn write_if_changed(path: &Path, content: &str) -> anyhow::Result<bool> {
    if std::fs::read(path).is_ok_and(|old| old == content.as_bytes()) {
        return Ok(false);
    }
    std::fs::write(path, content).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(true)
}
