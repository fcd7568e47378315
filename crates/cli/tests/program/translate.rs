//! `attentive translate` and `attentive evaluate`.

mod files;
mod split;

use super::{Outcome, finish, program, run};
use attentive_text::tokenizer::Side;
use attentive_text::tokenizer::train::{Kind, Trainer};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Text of nineteen letters and the full stop: with spaces and special tokens that makes the 24 tokens of the model.
const TEXT: &str = "a dog runs on the grass. the old dog sleeps. cats hide in the trees. some children laugh. \
                    a big bear likes fish.\n";

/// Sentences that the splitter tells apart by their capitals. The model cannot read these: they are words of their own, so that
/// they are copied.
const SENTENCES: [&str; 4] = ["A dog runs.", "A old dog sleeps.", "A cat hides in the trees.", "A bear."];

/// A folder for the tests of this file.
pub(super) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("attentive-translate-{}", std::process::id()));
        make_model(&path.join("model"));
        path
    })
}

/// The golden model that copies its source, but not faithfully, with letters for its tokens.
pub(super) fn make_model(folder: &Path) {
    let mut trainer = Trainer::new(Kind::Bpe, 24);
    trainer.text(TEXT, Side::Source);
    let tokenizer = trainer.joint().unwrap();
    assert_eq!(tokenizer.special(Side::Target).pad, Some(23));
    tokenizer.save(folder).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/generate");
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(golden.join(name), folder.join(name)).unwrap();
    }
}

