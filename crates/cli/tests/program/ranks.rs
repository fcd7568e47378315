//! `mpirun -n 3 attentive …`: several processes as one, under Open MPI and MPICH. Where no launcher is installed, the tests say so
//! and do nothing, unless `ATTENTIVE_SKIP=no`.

use super::training::{Bits, Corpus, wait_until};
use super::{Outcome, program};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A launcher, with the arguments that let root start more processes than there are processors.
#[derive(Clone, Copy)]
struct Launcher {
    name: &'static str,
    arguments: &'static [&'static str],
}

const LAUNCHERS: [Launcher; 2] = [
    Launcher {
        name: "mpirun.openmpi",
        arguments: &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
    },
    Launcher { name: "mpiexec.mpich", arguments: &[] },
];

/// The launchers of this machine.
fn launchers() -> Vec<Launcher> {
    let is_there = |launcher: &Launcher| {
        let output = Command::new(launcher.name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let (found, missing): (Vec<_>, Vec<_>) = LAUNCHERS.into_iter().partition(is_there);
    for launcher in missing {
        let is_needed = std::env::var("ATTENTIVE_SKIP").is_ok_and(|value| value == "no");
        assert!(!is_needed, "{} is not installed", launcher.name);
        eprintln!("{} is not installed: its ranks are not tested", launcher.name);
    }
    found
}

impl Launcher {
    /// The command, started so many times.
    fn ranks(self, count: usize, command: &Command) -> Command {
        let mut launched = Command::new(self.name);
        launched.args(self.arguments).args(["-n", &count.to_string()]);
        launched.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => launched.env(name, value),
                None => launched.env_remove(name),
            };
        }
        // Both launchers end ranks that wait for each other for ever.
        launched.env("MPIEXEC_TIMEOUT", "300").stdin(Stdio::null());
        launched
    }
}

