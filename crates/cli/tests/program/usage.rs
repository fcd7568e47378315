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
    assert_eq!(finish(program).code, Some(1));
}