/// Makes a number of a tensor of a model NaN.
pub(super) fn damage(folder: &Path, tensor: &str, number: usize) {
    let path = folder.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let tensors: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let begin = tensors[tensor]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[8 + header + begin + 4 * number..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// The program with the model and further options.
pub(super) fn translate(options: &str) -> Command {
    program(&format!("translate --model {} {options}", folder().join("model").display()))
}

/// Runs it on an input.
pub(super) fn fed(options: &str, input: &[u8]) -> Outcome {
    let file = file("input", input);
    let mut program = translate(options);
    program.stdin(std::fs::File::open(file).unwrap());
    finish(program)
}

/// A new file.
pub(super) fn file(name: &str, contents: &[u8]) -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = folder().join(format!("{name}-{number}"));
    std::fs::write(&path, contents).unwrap();
    path
}

#[track_caller]
fn answered(outcome: &Outcome) -> Vec<&str> {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let lines = outcome.stdout.strip_suffix('\n').unwrap_or(&outcome.stdout);
    if outcome.stdout.is_empty() { Vec::new() } else { lines.split('\n').collect() }
}

/// Lines of different lengths.
fn lines(count: usize) -> String {
    let words: Vec<&str> = TEXT.split_whitespace().collect();
    let line = |number: usize| words[number % 17..][..1 + number * 7 % 5].join(" ") + "\n";
    (0..count).map(line).collect()
}

#[test]
fn lines_are_answered_in_order_whatever_is_translated_beside_them() {
    let input = lines(70);
    let together = fed("", input.as_bytes());
    let alone = fed("--batch 1 --threads 1", input.as_bytes());
    assert_eq!(answered(&together).len(), 70);
    assert_eq!(together.stdout, alone.stdout);
    let distinct: std::collections::HashSet<&str> = answered(&alone).into_iter().collect();
    assert!(distinct.len() > 10, "the lines must be told apart: {distinct:?}");
}

#[test]
fn empty_lines_stay_empty() {
    let outcome = fed("--beam 1", b"\na dog runs.\n\n  \t \r\nthe old dog\n\n");
    let found = answered(&outcome);
    assert_eq!(found.len(), 6);
    let empty: Vec<bool> = found.iter().map(|line| line.trim().is_empty()).collect();
    assert_eq!(empty, [true, false, true, true, false, true]);
    assert_eq!((found[0], found[3]), ("", "  \t \r"));
    assert_eq!(answered(&fed("", b"")), [""; 0]);
}

#[test]
fn arguments_and_files_are_translated_like_lines() {
    let piped = fed("", b"a dog runs.\nthe old dog");
    let mut arguments = translate("");
    arguments.args(["a dog runs.", "the old dog"]);
    assert_eq!(answered(&finish(arguments)), answered(&piped));
    let (input, output) = (file("in", b"a dog runs.\nthe old dog"), folder().join("out"));
    let written = finish(translate(&format!("--input {} --output {}", input.display(), output.display())));
    assert_eq!(answered(&written), [""; 0]);
    assert_eq!(std::fs::read_to_string(output).unwrap(), piped.stdout);
}

#[test]
fn a_line_is_answered_before_the_next_one_is_written() {
    let (mut child, mut input, mut output) = talk("--beam 2");
    for line in ["a dog\n", "the old dog\n", "\n"] {
        input.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer, fed("--beam 2", line.as_bytes()).stdout);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// The program with both ends open.
fn talk(options: &str) -> (Child, std::process::ChildStdin, BufReader<std::process::ChildStdout>) {
    let mut program = translate(options);
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    (child, input, output)
}

#[test]
fn the_best_come_with_their_line_and_score() {
    let outcome = fed("--n-best 3", b"a dog\nthe old dog\n");
    let found = answered(&outcome);
    assert_eq!(found.len(), 6);
    let fields: Vec<Vec<&str>> = found.iter().map(|line| line.split(" ||| ").collect()).collect();
    assert_eq!(fields.iter().map(|fields| fields[0]).collect::<Vec<_>>(), ["1", "1", "1", "2", "2", "2"]);
    let json = fed("--n-best 3 --json", b"a dog\nthe old dog\n");
    let line: serde_json::Value = serde_json::from_str(answered(&json)[1]).unwrap();
    assert_eq!(line["line"], 2);
    let scores: Vec<f32> = fields.iter().map(|fields| fields[2].parse().unwrap()).collect();
    assert!(scores[0] >= scores[1] && scores[1] >= scores[2] && scores[0] < 0.0, "{scores:?}");
    assert_eq!(fields[0][1], answered(&fed("", b"a dog\n"))[0]);
    fed("--n-best 3 --beam 2", b"").misused(&["--n-best", "3", "2"]);
    fed("--min-length 9 --max-length 4", b"").misused(&["--min-length", "9", "4"]);
}

/// The folder of what is too large for the repository, if this machine has it.
fn shared(path: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("ATTENTIVE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = shared.join(path);
    if !path.exists() {
        println!("skipped: there is no {}", path.display());
    }
    path.exists().then_some(path)
}

#[test]
fn a_beam_alone_searches_as_transformers_does() {
    let (Some(model), Some(data)) = (shared("reference/marian-multi30k"), shared("data/multi30k")) else {
        return;
    };
    // Every 8th line: enough for the wrong length penalty to show, which changes one line in eight.
    let read = |path: PathBuf| -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().step_by(8).map(str::to_owned).collect()
    };
    let source = file("flickr", (read(data.join("test_2016_flickr.en")).join("\n") + "\n").as_bytes());
    let outcome =
        run(&format!("translate --model {} --beam 5 --input {}", model.display(), source.display()));
    let expected = read(model.join("expected/test_2016_flickr.beam5.de"));
    let found = answered(&outcome);
    let differing = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
    // Two hypotheses whose scores are equal but for rounding may change places.
    assert!(found.len() == 125 && differing <= 1, "{differing} of {} lines differ", found.len());
}

#[test]
fn a_model_that_is_stored_in_int8_is_computed_in_int8_unless_another_precision_is_asked_for() {
    let small = folder().join("int8");
    let (model, small) = (folder().join("model"), small.display());
    let converted = run(&format!("convert --model {} --out {small} --precision int8", model.display()));
    assert_eq!(converted.code, Some(0), "{}", converted.stderr);
    let said = |options: &str| {
        let outcome = run(&format!("translate --model {small} --verbose --threads 1 {options} fish"));
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (Some(0), 1), "{}", outcome.stderr);
        outcome
    };
    said("").says(&["int8", ": int8 on ", "1 thread", "beam 4, length penalty 1"]);
    said("--precision f32 --beam 2").says(&[": f32 on ", "beam 2"]);
    assert_eq!(said("").stdout, said("--precision int8").stdout);
    let info = run(&format!("info {small}"));
    assert!(info.stdout.contains("int8 by default"), "{}", info.stdout);
    assert_eq!(run(&format!("info {small} --json")).json()["precision"], "int8");
    assert_eq!(run(&format!("info {} --json", model.display())).json()["precision"], "f32");
    let outcome = finish(translate("-v --alpha 0.6 --max-length 7 fish"));
    outcome.says(&[": f32 on ", "alpha 0.6, at most 7 tokens"]);
}

#[test]
fn help_says_where_options_of_a_search_come_from() {
    for command in ["translate", "evaluate", "bench translate"] {
        let help = run(&format!("{command} --help")).stdout;
        for words in ["generation_config.json", "the beam is 4, the length penalty is 1", "50 tokens"] {
            assert!(help.contains(words), "`{words}` is not in: {help}");
        }
        assert!(!help.contains("0.6"), "{help}");
    }
}

#[test]
fn alpha_alone_brings_the_formula_of_the_paper() {
    let score = |options: &str| -> f32 {
        let outcome = fed(&format!("--n-best 1 --beam 1 {options}"), b"a dog runs\n");
        answered(&outcome)[0].rsplit(" ||| ").next().unwrap().parse().unwrap()
    };
    let json = fed("--json --beam 1", b"a dog runs\n");
    let line: serde_json::Value = serde_json::from_str(answered(&json)[0]).unwrap();
    let scores = line["hypotheses"][0]["token_scores"].as_array().unwrap();
    let (sum, length): (f64, _) =
        (scores.iter().map(|score| score.as_f64().unwrap()).sum(), scores.len() as f64);
    let close =
        |found: f32, expected: f64| assert!((f64::from(found) - expected).abs() < 1e-3, "{found} {expected}");
    close(score(""), sum / length);
    close(score("--length-penalty 0"), sum);
    close(score("--alpha 0.6"), sum / ((5.0 + length) / 6.0).powf(0.6));
}

/// Runs a command line of a shell with a terminal for stdin, stdout and stderr; returns what the terminal shows.
#[cfg(target_os = "linux")]
fn on_a_terminal(command: &str, typed: &[u8]) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        println!("skipped: there is no `script` to make a terminal");
        return None;
    };
    child.stdin.as_mut().unwrap().write_all(typed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_gets_a_prompt_and_a_file_gets_a_progress_bar() {
    let program = format!("{} translate --beam 1", env!("CARGO_BIN_EXE_attentive"));
    let program = format!("{program} --model {}", folder().join("model").display());
    let Some(shown) = on_a_terminal(&program, b"a dog\n\x04") else { return };
    assert!(shown.contains("type a line") && shown.contains("Ctrl-D"), "{shown}");
    let (input, out) = (file("barred", lines(2000).as_bytes()), folder().join("barred.out"));
    let (input, out) = (input.display(), out.display());
    for redirected in [format!("--input {input} > {out}"), format!("< {input} > {out}")] {
        let shown = on_a_terminal(&format!("{program} {redirected}"), b"").unwrap();
        assert!(shown.contains(" % ") && shown.contains("tokens/s"), "{shown}");
        assert!(!shown.contains("type a line"), "{shown}");
    }
    let shown = on_a_terminal(&format!("{program} --input {input}"), b"").unwrap();
    assert!(!shown.contains(" % "), "{shown}");
}

#[test]
fn json_has_everything() {
    let outcome = fed("--json --n-best 2 --alignments", b"a dog runs\n\n");
    let found = answered(&outcome);
    let line: serde_json::Value = serde_json::from_str(found[0]).unwrap();
    assert_eq!((line["line"].as_u64(), line["source"].as_str()), (Some(1), Some("a dog runs")));
    let hypotheses = line["hypotheses"].as_array().unwrap();
    assert_eq!(hypotheses.len(), 2);
    assert_eq!(hypotheses[0]["text"], line["translation"]);
    for hypothesis in hypotheses {
        let [tokens, scores] =
            ["tokens", "token_scores"].map(|name| hypothesis[name].as_array().unwrap().len());
        assert_eq!(tokens, scores);
        let words = hypothesis["text"].as_str().unwrap().split_whitespace().count();
        assert_eq!(hypothesis["alignment"].as_str().unwrap().split_whitespace().count(), words);
    }
    let empty: serde_json::Value = serde_json::from_str(found[1]).unwrap();
    assert_eq!((empty["translation"].as_str(), empty["line"].as_u64()), (Some(""), Some(2)));
}

#[test]
fn alignments_are_links_of_words() {
    let outcome = fed("--alignments", b"a dog runs on the grass.\n");
    let (text, links) = answered(&outcome)[0].split_once(" ||| ").unwrap();
    let words = text.split_whitespace().count();
    let mut targets = Vec::new();
    for link in links.split(' ') {
        let (source, target) = link.split_once('-').unwrap();
        assert!(source.parse::<usize>().unwrap() < 6, "{links}");
        targets.push(target.parse::<usize>().unwrap());
    }
    targets.sort_unstable();
    assert_eq!(targets, (0..words).collect::<Vec<_>>());
}

#[test]
fn a_prefix_begins_translations_and_has_alternatives() {
    let mut prefixed = translate("--prefix");
    prefixed.args(["the dog", "a dog", "the old dog"]);
    let outcome = finish(prefixed);
    assert!(answered(&outcome).iter().all(|line| line.starts_with("the dog")), "{}", outcome.stdout);
    let mut alternatives = translate("--alternatives 4 --prefix");
    alternatives.args(["the dog", "a dog"]);
    let outcome = finish(alternatives);
    let found: Vec<&str> =
        answered(&outcome).iter().map(|line| line.split(" ||| ").nth(1).unwrap()).collect();
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|line| line.starts_with("the dog")), "{found:?}");
}