fn outcome(output: &Output) -> Outcome {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Runs a command to its good end.
#[track_caller]
fn done(mut command: Command) -> Outcome {
    let outcome = outcome(&command.output().unwrap());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome
}

/// What every run has: an average, a clip, and a checkpoint between validations.
const EVERYTHING: &str =
    "--steps 13 --save-every 7 --ema 0.9 --average 2 --clip 1 --threads 1 --precision f32";

#[test]
fn ranks_train_the_model_that_one_rank_trains_from_as_many_batches() {
    let corpus = Corpus::new("ranks");
    let train = |out: &str, more: &str| corpus.train(out, &format!("{EVERYTHING} {more}"));
    done(train("three", "--accumulate 3"));
    let expected = Bits::of(&corpus.path("three"));
    for (number, launcher) in launchers().into_iter().enumerate() {
        let out = format!("ranks-{number}");
        let said = done(launcher.ranks(3, &train(&out, "")));
        assert!(said.stderr.contains("accumulate 3: a batch for each of 3 ranks"), "{}", said.stderr);
        assert_eq!(said.stderr.matches("the model is in").count(), 1, "{}", said.stderr);
        assert_eq!(Bits::of(&corpus.path(&out)), expected, "{}", launcher.name);
    }
}

#[test]
fn a_run_ends_at_a_validation_and_describes_its_model_once() {
    let corpus = Corpus::new("ranks-end");
    for (number, launcher) in launchers().into_iter().enumerate() {
        let [steps, patience] = ["steps", "patience"].map(|name| format!("{name}-{number}"));
        let train = |out: &str, more: &str| {
            let more = format!("--average 2 --threads 1 --precision f32 {more}");
            done(launcher.ranks(2, &corpus.train(out, &more)))
        };
        train(&steps, "--validate-every 5 --steps 10");
        let files = ["config.json", "generation_config.json"].map(|name| corpus.path(&steps).join(name));
        let written = files.each_ref().map(|file| file.metadata().unwrap().ino());
        train(&steps, "--validate-every 5 --steps 15 --resume");
        assert_eq!(files.map(|file| file.metadata().unwrap().ino()), written);
        let said = train(&patience, "--validate-every 1 --patience 1 --steps 400");
        assert!(said.stderr.contains("has stopped improving"), "{}", said.stderr);
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks_and_after_one_was_killed() {
    let corpus = Corpus::new("ranks-killed");
    let usual = "--accumulate 4 --save-every 3 --ema 0.9 --threads 1 --precision f32";
    let train = |out: &str, more: &str| corpus.train(out, &format!("{usual} {more}"));
    for (number, launcher) in launchers().into_iter().enumerate() {
        let out = format!("killed-{number}");
        let state = corpus.path(&out).join("checkpoints/state.safetensors");
        let command = train(&out, "--steps 100000");
        let mut running = launcher.ranks(4, &command).stderr(Stdio::null()).spawn().unwrap();
        let weights = corpus.path(&out).join("checkpoints/step-00000003.safetensors");
        wait_until("there is a checkpoint", || weights.exists());
        let ranks = ranks_under(running.id());
        assert_eq!(ranks.len(), 4, "{ranks:?}");
        // SIGKILL of a rank ends all others, and the launcher tells.
        let begin = Instant::now();
        assert!(Command::new("kill").args(["-9", &ranks[2].to_string()]).status().unwrap().success());
        assert!(!running.wait().unwrap().success());
        wait_until("all ranks have ended", || ranks.iter().all(|&rank| !is_alive(rank)));
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        assert!(state.exists());
        // It goes on alone, and then with two ranks.
        let step = step_of(&corpus.path(&out));
        done(train(&out, &format!("--resume --steps {}", step + 3)));
        done(launcher.ranks(2, &train(&out, &format!("--resume --steps {}", step + 6))));
    }
}

#[test]
fn ranks_that_are_not_the_same_are_told_apart() {
    let corpus = Corpus::new("ranks-apart");
    for launcher in launchers() {
        // A shell gives rank 1 another instruction set.
        let command = corpus.train("apart", EVERYTHING);
        let mut shell = Command::new("sh");
        let set = "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then export ATTENTIVE_ISA=portable; fi; exec \"$@\"";
        shell.args(["-c", set, "sh"]).arg(command.get_program()).args(command.get_args());
        let failed = outcome(&launcher.ranks(2, &shell).output().unwrap());
        assert_ne!(failed.code, Some(0));
        failed.says(&["rank 1 has another instruction set or precision"]);
        let _ = std::fs::remove_dir_all(corpus.path("apart"));
    }
}

#[test]
fn fewer_batches_than_ranks_are_refused() {
    let corpus = Corpus::new("ranks-few");
    for launcher in launchers() {
        let command = corpus.train("few", &format!("{EVERYTHING} --accumulate 2"));
        let failed = outcome(&launcher.ranks(3, &command).output().unwrap());
        assert_ne!(failed.code, Some(0));
        failed.says(&["--accumulate", "2 batches, too few for 3 ranks"]);
        assert!(!corpus.path("few").exists());
    }
}

#[test]
fn a_process_alone_needs_no_mpi_and_says_so_where_one_is_named() {
    let corpus = Corpus::new("ranks-alone");
    let mut command = corpus.train("alone", &format!("{EVERYTHING} --mpi openmpi"));
    for name in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"] {
        command.env_remove(name);
    }
    super::finish(command).misused(&["no launcher of MPI", "mpirun"]);
    let mut lost = program("train --out nowhere --source a --target b");
    lost.env("OMPI_COMM_WORLD_SIZE", "2").env("LD_LIBRARY_PATH", "/nonexistent");
    if launchers().is_empty() {
        super::finish(lost).failed(&["Open MPI", "libmpi.so.40", "install"]);
    }
}

#[test]
fn ranks_translate_a_file_in_order_and_go_on_where_they_stopped() {
    let corpus = Corpus::new("ranks-translate");
    corpus.trained("model", "--steps 2 --quiet");
    let at = |name: &str| corpus.path(name).display().to_string();
    // More than a rank has at once, an empty line, and a last line without an end.
    let lines = std::fs::read_to_string(corpus.path("train.a")).unwrap().replacen('\n', "\n\n", 1);
    std::fs::write(corpus.path("big.a"), lines.repeat(3).trim_end()).unwrap();
    let translate = |output: &str, more: &str| {
        let (model, input, output) = (at("model"), at("big.a"), at(output));
        let usual = "--threads 1 --batch 8 --beam 1 --max-length 8";
        program(&format!("translate --model {model} --input {input} --output {output} {usual} {more}"))
    };
    let read = |name: &str| std::fs::read(corpus.path(name)).unwrap();
    done(translate("alone", ""));
    let expected = read("alone");
    assert!(expected.iter().filter(|&&byte| byte == b'\n').count() == 902);
    let begun = [&expected[..expected.len() / 2], b"half a li"].concat();
    std::fs::write(corpus.path("resumed.part"), &begun).unwrap();
    done(translate("resumed", "--resume"));
    assert!(read("resumed") == expected);
    for (number, launcher) in launchers().into_iter().enumerate() {
        let [whole, rest] = ["whole", "rest"].map(|name| format!("{name}-{number}"));
        done(launcher.ranks(3, &translate(&whole, "")));
        assert!(read(&whole) == expected, "{}", launcher.name);
        std::fs::write(corpus.path(&format!("{rest}.part")), &begun).unwrap();
        done(launcher.ranks(2, &translate(&rest, "--resume")));
        assert!(read(&rest) == expected, "{}", launcher.name);
        let said = done(launcher.ranks(2, &translate(&rest, "--resume")));
        assert_eq!(said.stderr.matches("is complete").count(), 1, "{}", said.stderr);
        // The scores are those of a process alone.
        let (model, source, reference) = (at("model"), at("valid.a"), at("valid.b"));
        let evaluate = program(&format!(
            "evaluate --model {model} --source {source} --reference {reference} --threads 1 --max-length 8 --json"
        ));
        let alone: serde_json::Value = serde_json::from_str(&done_again(&evaluate).stdout).unwrap();
        let together = done(launcher.ranks(3, &evaluate)).stdout;
        let together: serde_json::Value = serde_json::from_str(&together).unwrap();
        for field in ["bleu", "chrf", "sentences", "source_tokens", "target_tokens"] {
            assert_eq!(alone[field], together[field], "{field}");
        }
    }
}

/// Runs a command that will be run again.
#[track_caller]
fn done_again(command: &Command) -> Outcome {
    let mut again = Command::new(command.get_program());
    again.args(command.get_args()).env("HF_HUB_OFFLINE", "1");
    done(again)
}

/// The steps that a run has made.
fn step_of(folder: &std::path::Path) -> u64 {
    let bytes = std::fs::read(folder.join("checkpoints/state.safetensors")).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let note: serde_json::Value =
        serde_json::from_str(header["__metadata__"]["attentive"].as_str().unwrap()).unwrap();
    note["step"].as_u64().unwrap()
}

/// The processes of this program below another, in order.
fn ranks_under(launcher: u32) -> Vec<u32> {
    let mut below = vec![launcher];
    let mut ranks = Vec::new();
    let all = processes();
    let mut at = 0;
    while at < below.len() {
        for (id, parent, name) in &all {
            if *parent == below[at] && !below.contains(id) {
                below.push(*id);
                if name == "attentive" {
                    ranks.push(*id);
                }
            }
        }
        at += 1;
    }
    ranks.sort_unstable();
    ranks
}

/// All processes: number, parent and name.
fn processes() -> Vec<(u32, u32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (before, after) = stat.rsplit_once(')')?;
            let name = before.split_once('(')?.1.to_owned();
            let mut fields = after.split_whitespace();
            let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
            (state != "Z").then_some((id, parent, name))
        })
        .collect()
}

fn is_alive(id: u32) -> bool {
    processes().iter().any(|(known, _, _)| *known == id)
}
