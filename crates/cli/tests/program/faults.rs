//! Faults on purpose: `train` and `convert` while one call that reads or writes a file fails, as on a full or a broken disk.
//!
//! `faults.c` is loaded into the program. It first lists all calls; then, one run for each of them, it lets that call fail. The
//! program must end with one sentence that names the file, or do without the call; no file may be there in half; and going on must
//! give the same bits as a run without a fault.
//!
//! Usually some calls of each kind are tried: the first and the last one to a file. With `ATTENTIVE_FAULTS=all` every call is.

use super::training::{Corpus, log_without_times};
use super::{Outcome, finish, program};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A small run with a validation, a checkpoint in between, and an average at the end. Neither the processor nor other threads
/// change what it writes.
const RUN: &str = "--save-every 2 --validate-every 4 --validate-lines 2 --log-every 2 --keep 9 --average 2 --ema 0.9 \
                   --d-model 8 --d-ff 8 --threads 1 --quiet";

/// A call that is to fail: the n-th of its kind.
#[derive(Debug)]
struct Fault {
    kind: String,
    at: usize,
    how: &'static str,
}

/// A call that was made.
struct Call {
    kind: String,
    path: PathBuf,
}

impl Call {
    /// What a message must have in it: the file, also where it was still under another name, or the folder.
    fn name(&self) -> String {
        let path = self.path.display().to_string();
        let Some((folder, part)) = path.strip_suffix(".part").and_then(|path| path.rsplit_once("/.")) else {
            return path;
        };
        // What follows is the number of the process, and that of the file or `link`.
        let name = part.trim_end_matches(".link").trim_end_matches(|c: char| c == '.' || c.is_ascii_digit());
        format!("{folder}/{name}")
    }

    /// Whether the program may do without it: what it does instead, or that nobody needs it, shows in the results.
    fn is_dispensable(&self) -> bool {
        match self.kind.as_str() {
            // A file may be read again, or no longer be wanted; that a folder is on the disk must be seen.
            "read" | "open" => !self.path.is_dir(),
            "link" | "unlink" | "stat" => true,
            "mkdir" => self.path.is_dir(),
            _ => self.path.ends_with("train.lock"),
        }
    }
}

/// A corpus, a tokenizer for it, a whole run in `whole`, and the library that lets calls fail.
struct Scene(Corpus);

impl Scene {
    fn new(name: &str) -> Scene {
        let scene = Scene(Corpus::new(name));
        make_library(&scene.0.path("faults.so"));
        let packed = Command::new("gzip").arg("--keep").arg(scene.0.path("valid.a")).status();
        assert!(packed.expect("there is gzip").success());
        scene.0.trained("tokenizer", "--steps 1 --quiet");
        assert_eq!(finish(scene.train("whole", 6)).code, Some(0));
        scene
    }

    fn path(&self, name: &str) -> String {
        self.0.path(name).display().to_string()
    }

    fn train(&self, out: &str, steps: u64) -> Command {
        let (tokenizer, valid) = (self.path("tokenizer"), self.path("valid.a.gz"));
        self.0.train(out, &format!("{RUN} --steps {steps} --tokenizer {tokenizer} --valid-source {valid}"))
    }

    fn resume(&self, out: &str) -> Command {
        program(&format!("train --resume --quiet --steps 6 --out {}", self.path(out)))
    }

    /// Runs a command; the calls are those that failed, or all if none is to fail.
    fn run(&self, mut command: Command, name: &str, fault: Option<&Fault>) -> (Outcome, Vec<Call>) {
        let log = self.path(&format!("{name}.log"));
        command.env("LD_PRELOAD", self.path("faults.so"));
        command.env("FAULTS_BENEATH", self.path("")).env("FAULTS_LOG", &log);
        if let Some(Fault { kind, at, how }) = fault {
            command.env("FAULTS_CALL", kind).env("FAULTS_AT", at.to_string()).env("FAULTS_HOW", how);
        }
        let outcome = finish(command);
        let calls = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        let call = |line: &str| {
            let (kind, path) = line.split_once(' ').unwrap();
            Call { kind: kind.to_owned(), path: path.into() }
        };
        (outcome, calls.lines().map(call).collect())
    }