#[test]
fn going_on_as_the_translation_does_leaves_it_and_its_score_as_they_were() {
    let fields = |options: &[&str]| -> Vec<(String, f32)> {
        let mut program = translate("--beam 3");
        program.args(options).arg("a dog runs on");
        let outcome = finish(program);
        let split = |line: &&str| {
            let [_, text, score] = line.split(" ||| ").collect::<Vec<_>>()[..] else { panic!("{line}") };
            (text.to_owned(), score.parse().unwrap())
        };
        answered(&outcome).iter().map(split).collect()
    };
    let whole = fields(&["--n-best", "1"]).remove(0);
    let prefix = whole.0.split_inclusive(' ').next().unwrap().trim();
    let prefixed = fields(&["--n-best", "1", "--prefix", prefix]).remove(0);
    assert_eq!(prefixed, whole);
    for options in [&["--alternatives", "6"][..], &["--alternatives", "6", "--prefix", prefix]] {
        let found = fields(options);
        assert!(found.contains(&whole), "{whole:?} is not in {found:?}");
        assert!(found.is_sorted_by(|a, b| a.1 >= b.1), "{found:?}");
    }
}

#[test]
fn draws_follow_from_the_seed() {
    let draw =
        |options: &str| fed(&format!("--temperature 1.5 --top-k 20 {options}"), lines(5).as_bytes()).stdout;
    assert_eq!(draw("--seed 1"), draw("--seed 1 --batch 2"));
    assert_ne!(draw("--seed 1"), draw("--seed 2"));
}

