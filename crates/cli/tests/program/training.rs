//! `attentive train` and `attentive info`: a run from beginning to end, and whatever may come between.

use super::{Outcome, finish, program, run};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A folder with a corpus, gone when the test ends.
pub(super) struct Corpus(PathBuf);

impl Corpus {
    /// Pairs of which something can be learned in a second: the target is the source backwards, in capitals.
    pub(super) fn new(name: &str) -> Corpus {
        let folder = std::env::temp_dir().join(format!("attentive-train-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let words = ["ab", "cab", "dabba", "abed", "bead", "cede", "add", "deed", "fab", "face"];
        for (part, pairs) in [("train", 0..300u32), ("valid", 300..320)] {
            let (mut source, mut target) = (String::new(), String::new());
            for pair in pairs {
                let chosen: Vec<&str> = (0..2 + pair % 6)
                    .map(|i| words[(pair.wrapping_mul(2_654_435_761).rotate_left(5 * i) % 10) as usize])
                    .collect();
                writeln!(source, "{}", chosen.join(" ")).unwrap();
                let backwards: Vec<String> = chosen.iter().rev().map(|word| word.to_uppercase()).collect();
                writeln!(target, "{}", backwards.join(" ")).unwrap();
            }
            std::fs::write(folder.join(format!("{part}.a")), source).unwrap();
            std::fs::write(folder.join(format!("{part}.b")), target).unwrap();
        }
        Corpus(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A command that trains a small model in a folder of this one, with these settings unless `more` has
    /// others.
    pub(super) fn train(&self, out: &str, more: &str) -> Command {
        let at = |name: &str| self.path(name).display().to_string();
        let (source, target) = (at("train.a"), at("train.b"));
        let (valid_source, valid_target, out) = (at("valid.a"), at("valid.b"), at(out));
        let usual = format!(
            "--source {source} --target {target} --valid-source {valid_source} --valid-target {valid_target} \
             --out {out} --preset tiny --d-model 16 --heads 2 --d-ff 32 --encoder-layers 1 \
             --decoder-layers 1 --vocab-size 60 --batch-tokens 400 --learning-rate 0.5 --warmup 20 \
             --log-every 5 --validate-every 10 --validate-lines 5 --schedule paper --dropout 0.1 --ema 0 \
             --early-stopping loss"
        );
        let mut line = format!("train {more}");
        let words: Vec<&str> = usual.split_whitespace().collect();
        for flag in words.chunks(2).filter(|flag| !more.split_whitespace().any(|word| word == flag[0])) {
            line.extend([" ", flag[0], " ", flag[1]]);
        }
        program(&line)
    }

    /// Trains to the end, and says what came of it.
    #[track_caller]
    pub(super) fn trained(&self, out: &str, more: &str) -> Outcome {
        let outcome = finish(self.train(out, more));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome
    }
}

impl Drop for Corpus {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Everything that must be the same to the bit in the folders of two runs: the model, the weights of all
/// checkpoints, all tensors that the next step would begin with, and what was logged, but for the time that
/// it took.
#[derive(PartialEq)]
pub(super) struct Bits(Vec<(String, Vec<u8>)>);

impl Bits {
    pub(super) fn of(folder: &Path) -> Bits {
        let mut files = vec![("model".to_owned(), std::fs::read(folder.join("model.safetensors")).unwrap())];
        for entry in std::fs::read_dir(folder.join("checkpoints")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            // The header of the state has times in it.
            let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            files
                .push((path.file_name().unwrap().to_str().unwrap().to_owned(), bytes[8 + header..].to_vec()));
        }
        files.push(("log".to_owned(), log_without_times(folder).into_bytes()));
        files.sort();
        Bits(files)
    }
}

impl std::fmt::Debug for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, bytes) in &self.0 {
            let sum =
                bytes.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            writeln!(f, "{name}: {} bytes, {sum:x}", bytes.len())?;
        }
        Ok(())
    }
}

pub(super) fn log_without_times(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let mut kept = String::new();
    for line in text.lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        for field in ["seconds", "tokens_per_second"] {
            value.as_object_mut().unwrap().remove(field);
        }
        writeln!(kept, "{value}").unwrap();
    }
    kept
}

/// Waits until something is so.
pub(super) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn silently(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Sends a signal by its name.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

const EVERYTHING: &str = "--steps 43 --save-every 7 --accumulate 2 --ema 0.9 --average 3 --clip 1";

#[test]
fn a_run_that_was_killed_at_any_instant_ends_in_the_same_bits() {
    let corpus = Corpus::new("killed");
    let begin = Instant::now();
    corpus.trained("whole", &format!("{EVERYTHING} --threads 2"));
    let whole = begin.elapsed().as_secs_f64();
    let expected = Bits::of(&corpus.path("whole"));

    // Three quarters of a run lie between two kills, so that some strike while files are written for the
    // first time, and some near the end. The instants follow from a counter, and from whatever else the
    // machine does.
    let mut killed = 0u32;
    for round in 0..40u32 {
        let out = format!("killed-{}", round / 4);
        let threads = 1 + round % 3;
        let mut child =
            silently(&mut corpus.train(&out, &format!("{EVERYTHING} --resume --threads {threads}")));
        let instant = f64::from(round.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
        std::thread::sleep(Duration::from_secs_f64(0.75 * whole * instant));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        if round % 4 == 3 {
            corpus.trained(&out, &format!("{EVERYTHING} --resume --threads {threads}"));
            assert_eq!(Bits::of(&corpus.path(&out)), expected, "{out}");
        }
        if killed >= 20 && round % 4 == 3 {
            return;
        }
    }
    assert!(killed >= 10, "only {killed} runs were killed before they ended");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let corpus = Corpus::new("threads");
    let bits = [1, 2, 3].map(|threads| {
        let out = format!("threads-{threads}");
        corpus.trained(&out, &format!("--steps 12 --threads {threads}"));
        Bits::of(&corpus.path(&out))
    });
    assert_eq!(bits[0], bits[1]);
    assert_eq!(bits[0], bits[2]);
}

#[test]
fn the_seed_decides() {
    let corpus = Corpus::new("seed");
    for (out, more) in [("one", "--seed 1"), ("again", "--seed 1"), ("other", "--seed 2")] {
        corpus.trained(out, &format!("--steps 6 {more}"));
    }
    let [one, again, other] = ["one", "again", "other"].map(|out| Bits::of(&corpus.path(out)));
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn the_folder_has_a_model_its_history_and_its_settings() {
    let corpus = Corpus::new("folder");
    let report = corpus.trained("run", "--steps 20 --json --quiet").json();
    assert_eq!((&report["step"], &report["finished"]), (&20.into(), &true.into()));
    assert!(report["loss"].as_f64().unwrap() > 0.0 && report["bleu"].as_f64().is_some(), "{report}");
    assert!(report["waited"].as_f64().unwrap() < 0.5, "{report}");
    for file in [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "source.spm",
        "target.spm",
        "vocab.json",
        "train.toml",
        "metrics.jsonl",
        "report.html",
        "checkpoints/state.safetensors",
        "checkpoints/step-00000020.safetensors",
    ] {
        assert!(corpus.path("run").join(file).is_file(), "{file}");
    }
    let folder = corpus.path("run").display().to_string();
    let info = run(&format!("info {folder} --json")).json();
    assert_eq!((&info["d_model"], &info["heads"], &info["vocabulary"]), (&16.into(), &2.into(), &60.into()));
    assert_eq!((&info["training"]["steps"], &info["training"]["validations"]), (&20.into(), &2.into()));
    let table = run(&format!("info {folder}")).stdout;
    for word in ["family", "parameters", "20 steps", "validation loss", "train.a"] {
        assert!(table.contains(word), "`{word}` is not in: {table}");
    }
}

#[test]
fn tables_and_objects_with_both_sides_make_the_same_run_as_two_files() {
    let corpus = Corpus::new("formats");
    corpus.trained("pairs", "--steps 4");
    for part in ["train", "valid"] {
        let read = |side: &str| std::fs::read_to_string(corpus.path(&format!("{part}.{side}"))).unwrap();
        let (source, target) = (read("a"), read("b"));
        let pairs = || source.lines().zip(target.lines());
        let tsv: String = pairs().map(|(a, b)| format!("{a}\t{b}\n")).collect();
        let jsonl: String =
            pairs().map(|(a, b)| format!("{}\n", serde_json::json!({"b": b, "a": a}))).collect();
        std::fs::write(corpus.path(&format!("{part}.tsv")), tsv).unwrap();
        std::fs::write(corpus.path(&format!("{part}.jsonl")), jsonl).unwrap();
    }
    // The same settings but for the files of targets.
    let settings = std::fs::read_to_string(corpus.path("pairs/train.toml")).unwrap();
    let kept: Vec<&str> = settings.lines().filter(|line| !line.contains("target = ")).collect();
    let config = corpus.path("without.toml");
    std::fs::write(&config, kept.join("\n")).unwrap();
    for (format, more) in [("tsv", ""), ("jsonl", "--source-field a --target-field b")] {
        let at = |name: &str| corpus.path(&format!("{name}.{format}")).display().to_string();
        let (train, valid, out) = (at("train"), at("valid"), corpus.path(format));
        let config = config.display();
        let line = format!("train --config {config} --source {train} --valid-source {valid} {more} --quiet");
        let outcome = run(&format!("{line} --out {}", out.display()));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(Bits::of(&out), Bits::of(&corpus.path("pairs")), "{format}");
    }
}

#[test]
fn settings_of_a_run_make_the_same_run_again_and_flags_win() {
    let corpus = Corpus::new("config");
    corpus.trained("first", "--steps 6");
    let config = corpus.path("first").join("train.toml");
    for (out, more, same) in [("second", "", true), ("third", "--seed 2", false)] {
        let out = corpus.path(out);
        let line = format!("train --config {} --out {} --quiet {more}", config.display(), out.display());
        assert_eq!(run(&line).code, Some(0));
        assert_eq!(Bits::of(&out) == Bits::of(&corpus.path("first")), same, "{more}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one_and_a_wrong_value_by_name() {
    let corpus = Corpus::new("keys");
    for (text, words) in [
        ("warm_up = 100\n", &["a.toml", "`warm_up`", "`warmup`"][..]),
        ("steps = \"many\"\n", &["a.toml", "`steps`"]),
        ("steps = 1\nsteps =\n", &["a.toml", "line 2"]),
    ] {
        let config = corpus.path("a.toml");
        std::fs::write(&config, text).unwrap();
        finish(corpus.train("run", &format!("--config {}", config.display()))).misused(words);
    }
    assert!(!corpus.path("run").exists());
}

#[test]
fn resuming_with_other_settings_is_refused_by_name_but_for_those_that_may_change() {
    let corpus = Corpus::new("changed");
    corpus.trained("run", "--steps 5");
    let out = corpus.path("run").display().to_string();
    let words = ["--dropout", "0.3", "started with 0.1", "another folder"];
    run(&format!("train --out {out} --resume --dropout 0.3")).misused(&words);
    run(&format!("train --out {out} --resume --seed 2")).misused(&["--seed", "2", "started with 1"]);
    let more = run(&format!("train --out {out} --resume --steps 8 --threads 1 --json --quiet")).json();
    assert_eq!(more["step"], 8);
    corpus.trained("whole", "--steps 8");
    let weights = |out: &str| std::fs::read(corpus.path(out).join("checkpoints/step-00000008.safetensors"));
    assert_eq!(weights("run").unwrap(), weights("whole").unwrap());
}

#[test]
fn resuming_with_other_lines_is_refused_though_they_are_as_many_and_as_long() {
    let corpus = Corpus::new("other-lines");
    corpus.trained("run", "--steps 3");
    let path = corpus.path("train.a");
    let text = std::fs::read_to_string(&path).unwrap();
    let backwards: String = text.lines().rev().flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&path, backwards).unwrap();
    let outcome = finish(corpus.train("run", "--steps 6 --resume --quiet"));
    outcome.failed(&["300 pairs", "use the same files"]);
    let sums: Vec<&str> = outcome.stderr.split("CRC-32 ").skip(1).map(|rest| &rest[..8]).collect();
    assert!(sums.len() == 2 && sums[0] != sums[1], "{}", outcome.stderr);
    std::fs::write(&path, text).unwrap();
    corpus.trained("run", "--steps 6 --resume");
}

#[test]
fn a_folder_with_a_run_or_a_model_is_not_written_over() {
    let corpus = Corpus::new("exists");
    corpus.trained("run", "--steps 2");
    finish(corpus.train("run", "--steps 2")).failed(&["there is a run in", "--resume"]);
    std::fs::remove_file(corpus.path("run").join("train.toml")).unwrap();
    finish(corpus.train("run", "--steps 2")).failed(&["there is a model in"]);
}

#[test]
fn a_run_that_failed_before_its_first_step_may_begin_again() {
    let corpus = Corpus::new("again");
    finish(corpus.train("run", "--steps 2 --vocab-size 9 --quiet")).failed(&["the vocabulary must have"]);
    corpus.trained("run", "--steps 2");
}

#[test]
fn settings_that_make_no_sense_are_told_in_one_sentence() {
    let corpus = Corpus::new("settings");
    for (more, words) in [
        ("--schedule cosine --patience 3", &["--schedule: ", "steps"][..]),
        ("--steps 0", &["--steps: ", "at least 1"]),
        ("--batch-tokens 0 --steps 1", &["--batch-tokens: ", "at least 1"]),
        ("--heads 3 --steps 1", &["--heads: ", "d_model 16 is not divisible by 3 heads"]),
        ("--ema 1 --steps 1", &["--ema: ", "below 1"]),
        ("--clip -1 --steps 1", &["--clip: ", "0 or above"]),
        ("--hold-out 5 --steps 1", &["--hold-out: ", "files to validate on"]),
        ("--steps 9000000000000000000", &["--steps: ", "at most"]),
        ("--batch-tokens 9000000000000000000 --steps 1", &["--batch-tokens: ", "at most"]),
        ("--longest 9000000000000000000 --steps 1", &["--longest: ", "at most"]),
        ("--d-ff 9000000000000000000 --steps 1", &["--d-ff: ", "at most"]),
        ("--keep 9000000000000000000 --steps 1", &["--keep: ", "at most"]),
    ] {
        finish(corpus.train("run", &format!("{more} --quiet"))).misused(words);
        assert!(!corpus.path("run").exists(), "{more}");
    }
    for flag in
        ["--seed", "--keep", "--steps", "--batch-tokens", "--longest", "--d-ff", "--accumulate", "--warmup"]
    {
        finish(corpus.train("run", &format!("{flag} 9223372036854775808 --quiet")))
            .refused(&[flag, "from 0 to 9223372036854775807"]);
    }
    finish(corpus.train("run", "--tokenizer nowhere --steps 1 --quiet")).failed(&["nowhere"]);
    let (source, out) = (corpus.path("train.a"), corpus.path("run"));
    let line = format!("train --source {} --out {}", source.display(), out.display());
    run(&line).misused(&["--target: ", "no training file"]);
    let target = corpus.path("train.b");
    run(&format!("{line} --target {} --hold-out 0", target.display()))
        .misused(&["--steps: ", "the run has no limit"]);
    run(&format!("{line} --target {} --steps 1 --quiet", corpus.path("valid.b").display()))
        .failed(&["train.a has 300 lines", "valid.b has 20"]);
    run(&format!("train --out {} --preset huge", out.display())).refused(&["huge", "tiny, small, base, big"]);
}

#[test]
fn a_mistake_in_a_file_of_settings_names_the_file_and_the_key() {
    let corpus = Corpus::new("blame");
    let config = corpus.path("own.toml");
    std::fs::write(&config, "accumulate = 0\nclip = -1\n").unwrap();
    let config = format!("--config {} --steps 1 --quiet", config.display());
    finish(corpus.train("run", &format!("{config} --clip 0"))).misused(&["own.toml: `accumulate`: must be"]);
    finish(corpus.train("run", &format!("{config} --accumulate 0"))).misused(&["--accumulate: must be"]);
    finish(corpus.train("run", &format!("{config} --accumulate 1"))).misused(&["own.toml: `clip`: must be"]);
}

#[test]
fn a_file_with_both_sides_is_refused_beside_a_file_for_the_other_side() {
    let corpus = Corpus::new("both");
    for name in ["pairs.tsv", "pairs.jsonl", "pairs.tsv.gz"] {
        let file = corpus.path(name);
        std::fs::write(&file, "a\tb\n").unwrap();
        let more = format!("--source {} --steps 1", file.display());
        finish(corpus.train("run", &more)).misused(&["--target: ", name, "has both sides"]);
        let more = format!("--valid-source {} --steps 1", file.display());
        finish(corpus.train("run", &more)).misused(&["--valid-target: ", name, "has both sides"]);
    }
    assert!(!corpus.path("run").exists());
}

/// A run with everything chosen, on this corpus.
fn chosen(corpus: &Corpus, out: &str, more: &str) -> Outcome {
    let at = |name: &str| corpus.path(name).display().to_string();
    let (source, target, out) = (at("train.a"), at("train.b"), at(out));
    run(&format!("train --source {source} --target {target} --out {out} {more}"))
}

#[test]
fn what_is_not_given_is_chosen_and_said_and_written_and_resumes_to_the_same_bits() {
    let corpus = Corpus::new("chosen");
    let first = chosen(&corpus, "first", "--steps 12");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let words = [
        "hold_out 30: ",
        "vocab_size ",
        "preset tiny: ",
        "schedule cosine: ",
        "warmup 3: ",
        "30 validation pairs",
        "validate_lines 30: there are no more validation pairs",
    ];
    first.says(&words);
    let settings = std::fs::read_to_string(corpus.path("first/train.toml")).unwrap();
    for line in ["hold_out = 30", "warmup = 3", "schedule = \"cosine\"", "ema = 0.999"] {
        assert!(settings.contains(&format!("\n{line}\n")), "{line}: {settings}");
    }
    assert!(settings.contains("\ndropout = 0."), "{settings}");
    // Killed as soon as everything is chosen, it goes on with what was written.
    let at = |name: &str| corpus.path(name).display().to_string();
    let (source, target, out) = (at("train.a"), at("train.b"), at("killed"));
    let mut killed =
        silently(&mut program(&format!("train --source {source} --target {target} --out {out} --steps 12")));
    wait_until("the run has begun", || corpus.path("killed/checkpoints/state.safetensors").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let rest = run(&format!("train --out {out} --resume --quiet"));
    assert_eq!((rest.code, rest.stderr.as_str()), (Some(0), ""));
    assert_eq!(Bits::of(&corpus.path("killed")), Bits::of(&corpus.path("first")));
    let whole =
        chosen(&corpus, "again", &format!("--config {} --quiet", corpus.path("first/train.toml").display()));
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    assert_eq!(Bits::of(&corpus.path("again")), Bits::of(&corpus.path("first")));
}

#[test]
fn the_steps_that_fit_into_the_time_are_planned_before_the_first_one() {
    let corpus = Corpus::new("planned");
    let outcome = chosen(&corpus, "run", "--minutes 0.1");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.says(&["schedule_steps ", "fit into the time given", "schedule cosine: "]);
    let text = std::fs::read_to_string(corpus.path("run/train.toml")).unwrap();
    let planned = |text: &str| -> u64 {
        text.lines().find_map(|line| line.strip_prefix("schedule_steps = ")).unwrap().parse().unwrap()
    };
    let out = corpus.path("run").display().to_string();
    // So much time is enough for the further steps at any pace.
    let further = planned(&text) + 20;
    let longer = run(&format!("train --out {out} --resume --minutes 60 --steps {further}"));
    assert_eq!(longer.code, Some(0), "{}", longer.stderr);
    let later = std::fs::read_to_string(corpus.path("run/train.toml")).unwrap();
    assert_eq!(planned(&later), further);
    longer.says(&["the schedule now ends at step"]);
}

#[test]
fn a_run_that_ended_within_its_warm_up_says_so_and_how_to_go_on() {
    let corpus = Corpus::new("undertrained");
    let outcome = corpus.trained("run", "--warmup 100 --steps 10");
    outcome.says(&["during the warm-up of 100 steps", "--resume --steps 40"]);
    let report = corpus.trained("json", "--warmup 100 --steps 10 --json --quiet").json();
    assert!(report["undertrained"].as_str().unwrap().contains("warm-up"), "{report}");
    let report = corpus.trained("long", "--warmup 5 --steps 10 --learning-rate 1e-9 --json --quiet").json();
    assert_eq!(report["undertrained"], serde_json::Value::Null);
}

#[test]
fn a_handful_of_pairs_trains() {
    let corpus = Corpus::new("handful");
    for side in ["a", "b"] {
        let path = corpus.path(&format!("train.{side}"));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.lines().take(4).collect::<Vec<_>>().join("\n")).unwrap();
    }
    let outcome = chosen(&corpus, "run", "--steps 3");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.says(&["hold_out 0: ", "4 training pairs, 0 validation pairs"]);
}

#[test]
fn steps_and_epochs_are_the_same_numbers_wherever_they_are_told() {
    let corpus = Corpus::new("numbers");
    // Neither the log nor validation comes at the last step.
    let outcome = corpus.trained("run", "--steps 13");
    let told = outcome.stderr.split("13 steps, ").nth(1).unwrap().split(" epochs").next().unwrap().to_owned();
    let table = run(&format!("info {}", corpus.path("run").display())).stdout;
    assert!(table.contains(&format!("13 steps, {told} epochs")), "{told}: {table}");
    let page = std::fs::read_to_string(corpus.path("run/report.html")).unwrap();
    assert!(page.contains("<dt>steps</dt><dd>13</dd>"), "{page}");
    assert!(page.contains(&format!("<dt>epochs</dt><dd>{told}</dd>")), "{page}");
}

#[test]
fn one_folder_has_one_run_at_a_time() {
    let corpus = Corpus::new("lock");
    let mut first = silently(&mut corpus.train("run", "--minutes 5"));
    wait_until("the run has begun", || corpus.path("run/checkpoints/state.safetensors").exists());
    let process = first.id().to_string();
    finish(corpus.train("run", "--minutes 5 --resume")).failed(&["in use by another run", &process]);
    first.kill().unwrap();
    first.wait().unwrap();
    corpus.trained("run", "--minutes 0.01 --resume");
}

#[test]
#[cfg(unix)]
fn the_first_interrupt_saves_and_the_run_goes_on_to_the_same_bits() {
    let corpus = Corpus::new("interrupt");
    corpus.trained("whole", "--steps 60");
    for name in ["INT", "TERM"] {
        let mut command = corpus.train(name, "--steps 60");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = corpus.path(name).join("metrics.jsonl");
        wait_until("steps were made", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 0));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        // A run that was faster than the signal has nothing to resume; both are well.
        let expected = if said.contains("the maximum number of steps is reached") { 0 } else { 130 };
        assert_eq!(output.status.code(), Some(expected), "{said}");
        assert!(
            expected == 0 || (said.contains("--resume") && said.contains("Saving a checkpoint.")),
            "{said}"
        );
        assert!(corpus.path(name).join("model.safetensors").is_file());
        corpus.trained(name, "--steps 60 --resume");
        assert_eq!(Bits::of(&corpus.path(name)), Bits::of(&corpus.path("whole")), "{name}");
    }
}

#[test]
fn a_loss_that_explodes_goes_back_three_times_and_is_then_given_up() {
    let corpus = Corpus::new("diverged");
    let outcome =
        finish(corpus.train("run", "--schedule constant --learning-rate 1e38 --warmup 0 --steps 50"));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    for time in 1..=3 {
        outcome.says(&[&format!("half the learning rate (attempt {time} of 3)")]);
    }
    let last = outcome.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("attentive: training diverged: the loss ") && last.contains("3 times"),
        "{last}"
    );
}

#[test]
fn early_stopping_ends_a_run_that_gets_no_better() {
    let corpus = Corpus::new("patience");
    // With a rate this small nothing is learned, so that rounding decides, and soon nothing is better than
    // the best.
    let still = "--schedule constant --learning-rate 1e-12 --warmup 0 --dropout 0";
    let more = "--patience 2 --early-stopping bleu --steps 500 --json --quiet";
    let report = corpus.trained("run", &format!("{still} {more}")).json();
    assert_eq!(report["reason"], "the validation score has stopped improving");
    assert!(report["step"].as_u64().unwrap() < 500, "{report}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run_with_a_sentence_and_leaves_the_last_checkpoint() {
    let corpus = Corpus::new("full");
    const SETTINGS: &str = "--steps 30 --save-every 2 --keep 99 --quiet";
    corpus.trained("whole", SETTINGS);
    // There is room for all but for the weights of most checkpoints: they come last.
    let size = |name: &str| std::fs::metadata(corpus.path("whole").join(name)).unwrap().len();
    let pages = |bytes: u64| bytes.next_multiple_of(4096);
    let files =
        std::fs::read_dir(corpus.path("whole")).unwrap().map(|file| file.unwrap().metadata().unwrap());
    let fixed: u64 = files.map(|file| pages(file.len())).sum();
    let (state, weights) = (pages(size("checkpoints/state.safetensors")), pages(size("model.safetensors")));
    let room = fixed + 2 * state + 5 * weights;
    // A file system of its own, which only this process and its children see.
    let mount = corpus.path("small");
    std::fs::create_dir(&mount).unwrap();
    let command = corpus.train("small/run", SETTINGS);
    let arguments: Vec<String> =
        command.get_args().map(|argument| argument.to_str().unwrap().to_owned()).collect();
    let script = format!(
        "mount -t tmpfs -o size={room} tmpfs {mount} || exit 99
         {program} {arguments}; code=$?
         ls {mount}/run/checkpoints; ls -A {mount}/run
         [ $code = 1 ] || exit 98
         mount -o remount,size=100m {mount} || exit 97
         {program} {arguments} --resume || exit 96
         cp -r {mount}/run {kept}",
        mount = mount.display(),
        program = env!("CARGO_BIN_EXE_attentive"),
        arguments = arguments.join(" "),
        kept = corpus.path("resumed").display(),
    );
    let outcome = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    let Ok(outcome) = outcome else { return eprintln!("skipped: there is no `unshare`") };
    let said =
        String::from_utf8_lossy(&outcome.stderr).into_owned() + &String::from_utf8_lossy(&outcome.stdout);
    if matches!(outcome.status.code(), Some(1 | 99))
        && !corpus.path("resumed").exists()
        && !said.contains("attentive:")
    {
        return eprintln!("skipped: this user may not mount a file system: {said}");
    }
    assert_eq!(outcome.status.code(), Some(0), "{said}");
    assert!(said.contains("cannot save step") && said.contains("No space left"), "{said}");
    assert!(said.contains("intact") && said.contains("--resume"), "{said}");
    assert!(!said.contains(".part"), "{said}");
    assert_eq!(
        std::fs::read(corpus.path("resumed/model.safetensors")).unwrap(),
        std::fs::read(corpus.path("whole/model.safetensors")).unwrap()
    );
}
