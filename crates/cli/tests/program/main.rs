//! The built program, tested from outside: what it prints, and how it ends.

mod beginning;
mod convert;
mod demo;
mod detect;
mod encoders;
#[cfg(target_os = "linux")]
mod faults;
mod generate;
#[cfg(unix)]
mod guide;
mod html;
mod hub;
mod info;
mod inspect;
mod kernels;
mod pictures;
#[cfg(target_os = "linux")]
mod ranks;
mod score;
mod serve;
mod text_to_text;
mod tokenize;
mod train;
mod training;
mod translate;
mod usage;

use std::process::{Command, Stdio};

/// How a run of the program ended.
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Outcome {
    /// The one line of JSON that a successful run printed.
    #[track_caller]
    fn json(&self) -> serde_json::Value {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks that the run failed with one sentence on stderr that has all of `words` in it, and printed no
    /// result.
    #[track_caller]
    fn failed(&self, words: &[&str]) {
        self.ended_in_a_sentence(1, words);
    }

    /// The same of a usage that only the command itself could tell to be wrong.
    #[track_caller]
    fn misused(&self, words: &[&str]) {
        self.ended_in_a_sentence(2, words);
    }

    #[track_caller]
    fn ended_in_a_sentence(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(
            self.stderr.starts_with("attentive: ") && self.stderr.lines().count() == 1,
            "{}",
            self.stderr
        );
        self.says(words);
    }

    /// Checks that the usage was refused with a message that has all of `words` in it.
    #[track_caller]
    fn refused(&self, words: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        self.says(words);
    }

    #[track_caller]
    fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
    }
}

/// The program with the arguments of a line, on the best instructions of this machine.
fn program(line: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_attentive"));
    // A folder that is missing could be the name of a model: no test asks the real Hub for it.
    program
        .args(line.split_whitespace())
        .env_remove("ATTENTIVE_ISA")
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::null());
    program
}

/// Runs the program with the arguments of a line.
fn run(line: &str) -> Outcome {
    finish(program(line))
}

fn finish(mut program: Command) -> Outcome {
    let output = program.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