#[test]
fn characters_that_the_model_cannot_read_are_copied_or_told_once() {
    let outcome = fed("--beam 1", "dogж runs\na dog\nждж\n".as_bytes());
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), 3));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    outcome.says(&["`ж`"]);
    // Part of a word cannot be copied, and a word of its own is.
    assert_eq!(outcome.stdout.lines().nth(2), Some("ждж"));
    outcome.says(&["1 character in 1 line"]);
    let sentences = fed("--beam 1", "A dogж runs. A old dogж sleeps.\n".as_bytes());
    sentences.says(&["2 characters in 1 line", "`ж`:"]);
    fed("--alternatives 2", "dogж\n".as_bytes()).says(&["1 character in 1 line", "`ж`"]);
}

#[test]
fn an_emoji_comes_through_a_real_model() {
    let Some(model) = shared("reference/marian-multi30k") else { return };
    let mut program = program(&format!("translate --model {}", model.display()));
    program.args([
        "A dog runs through the grass. 😀",
        "😀 A man is singing.",
        "A dog runs through the grass.",
    ]);
    let outcome = finish(program);
    let found = answered(&outcome);
    assert!(found[0].ends_with(" 😀") && found[1].starts_with("😀 "), "{found:?}");
    assert!(!found[2].contains('😀'), "{found:?}");
}

