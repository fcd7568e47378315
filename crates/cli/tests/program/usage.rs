//! Help, version, wrong usage, and results that cannot be written.

use super::{finish, program, run};

#[test]
fn help_names_the_commands_and_gives_examples() {
    let help = run("--help");
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    for word in ["bench", "Examples:", "attentive bench train --preset base", "ATTENTIVE_ISA", "Exit codes"] {
        assert!(help.stdout.contains(word), "`{word}` is not in: {}", help.stdout);
    }
}

#[test]
fn every_example_of_the_help_is_a_valid_command() {
    let help = run("--help").stdout;
    let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  attentive ")).collect();
    assert!(examples.len() > 5, "{help}");
    for example in examples {
        // What follows after two spaces explains. With `--help`, arguments are parsed and nothing is run.
        let line = example.split("  ").next().unwrap().split(" <").next().unwrap();
        assert_eq!(run(&format!("{line} --help")).code, Some(0), "{line}");
    }
}

#[test]
fn version_is_the_version_of_the_package() {
    let version = run("--version");
    assert_eq!(version.code, Some(0));
    assert_eq!(version.stdout, format!("attentive {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_command_and_an_unknown_one_are_wrong_usage() {
    run("").refused(&["Usage: attentive", "bench"]);
    run("bench").refused(&["Usage: attentive bench", "train", "kernels"]);
    run("bench trian").refused(&["'trian'", "'train'"]);
}

#[test]
fn an_unknown_flag_is_wrong_usage() {
    run("bench train --colour").refused(&["--colour", "Usage"]);
    run("bench kernels --colour").refused(&["--colour", "Usage"]);
}

#[test]
fn wrong_usage_that_only_a_command_can_tell_names_the_flag() {
    run("bench train --preset tiny --heads 3").misused(&["--heads", "3"]);
    run("bench train --preset tiny --d-ff 0").misused(&["--d-ff", "at least 1"]);
    run("bench train --preset tiny --layers 0").misused(&["--layers", "at least 1"]);
    run("bench train --preset tiny --dropout 1.5").misused(&["--dropout", "from 0 to below 1"]);
    run("serve --port 0 --log off --cors example.org").misused(&["--cors", "`example.org`"]);
    run("serve --port 0 --log off --model a=x --model a=y").misused(&["--model", "`a`", "NAME=DIR"]);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    let inspect = format!("inspect --model {model} twenty --out {}/x.svg", std::env::temp_dir().display());
    run(&format!("{inspect} --layer 99")).misused(&["--layer", "99"]);
    run(&format!("{inspect} --head 99")).misused(&["--head", "99"]);
}

#[test]
fn a_model_of_another_family_is_named_with_those_that_are_known() {
    let folder = std::env::temp_dir().join(format!("attentive-family-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), r#"{"model_type": "llama", "hidden_size": 384}"#).unwrap();
    for command in ["info", "translate hello --model", "convert --out never --model"] {
        run(&format!("{command} {}", folder.display())).failed(&[
            "config.json",
            "`llama`",
            "`marian`",
            "`bert`",
        ]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Whether a process has a handler for SIGINT, the second bit of the mask.
#[cfg(target_os = "linux")]
fn catches_sigint(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_every_command_with_130() {
    use std::process::Stdio;
    use std::time::Duration;
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    for line in [
        format!("translate --model {model}"),
        format!("tokenize --model {model}"),
        format!("score --reference {model}/vocab.json --hypothesis -"),
        "bench train --preset base --steps 1000000".to_owned(),
    ] {
        let mut child = program(&line).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id().to_string();
        while !catches_sigint(&id) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        // Waiting would close the pipe, and nothing but the signal may end the command.
        let open = child.stdin.take();
        let status = child.wait().unwrap();
        drop(open);
        assert_eq!(status.code(), Some(130), "{line}");
        let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert_eq!(said, "attentive: interrupted\n", "{line}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for line in ["--help", "bench train --preset tiny --batch 1 --vocab 9 --steps 1"] {
        let mut program = program(line);
        program.stdout(writer.try_clone().unwrap());
        let outcome = finish(program);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure_with_a_sentence() {
    let mut program = program("bench train --preset tiny --batch 1 --vocab 9 --steps 1 --json");
    program.stdout(std::fs::File::create("/dev/full").unwrap());
    finish(program).failed(&["cannot write the result"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_failure_that_cannot_be_told_is_still_a_failure() {
    let mut program = program("bench train --preset tiny --heads 3");
    program.stderr(std::fs::File::create("/dev/full").unwrap());
    assert_eq!(finish(program).code, Some(2));
}
