//! Builds again when a file of the Python hook is added or changed.

fn main() {
    println!("cargo:rerun-if-changed=../../python/trompe_hook");
}
