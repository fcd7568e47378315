//! `attentive bench train`.

use super::{finish, program, run};

/// A run that takes no time worth mentioning.
const QUICK: &str = "bench train --preset tiny --batch 3 --source 5 --target 7 --vocab 50 --steps 2";

#[test]
fn json_has_everything_that_was_measured() {
    let report = run(&format!("{QUICK} --threads 2 --json")).json();
    assert_eq!(report["preset"], "tiny");
    assert!(["f32", "bf16"].contains(&report["precision"].as_str().unwrap()), "{report}");
    assert_eq!(report["threads"], 2);
    assert_eq!(report["steps"], 2);
    let isas = ["portable", "avx2", "avx512", "avx512bf16", "amx"];
    assert!(isas.contains(&report["isa"].as_str().unwrap()), "{report}");
    for field in ["step_ms", "tokens_per_s", "loss"] {
        let value = report[field].as_f64().unwrap();
        assert!(value.is_finite() && value > 0.0, "{field}: {report}");
    }
    if cfg!(target_os = "linux") {
        assert!(report["peak_mb"].as_f64().unwrap() > 1.0, "{report}");
    }
}

#[test]
fn shares_cover_the_whole_time() {
    let report = run(&format!("{QUICK} --json")).json();
    let shares = report["shares"].as_object().unwrap();
    for name in ["product", "attention", "norm", "embedding", "loss", "optimizer", "other"] {
        let share = shares[name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"));
        assert!((0.0..1.0).contains(&share), "{name}: {report}");
    }
    // What no kernel accounts for is the smaller part, even of so small a model.
    let share = |name: &str| shares[name].as_f64().unwrap();
    assert!(share("product") > 0.0 && share("other") < 0.5, "{report}");
}

#[test]
fn parameters_are_as_many_as_in_pytorch() {
    let report = run(&format!("{QUICK} --json")).json();
    let (d, d_ff, n, vocab) = (128, 512, 2, 50);
    let (attention, norm, feed_forward) = (4 * (d * d + d), 2 * d, d * d_ff + d_ff + d_ff * d + d);
    let encoder = attention + feed_forward + 2 * norm;
    let decoder = 2 * attention + feed_forward + 3 * norm;
    assert_eq!(report["parameters"], vocab * d + n * (encoder + decoder));
}

#[test]
fn overrides_change_the_model() {
    let report =
        run(&format!("{QUICK} --layers 1 --d-model 32 --heads 2 --d-ff 64 --dropout 0 --json")).json();
    let encoder = 4 * (32 * 32 + 32) + 2 * 32 * 64 + 96 + 2 * 64;
    let decoder = encoder + 4 * (32 * 32 + 32) + 64;
    assert_eq!(report["parameters"], 50 * 32 + encoder + decoder);
}

#[test]
fn the_table_names_what_json_names() {
    let table = run(QUICK);
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> = table.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for name in ["step_ms", "tokens_per_s", "peak_mb", "parameters", "precision", "isa", "threads", "loss"] {
        assert!(names.contains(&name), "{}", table.stdout);
    }
    assert!(table.stdout.contains("in product"), "{}", table.stdout);
}

#[test]
fn any_number_of_threads_gives_the_same_loss_bit_for_bit() {
    let losses = [1, 2, 3].map(|threads| {
        let report = run(&format!("{QUICK} --threads {threads} --json")).json();
        report["loss"].as_f64().unwrap().to_bits()
    });
    assert_eq!(losses, [losses[0]; 3]);
}

#[test]
fn steps_learn_the_batch_by_heart() {
    let loss = |steps| {
        let line = format!("{QUICK} --dropout 0 --json").replace("--steps 2", &format!("--steps {steps}"));
        run(&line).json()["loss"].as_f64().unwrap()
    };
    let (few, many) = (loss(1), loss(60));
    assert!(many < few - 0.5, "{few} after few steps, {many} after many");
}

#[test]
fn sequences_may_be_longer_than_the_usual_number_of_positions() {
    let line = "bench train --preset tiny --layers 1 --d-model 8 --heads 1 --d-ff 8 --batch 1 --source 1100 \
                --target 2 --vocab 9 --steps 1 --json";
    assert!(run(line).json()["loss"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_unknown_preset_is_refused_with_the_known_ones() {
    run("bench train --preset huge").refused(&["huge", "tiny, small, base, big"]);
}

#[test]
fn numbers_that_make_no_sense_are_wrong_usage() {
    for line in ["--batch 0", "--source 0", "--target 0", "--vocab 1", "--threads 0", "--steps 0"] {
        run(&format!("bench train {line}"))
            .refused(&[line.split(' ').next().unwrap(), "a whole number from"]);
    }
    for line in ["--batch -1", "--batch x", "--steps 1.5", "--source 65537", "--vocab 99999999999999999999"] {
        run(&format!("bench train {line}")).refused(&[line.split(' ').nth(1).unwrap()]);
    }
    run("bench train --dropout much").refused(&["--dropout", "much"]);
}

#[test]
fn a_wrong_instruction_set_is_told_in_one_sentence() {
    let mut program = program(QUICK);
    program.env("ATTENTIVE_ISA", "sse9");
    finish(program).failed(&["sse9", "ATTENTIVE_ISA", "portable, avx2, avx512, avx512bf16 or amx"]);
}

#[test]
fn the_environment_chooses_the_instruction_set() {
    let mut program = program(&format!("{QUICK} --json"));
    program.env("ATTENTIVE_ISA", "portable");
    assert_eq!(finish(program).json()["isa"], "portable");
}

#[test]
fn precision_is_chosen_by_name_or_by_the_machine() {
    for precision in ["f32", "bf16"] {
        let report = run(&format!("{QUICK} --precision {precision} --json")).json();
        assert_eq!(report["precision"], precision);
        assert!(report["loss"].as_f64().unwrap() > 0.0, "{report}");
    }
    let mut program = program(&format!("{QUICK} --precision auto --json"));
    program.env("ATTENTIVE_ISA", "portable");
    assert_eq!(
        finish(program).json()["precision"],
        "f32",
        "bf16 is slow where there are no instructions for it"
    );
    run("bench train --precision f8").refused(&["f8", "f32, bf16, auto"]);
}

#[test]
fn mistakes_in_the_configuration_are_told_in_one_sentence() {
    run("bench train --heads 7").misused(&["--heads", "d_model 512 is not divisible by 7 heads"]);
    run("bench train --layers 0").misused(&["--layers", "at least 1"]);
    run("bench train --d-model 0").misused(&["--d-model", "at least 1"]);
    run("bench train --heads 0").misused(&["--heads", "at least 1"]);
    run("bench train --d-ff 0").misused(&["--d-ff", "at least 1"]);
    for dropout in ["1", "1.5", "nan", "inf"] {
        run(&format!("bench train --dropout {dropout}")).misused(&["--dropout", "from 0 to below 1"]);
    }
}

#[test]
fn absurd_sizes_are_told_in_one_sentence() {
    run("bench train --batch 1048576 --source 1 --target 65536").misused(&["--target", "1048576"]);
    run("bench train --batch 1048576 --source 65536 --target 1").misused(&["--source", "1048576"]);
}

#[test]
#[cfg(target_os = "linux")]
fn models_that_no_memory_holds_are_told_in_one_sentence() {
    run("bench train --d-model 14336").failed(&["GB of memory"]);
    for line in ["--d-model 8000000000000000000", "--layers 1000000000000000000", "--d-ff 1000000000000000"] {
        run(&format!("bench train {line}")).misused(&[line.split(' ').next().unwrap(), "at most"]);
    }
    run("bench train --d-model 100000 --layers 1000").misused(&["--d-model", "parameters"]);
}