    /// The faults to try in a command, which is carried out once for it: at most `most` of each kind.
    fn faults(&self, command: Command, most: usize) -> Vec<Fault> {
        let (outcome, calls) = self.run(command, "calls", None);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let mut paths: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        calls.into_iter().for_each(|Call { kind, path }| paths.entry(kind).or_default().push(path));
        assert!(paths.len() > 8, "only {:?} are reached", paths.keys());
        let mut faults = Vec::new();
        for (kind, paths) in paths {
            let hows: &[&str] = match kind.as_str() {
                "write" => &["eio", "enospc", "short"],
                "create" | "link" | "mkdir" | "rename" | "sync" => &["eio", "enospc"],
                _ => &["eio"],
            };
            let chosen = chosen(&paths, most);
            println!("{kind}: {} of {} calls, each with {}", chosen.len(), paths.len(), hows.join(", "));
            for how in hows {
                faults.extend(chosen.iter().map(|&at| Fault { kind: kind.clone(), at, how }));
            }
        }
        faults
    }

    /// Runs a command in which a call fails. Returns whether it ended well all the same.
    fn strike(&self, command: Command, name: &str, fault: &Fault) -> Result<bool, String> {
        let (Outcome { code, stdout, stderr }, failed) = self.run(command, name, Some(fault));
        let is_told = || {
            let reason = match (fault.how, &*fault.kind) {
                // The standard library looks at a folder only to explain why it could not be made.
                ("eio", "stat") if stderr.contains("File exists") => "(os error 17)",
                ("eio", _) => "(os error 5)",
                _ => "(os error 28)",
            };
            let is_sentence = stderr.starts_with("attentive: ") && stderr.lines().count() == 1;
            // No advice that does not help.
            let misleads =
                fault.how == "eio" && ["space", "complete"].iter().any(|word| stderr.contains(word));
            let names_file = failed.iter().any(|call| stderr.contains(&call.name()));
            is_sentence && stderr.contains(reason) && names_file && !misleads
        };
        match code {
            // A thread reads ahead, so that there may be fewer reads than were counted.
            Some(0) if failed.is_empty() && ["read", "open", "stat"].contains(&&*fault.kind) => Ok(true),
            Some(0) if !failed.is_empty() && failed.iter().all(Call::is_dispensable) => Ok(true),
            Some(1) if is_told() && stdout.is_empty() => Ok(false),
            _ => {
                let names: Vec<String> = failed.iter().map(Call::name).collect();
                Err(format!("{names:?}: ended with {code:?}: {stderr}{stdout}"))
            }
        }
    }
}

/// Makes the library that lets calls fail.
pub(crate) fn make_library(path: &Path) {
    let library = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(path)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/faults.c"))
        .status();
    assert!(library.expect("there is a C compiler").success());
}

/// The numbers, from 1 on, of the calls of a kind that are tried: the first and the last of those that follow each other to one
/// file, or some of these, evenly spread.
fn chosen(paths: &[PathBuf], most: usize) -> Vec<usize> {
    let count = paths.len();
    if std::env::var("ATTENTIVE_FAULTS").is_ok_and(|value| value == "all") {
        return (1..=count).collect();
    }
    let is_edge = |at: &usize| {
        let path = paths.get(at - 1);
        *at == 1 || paths.get(at - 2) != path || paths.get(*at) != path
    };
    let edges: Vec<usize> = (1..=count).filter(is_edge).collect();
    if edges.len() <= most {
        return edges;
    }
    (0..most).map(|i| edges[i * (edges.len() - 1) / (most - 1)]).collect()
}

