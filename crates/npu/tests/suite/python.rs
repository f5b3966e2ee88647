//! The Python builder: the example scripts write programs that give the right results.

use std::process::Command;

use trompe_npu::{ElementType, Options, Program};

use crate::support::*;

/// The program that an example writes with these values; needs `python3`, as building this project does.
fn example(name: &str, values: &[&str]) -> Program {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.json");
    let status = Command::new("python3")
        .env("PYTHONPATH", format!("{root}/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(format!("{root}/examples/npu/{name}.py"))
        .arg(&file)
        .args(values)
        .status()
        .unwrap();
    assert!(status.success());
    Program::from_json(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn vector_add() {
    let (x, y) = (noise(1, 1000), noise(2, 1000));
    let program = example("vector_add", &["n=1000", "tile=256", "cores=2"]);
    let inputs = [("x", f32s(&[1000], &x)), ("y", f32s(&[1000], &y))];
    let outcome = simulate(&program, &inputs, &Options::default()).unwrap();
    close(&output(&outcome, "z"), &x.iter().zip(&y).map(|(x, y)| x + y).collect::<Vec<_>>(), 0.0);
}

#[test]
fn matmul_is_no_slower_than_the_one_in_rust() {
    let program = example("matmul", &["m=256", "n=128", "depth=256", "tile=64", "cores=2"]);
    let ((a, left), (b, right)) = (f16s(&[256, 256], &noise(3, 65536)), f16s(&[128, 256], &noise(4, 32768)));
    let outcome = simulate(&program, &[("a", a), ("b", b)], &Options::default()).unwrap();
    let mut expect = Vec::new();
    for row in left.chunks(256) {
        expect.extend(right.chunks(256).map(|column| {
            row.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
        }));
    }
    close(&output(&outcome, "c"), &expect, 2e-5);
    let rust = trompe_npu::kernels::matmul(&trompe_npu::kernels::Matmul {
        m: 256,
        n: 128,
        k: 256,
        tile: [64, 64, 64],
        split_k: 1,
        cores: 2,
        dtype: ElementType::F16,
        slots: 2,
    });
    // It moves A on while B is loaded, so that it has one event more and is a little faster.
    assert!(outcome.makespan <= simulate(&rust, &[], &timing()).unwrap().makespan);
}

#[test]
fn softmax() {
    let x = noise(5, 128 * 64);
    let program = example("softmax", &["rows=128", "tile=32"]);
    let outcome = simulate(&program, &[("x", f32s(&[128, 64], &x))], &Options::default()).unwrap();
    let mut expect = Vec::new();
    for row in x.chunks(64) {
        let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        expect.extend(row.iter().map(|x| (f64::from(*x).exp() / total) as f32));
    }
    close(&output(&outcome, "y"), &expect, 1e-6);
}

/// What is wrong is said with the line of the script.
#[test]
fn errors_name_the_line() {
    let program = example("softmax", &["rows=128", "tile=32"]);
    let mut wrong = program;
    wrong.tensors.retain(|tensor| !tensor.name.starts_with("b."));
    let error = simulate(&wrong, &[], &timing()).unwrap_err().to_string();
    assert!(
        error.contains("`get_buf` (softmax.py:29), operand `slot_names`: there is no tensor or view `b.0`"),
        "{error}"
    );
}