#[test]
fn a_model_of_several_languages_is_told_which_one_is_wanted() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");
    let numbers = |options: &str, text: &str| {
        let mut program = program(&format!("translate --model {model} {options}"));
        program.arg(text);
        finish(program)
    };
    numbers("", "twenty-one").misused(&["--to", "`>>de<<", "`de`", "`fr`"]);
    numbers("--to xx", "twenty-one").misused(&["--to", "`xx`", "`de`", "`fr`"]);
    numbers("", ">>xx<< twenty-one").failed(&["line 1", "`xx`", "`de`", "`fr`"]);
    let named = numbers("", ">>de<< twenty-one");
    assert_eq!(answered(&named), ["einundzwanzig"]);
    assert_eq!(answered(&numbers("--to de", "twenty-one")), ["einundzwanzig"]);
    assert_eq!(answered(&numbers("--target-lang fr", ">>de<< twenty-one")), ["einundzwanzig"]);
    let sentences = ["Twenty-one.", "Ninety-seven."];
    let [first, second] = sentences.map(|sentence| {
        let [german, french] = ["de", "fr"].map(|to| numbers(&format!("--to {to}"), sentence).stdout);
        assert_ne!(german, french);
        german.trim_end().to_owned()
    });
    let paragraph = sentences.join("  ");
    for (options, text) in
        [("--to de", format!("\t{paragraph}")), ("--to fr", format!("\t>>de<< {paragraph}"))]
    {
        assert_eq!(numbers(options, &text).stdout, format!("\t{first}  {second}\n"));
    }
    let source = file("numbers", b"twenty-one\n");
    let (source, wrong) = (source.display(), format!("evaluate --model {model}"));
    run(&format!("{wrong} --source {source} --reference {source}")).misused(&["--to", "`de`"]);
    run(&format!("bench translate --model {model} --input {source}")).misused(&["--to", "`de`"]);
}

#[test]
fn a_language_token_that_a_model_of_one_language_reads_as_text_is_warned_about_once() {
    let outcome = fed("--beam 1", b">>de<< a dog\na dog\n>>de<< fish\n");
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), 3));
    assert_eq!(outcome.stderr.lines().filter(|line| line.contains("language token")).count(), 1);
    outcome.says(&["2 lines", "`>>de<<`", "remove the token"]);
    finish(translate("--to de fish")).misused(&["--to", "`de`", "one language"]);
}

#[test]
fn a_folder_without_a_model_is_told_in_one_sentence() {
    run("translate --model nowhere hello").failed(&["nowhere"]);
    let other = folder().join("other");
    std::fs::create_dir_all(&other).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(folder().join("model").join(name), other.join(name)).unwrap();
    }
    let translate = format!("translate --model {} hello", other.display());
    let outcome = run(&translate);
    outcome.failed(&["no tokenizer", "source.spm, target.spm and vocab.json, or tokenizer.json"]);
    assert!(!outcome.stderr.contains("merges.txt"), "{}", outcome.stderr);
    for name in ["source.spm", "target.spm", "vocab.json"] {
        if name == "vocab.json" {
            run(&translate).failed(&["other/vocab.json: no such file; a Marian tokenizer is"]);
        }
        std::fs::copy(folder().join("model").join(name), other.join(name)).unwrap();
    }
    std::fs::write(other.join("generation_config.json"), r#"{"num_beam_groups": 3}"#).unwrap();
    run(&translate).failed(&["generation_config.json", "num_beam_groups"]);
}