/// Makes an attempt at each fault, in a folder of its own, two at a time.
fn attempt_each(faults: &[Fault], attempt: impl Fn(&str, &Fault) -> Result<(), String> + Sync) {
    let (rest, problems) = (Mutex::new(faults.iter().enumerate()), Mutex::new(Vec::new()));
    let next = || rest.lock().unwrap().next();
    let work = || {
        while let Some((i, fault)) = next() {
            if let Err(problem) = attempt(&format!("attempt-{i}"), fault) {
                problems.lock().unwrap().push(format!("{fault:?}: {problem}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {} faults:\n{}", problems.len(), faults.len(), problems.join("\n"));
}

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a folder and of those in it, by their names.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn write(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// The files of a run with what is the same in each run: not the times.
fn without_times(folder: &Path) -> Files {
    let mut files = files(folder);
    files.remove("train.lock");
    for (name, bytes) in &mut files {
        match name.as_str() {
            "metrics.jsonl" => *bytes = log_without_times(folder).into_bytes(),
            "events.out.tfevents.attentive" => bytes.fill(0),
            "report.html" => *bytes = bytes.split_off(bytes.len() - "</html>\n".len()),
            "checkpoints/state.safetensors" => {
                let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
                bytes.drain(..8 + header);
            }
            _ => {}
        }
    }
    files
}

/// Names files that differ, or that only one side has. A file that could not be removed may be left.
fn must_be_same(mut found: Files, expected: &Files, fault: &Fault) -> Result<(), String> {
    found.retain(|name, _| fault.kind != "unlink" || !name.ends_with(".part"));
    let names: HashSet<&String> = found.keys().chain(expected.keys()).collect();
    let different: Vec<_> =
        names.into_iter().filter(|name| found.get(*name) != expected.get(*name)).collect();
    if different.is_empty() { Ok(()) } else { Err(format!("not the same: {different:?}")) }
}

/// Names files that no good run has. Those that grow or have times in them are not looked at: going on shows whether they are good.
fn must_be_whole(folder: &Path, good: &HashSet<Vec<u8>>, fault: &Fault) -> Result<(), String> {
    const CHANGING: [&str; 5] = [
        "metrics.jsonl",
        "events.out.tfevents.attentive",
        "report.html",
        "train.lock",
        "checkpoints/state.safetensors",
    ];
    let is_good = |name: &str, bytes: &Vec<u8>| CHANGING.contains(&name) || good.contains(bytes);
    let mut files = files(folder);
    files.retain(|name, bytes| !is_good(name, bytes));
    must_be_same(files, &Files::new(), fault).map_err(|problem| format!("after the fault {problem}"))
}

/// Lets calls fail in runs that begin with the files of `before`, and goes on with them.
fn train_with_faults(scene: &Scene, before: &Files, begin: impl Fn(&str) -> Command + Sync) {
    let whole = scene.0.path("whole");
    let (expected, mut good) = (without_times(&whole), HashSet::from_iter(files(&whole).into_values()));
    good.extend(before.values().cloned());
    write(&scene.0.path("counted"), before);
    let faults = scene.faults(begin("counted"), 6);
    assert!(without_times(&scene.0.path("counted")) == expected, "a run is not always the same");
    attempt_each(&faults, |out, fault| {
        let folder = scene.0.path(out);
        write(&folder, before);
        if !scene.strike(begin(out), out, fault)? {
            must_be_whole(&folder, &good, fault)?;
            if let Some(lost) = before.keys().find(|name| !folder.join(name).exists()) {
                return Err(format!("lost {lost}"));
            }
            // Where there is nothing to go on from, a person begins again.
            let has_state = folder.join("checkpoints/state.safetensors").exists();
            let outcome = finish(if has_state { scene.resume(out) } else { begin(out) });
            if outcome.code != Some(0) {
                return Err(format!("cannot go on: {}", outcome.stderr));
            }
        }
        must_be_same(without_times(&folder), &expected, fault)?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    });
}

#[test]
fn a_run_in_which_any_call_fails_goes_on_to_the_same_bits() {
    let scene = Scene::new("faults");
    train_with_faults(&scene, &Files::new(), |out| scene.train(out, 6));
}

#[test]
fn a_resumed_run_in_which_any_call_fails_goes_on_to_the_same_bits() {
    let scene = Scene::new("faults-resumed");
    // What the end of the shorter run adds is taken back by the longer one.
    assert_eq!(finish(scene.train("half", 4)).code, Some(0));
    train_with_faults(&scene, &files(&scene.0.path("half")), |out| scene.resume(out));
}

#[test]
fn a_conversion_in_which_any_call_fails_can_be_made_again() {
    let scene = Scene::new("faults-converted");
    let convert = |out: &str| {
        program(&format!(
            "convert --precision int8 --model {} --out {}",
            scene.path("whole"),
            scene.path(out)
        ))
    };
    assert_eq!(finish(convert("converted")).code, Some(0));
    let expected = files(&scene.0.path("converted"));
    let good = expected.values().cloned().collect();
    attempt_each(&scene.faults(convert("counted"), 20), |out, fault| {
        let folder = scene.0.path(out);
        if !scene.strike(convert(out), out, fault)? {
            must_be_whole(&folder, &good, fault)?;
            let outcome = finish(convert(out));
            if outcome.code != Some(0) {
                return Err(format!("cannot be made again: {}", outcome.stderr));
            }
        }
        must_be_same(files(&folder), &expected, fault)?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    });
}
