//! `attentive bench kernels`.

use super::{finish, program, run};
use serde_json::Value;

#[test]
fn every_kernel_has_a_rate_a_limit_and_a_share() {
    let report = run("bench kernels --precision f32 --threads 2 --time 1 --json").json();
    let names = ["gemm nt", "gemm nn", "gemm tn", "attention", "attention backward", "residual dropout norm"];
    let more = [
        "dropout",
        "gelu",
        "relu backward",
        "embedding backward",
        "cross_entropy",
        "adam",
        "sum_rows",
        "gemm int8",
    ];
    let kernels = report["kernels"].as_array().unwrap();
    for name in names.iter().chain(&more) {
        assert!(kernels.iter().any(|row| row["kernel"] == *name), "no {name}");
    }
    check_kernels(&report, "f32");
    // Where no tiles multiply bf16, its products take minutes, and have the limits of f32.
    let name = if report["isa"] == "amx" { "" } else { "attention" };
    let report = run(&format!("bench kernels {name} --precision bf16 --threads 2 --time 1 --json")).json();
    check_kernels(&report, "bf16");
}

fn check_kernels(report: &Value, precision: &str) {
    assert_eq!(report["precision"], precision);
    assert_eq!(report["threads"], 2);
    let on_tiles = report["isa"] == "amx";
    for row in report["kernels"].as_array().unwrap() {
        let [rate, most, share] = ["rate", "limit_rate", "share"].map(|field| row[field].as_f64().unwrap());
        assert!(rate > 0.0 && most > 0.0 && share > 0.0, "{row}");
        assert!((rate / most / share - 1.0).abs() < 1e-9, "{row}");
        assert!(row["best_share"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["limit"], limit_of(row["kernel"].as_str().unwrap(), precision, on_tiles), "{row}");
    }
}

/// What a kernel must be held against.
fn limit_of(kernel: &str, precision: &str, on_tiles: bool) -> &'static str {
    match (kernel, precision) {
        ("gemm nt" | "gemm nn" | "gemm tn" | "gemm int8" | "attention backward" | "projection loss", _)
            if !on_tiles =>
        {
            "multiply-add"
        }
        ("gemm int8", _) => "tile int8",
        ("attention", _) | ("gemm nt" | "attention backward", "f32") => "multiply-add",
        ("gemm nn" | "gemm tn", "f32") => "tile bf16 / 6",
        ("projection loss", "f32") => "f32 + tile / 6",
        ("gemm nt" | "gemm nn" | "gemm tn" | "projection loss", "bf16") => "tile bf16",
        ("attention backward", "bf16") => "tile bf16 × 5/8",
        _ => "stream",
    }
}

#[test]
fn a_name_picks_kernels() {
    let table = run("bench kernels sum_rows --time 1");
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    let last = table.stdout.lines().last().unwrap();
    assert!(last.starts_with("sum_rows") && last.ends_with('%'), "{}", table.stdout);
    assert!(!table.stdout.contains("gemm"), "{}", table.stdout);
}

#[test]
fn a_name_that_no_kernel_has_is_told_in_one_sentence() {
    run("bench kernels convolution").misused(&["convolution"]);
}

#[test]
fn wrong_numbers_and_instruction_sets_are_refused() {
    run("bench kernels --threads 0").refused(&["--threads"]);
    run("bench kernels --time 0").refused(&["--time"]);
    let mut program = program("bench kernels");
    program.env("ATTENTIVE_ISA", "sse9");
    finish(program).failed(&["sse9"]);
}