#[test]
fn a_folder_without_the_pieces_of_its_sources_is_refused() {
    let broken = folder().join("without-source");
    make_model(&broken);
    std::fs::remove_file(broken.join("source.spm")).unwrap();
    let outcome = run(&format!("translate --model {} fish", broken.display()));
    assert_eq!((outcome.code, &outcome.stdout[..]), (Some(1), ""));
    assert!(outcome.stderr.contains("source.spm"), "{}", outcome.stderr);
}

#[test]
fn a_weight_that_is_no_number_is_refused_with_its_tensor_and_row_in_every_precision() {
    let broken = folder().join("damaged");
    make_model(&broken);
    let tensor = "model.decoder.layers.0.fc1.weight";
    damage(&broken, tensor, 2 * 32 + 5);
    for options in ["", "--precision f32", "--precision bf16", "--precision int8"] {
        run(&format!("translate --model {} {options} fish", broken.display())).failed(&[
            "model.safetensors",
            tensor,
            "row 2, counted from 0",
            "not finite",
        ]);
    }
}

#[test]
fn wrong_usage_is_refused() {
    run("translate").refused(&["--model"]);
    run("translate --model a --beam 0").refused(&["--beam", "1"]);
    run("translate --model a --alpha 0.6 --length-penalty 1").refused(&["--alpha", "--length-penalty"]);
    run("translate --model a --input b text").refused(&["--input", "TEXT"]);
    run("translate --model a --top-p 2").refused(&["--top-p", "from 0 to 1"]);
    run("translate --model a --temperature 0").refused(&["--temperature", "above 0"]);
    run("translate --model a --precision f16").refused(&["f32", "bf16"]);
    run("evaluate --model a --source b").refused(&["--reference"]);
}

#[test]
fn every_example_of_their_help_is_a_valid_command() {
    for (command, count) in [("translate", 7), ("evaluate", 2)] {
        let help = run(&format!("{command} --help")).stdout;
        let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  attentive ")).collect();
        assert_eq!(examples.len(), count, "{help}");
        for example in examples {
            let line = example.split(" <").next().unwrap().replace(['"', '.'], "");
            assert_eq!(run(&format!("{line} --help")).code, Some(0), "{line}");
        }
    }
}

#[test]
fn evaluation_scores_what_translate_writes() {
    let source = file("source", lines(12).as_bytes());
    let reference = file("reference", fed("", lines(12).as_bytes()).stdout.as_bytes());
    let written = folder().join("written");
    let evaluate = |options: &str| {
        let model = folder().join("model");
        let [model, source] = [&model, &source].map(|path| path.display().to_string());
        run(&format!("evaluate --model {model} --source {source} {options}"))
    };
    let options = format!("--reference {} --output {}", reference.display(), written.display());
    let json = evaluate(&format!("{options} --json")).json();
    assert!(
        (json["chrf"].as_f64().unwrap() - 100.0).abs() < 1e-9 && json["ter"].as_f64() == Some(0.0),
        "{json}"
    );
    assert_eq!((json["sentences"].as_u64(), json["signature"]["bleu"].is_string()), (Some(12), true));
    for name in ["seconds", "sentences_per_s", "target_tokens_per_s", "target_tokens", "source_tokens"] {
        assert!(json[name].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(std::fs::read(&written).unwrap(), std::fs::read(&reference).unwrap());
    let paragraphs = file("paragraphs", format!("{}\n", SENTENCES.join(" ")).repeat(12).as_bytes());
    let of_lines = |options: &str| {
        let outcome = run(&format!(
            "evaluate --model {} --source {} --reference {} --output {} {options}",
            folder().join("model").display(),
            paragraphs.display(),
            reference.display(),
            written.display()
        ));
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        std::fs::read_to_string(&written).unwrap()
    };
    let input = std::fs::read(&paragraphs).unwrap();
    assert_eq!(of_lines(""), fed("--split lines", &input).stdout);
    assert_eq!(of_lines("--split auto"), fed("", &input).stdout);
    let table = evaluate(&options).stdout;
    assert!(table.contains("BLEU") && table.contains("12 lines in"), "{table}");
    let short = file("short", b"one line\n");
    evaluate(&format!("--reference {}", short.display())).failed(&["short", "12", "1"]);
}
