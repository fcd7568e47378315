//! `mpirun -n 3 attentive …`: several processes as one, under Open MPI, MPICH and an MPI with the standard ABI. Where no launcher is
//! installed, the tests say so and do nothing, unless `ATTENTIVE_SKIP=no`.

use super::training::{Bits, Corpus, wait_until};
use super::{Outcome, program};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A launcher of one implementation of MPI.
#[derive(Clone)]
struct Launcher {
    program: PathBuf,
    /// What lets root start more processes than there are processors.
    arguments: &'static [&'static str],
    /// What the program has to be told.
    told: &'static [&'static str],
    /// Where its libraries are, if the system would not find them.
    libraries: Option<PathBuf>,
}

impl Launcher {
    /// Open MPI and MPICH of the system, and PyPI's MPICH 5, which has the standard ABI and which `tests/clients/install` installs.
    fn all() -> [Launcher; 3] {
        let of_system =
            |name: &str, arguments| Launcher { program: name.into(), arguments, told: &[], libraries: None };
        let clients = std::env::var_os("ATTENTIVE_CLIENTS").map(PathBuf::from);
        let clients = clients
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").to_owned());
        [
            of_system("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]),
            of_system("mpiexec.mpich", &[]),
            Launcher {
                program: clients.join("bin/mpiexec"),
                arguments: &[],
                told: &["--mpi", "abi"],
                libraries: Some(clients.join("lib")),
            },
        ]
    }

    fn is_there(&self) -> bool {
        let output = Command::new(&self.program).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    }

    fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// The command, started so many times.
    fn ranks(&self, count: usize, command: &Command) -> Command {
        let mut launched = Command::new(&self.program);
        launched.args(self.arguments).args(["-n", &count.to_string()]);
        launched.arg(command.get_program()).args(command.get_args()).args(self.told);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => launched.env(name, value),
                None => launched.env_remove(name),
            };
        }
        if let Some(libraries) = &self.libraries {
            launched.env("LD_LIBRARY_PATH", libraries);
        }
        // All launchers end ranks that wait for each other for ever.
        launched.env("MPIEXEC_TIMEOUT", "300").stdin(Stdio::null());
        launched
    }
}

/// The launchers of this machine.
fn launchers() -> Vec<Launcher> {
    let (found, missing): (Vec<_>, Vec<_>) = Launcher::all().into_iter().partition(Launcher::is_there);
    for launcher in missing {
        let is_needed = std::env::var("ATTENTIVE_SKIP").is_ok_and(|value| value == "no");
        assert!(!is_needed, "{} is not installed", launcher.name());
        eprintln!("{} is not installed: its ranks are not tested", launcher.name());
    }
    found
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
        assert_eq!(Bits::of(&corpus.path(&out)), expected, "{}", launcher.name());
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

/// The command, for which rank 1 does something else before.
fn but_rank_one(command: &Command, before: &str) -> Command {
    let mut shell = Command::new("sh");
    let choice =
        format!("if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then {before}; fi; exec \"$@\"");
    shell.args(["-c", &choice, "sh"]).arg(command.get_program()).args(command.get_args());
    shell
}

/// What lets a process see another file or folder in the place of one, as on another machine.
fn sees(other: &Path, in_place_of: &Path) -> String {
    let (other, place) = (other.display(), in_place_of.display());
    format!("exec unshare --mount sh -c 'mount --bind {other} {place} && exec \"$@\"' sh \"$@\"")
}

#[test]
fn ranks_that_are_not_the_same_are_told_apart() {
    let corpus = Corpus::new("ranks-apart");
    let source = corpus.path("train.a");
    let other_source = corpus.path("other.a");
    // As long as it was.
    let text = std::fs::read_to_string(&source).unwrap().replacen("cab", "bac", 1);
    std::fs::write(&other_source, text).unwrap();
    let [run, other_run] = ["apart", "other-apart"].map(|name| corpus.path(name));
    for launcher in launchers() {
        let fails = |out: &str, more: &str, before: &str, words: &[&str]| {
            let command = corpus.train(out, &format!("{EVERYTHING} {more}"));
            let failed = outcome(&launcher.ranks(2, &but_rank_one(&command, before)).output().unwrap());
            assert_ne!(failed.code, Some(0));
            failed.says(words);
        };
        let set = "export ATTENTIVE_ISA=portable";
        let is_of_another_set = ["rank 1 has another instruction set or precision"];
        let has_another_corpus = ["rank 1", "corpus", "300 pairs"];
        fails("apart", "", set, &is_of_another_set);
        std::fs::remove_dir_all(&run).unwrap();
        // A run goes on with the same ranks only, too.
        done(launcher.ranks(2, &corpus.train("apart", EVERYTHING)));
        fails("apart", "--resume", set, &is_of_another_set);
        if Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
            fails("apart", "--resume", &sees(&other_source, &source), &has_another_corpus);
            let copied = Command::new("cp").arg("-r").args([&run, &other_run]).status().unwrap();
            assert!(copied.success());
            let settings = other_run.join("train.toml");
            let text = std::fs::read_to_string(&settings).unwrap().replace("rate = 0.5", "rate = 0.4");
            std::fs::write(&settings, text).unwrap();
            let has_other_settings =
                ["rank 1 has other settings (learning_rate 0.4) than rank 0 (learning_rate 0.5)"];
            fails("apart", "--resume", &sees(&other_run, &run), &has_other_settings);
            std::fs::remove_dir_all(&other_run).unwrap();
            std::fs::remove_dir_all(&run).unwrap();
            fails("apart", "", &sees(&other_source, &source), &has_another_corpus);
        } else {
            eprintln!("unshare --mount is not allowed here: ranks with other files are not tested");
        }
        std::fs::remove_dir_all(&run).unwrap();
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
        assert!(read(&whole) == expected, "{}", launcher.name());
        std::fs::write(corpus.path(&format!("{rest}.part")), &begun).unwrap();
        done(launcher.ranks(2, &translate(&rest, "--resume")));
        assert!(read(&rest) == expected, "{}", launcher.name());
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
fn step_of(folder: &Path) -> u64 {
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
