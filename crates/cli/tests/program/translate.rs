//! `attentive translate` and `attentive evaluate`.

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
fn make_model(folder: &Path) {
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
    outcome.stdout.strip_suffix('\n').map_or(vec![], |lines| lines.split('\n').collect())
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
fn a_long_line_is_translated_sentence_by_sentence() {
    // The model reads 64 tokens, and these are more.
    let parts = ["a dog runs on the grass.", "the old dog sleeps.", "cats hide in the trees."];
    let outcome = fed("--beam 1", format!("{}\nfish\n", parts.join(" ")).as_bytes());
    let expected = fed("--beam 1", format!("{}\nfish\n", parts.join("\n")).as_bytes());
    let expected = answered(&expected);
    assert_eq!(answered(&outcome), [expected[..3].join(" "), expected[3].to_owned()]);

    let outcome = fed("--alignments --beam 1", format!("{}\n", parts.join(" ")).as_bytes());
    let (text, links) = answered(&outcome)[0].split_once(" ||| ").unwrap();
    let sources: Vec<usize> =
        links.split(' ').map(|link| link.split_once('-').unwrap().0.parse().unwrap()).collect();
    assert_eq!(sources.len(), text.split_whitespace().count());
    // The words of the last sentence are counted on from those before.
    assert!(
        sources.iter().any(|word| (10..15).contains(word)) && sources.iter().all(|&word| word < 15),
        "{links}"
    );
}

/// Sentences that the splitter tells apart by their capitals. The model cannot read these: they are words of their own, so that
/// they are copied.
const SENTENCES: [&str; 4] = ["A dog runs.", "A old dog sleeps.", "A cat hides in the trees.", "A bear."];

#[test]
fn a_paragraph_is_translated_sentence_by_sentence_and_its_white_space_stays() {
    let [one, two, three, four] = SENTENCES;
    let alone = fed("", format!("{}\n", SENTENCES.join("\n")).as_bytes());
    let [a, b, c, d] = answered(&alone)[..] else { panic!("{}", alone.stdout) };
    let input = format!("\t {one}  {two}\u{a0}{three} {four} \r\n\n{two} {one}\n   \n{four}");
    let expected = format!("\t {a}  {b}\u{a0}{c} {d} \r\n\n{b} {a}\n   \n{d}\n");
    assert_eq!(fed("", input.as_bytes()).stdout, expected);
    assert_eq!(fed("--split sentences --batch 1 --threads 1", input.as_bytes()).stdout, expected);
    let mut argument = translate("");
    argument.arg(SENTENCES.join(" "));
    assert_eq!(finish(argument).stdout, format!("{a} {b} {c} {d}\n"));
    assert!([a, b, c, d].iter().all(|found| found.contains('A')), "{}", alone.stdout);
}

#[test]
fn lists_and_scores_of_a_paragraph_are_those_of_its_sentences_joined() {
    let answers = |input: String| -> Vec<serde_json::Value> {
        let outcome = fed("--n-best 3 --json --alignments", input.as_bytes());
        answered(&outcome).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let alone = answers(format!("{}\n", SENTENCES.join("\n")));
    let whole = &answers(format!("{}\n", SENTENCES.join(" ")))[0];
    for rank in 0..3 {
        let found = &whole["hypotheses"][rank];
        let of = |line: &serde_json::Value| line["hypotheses"][rank].clone();
        let texts: Vec<String> =
            alone.iter().map(|line| of(line)["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found["text"], texts.join(" "));
        for name in ["tokens", "token_scores"] {
            let parts = alone.iter().flat_map(|line| of(line)[name].as_array().unwrap().clone());
            assert_eq!(found[name].as_array().unwrap(), &parts.collect::<Vec<_>>());
        }
        let score: f64 = alone.iter().map(|line| of(line)["score"].as_f64().unwrap()).sum();
        assert!((found["score"].as_f64().unwrap() - score).abs() < 1e-4);

        let (mut links, mut before) = (Vec::new(), [0, 0]);
        for (line, text) in alone.iter().zip(&texts) {
            for link in of(line)["alignment"].as_str().unwrap().split_whitespace() {
                let (source, target) = link.split_once('-').unwrap();
                let [source, target] = [source, target].map(|word| word.parse::<usize>().unwrap());
                links.push(format!("{}-{}", before[0] + source, before[1] + target));
            }
            before[0] += line["source"].as_str().unwrap().split_whitespace().count();
            before[1] += text.split_whitespace().count();
        }
        assert_eq!(found["alignment"], links.join(" "));
    }
    let outcome = fed("--n-best 2 --alignments", format!("  {} \r\n", SENTENCES.join(" ")).as_bytes());
    assert!(answered(&outcome).iter().all(|line| line.split(" ||| ").all(|field| field == field.trim())));
}

#[test]
fn lines_are_read_whole_where_that_is_asked_for_or_the_model_learned_it() {
    let line = format!("{} {}\n", SENTENCES[0], SENTENCES[1]);
    let [auto, lines] = ["", "--split lines"].map(|options| fed(options, line.as_bytes()).stdout);
    assert_ne!(auto, lines);
    let of_share = |share: &str, options: &str| {
        let model = folder().join(format!("share-{share}"));
        make_model(&model);
        let config = std::fs::read_to_string(model.join("config.json")).unwrap();
        let key = format!("{{\"attentive_multi_sentence_share\": {share},");
        std::fs::write(model.join("config.json"), config.replacen('{', &key, 1)).unwrap();
        let input = file("share", line.as_bytes());
        run(&format!("translate --model {} --input {} {options}", model.display(), input.display())).stdout
    };
    assert_eq!(of_share("0.05", ""), lines);
    assert_eq!(of_share("0.05", "--split sentences"), auto);
    assert_eq!(of_share("0.049", ""), auto);

    // A prefix is of a line as a whole.
    let prefixed = |options: &str| fed(&format!("--prefix a {options}"), line.as_bytes()).stdout;
    assert_eq!(prefixed(""), prefixed("--split lines"));
    assert_ne!(prefixed(""), prefixed("--split sentences"));
    assert_eq!(fed("--alternatives 2", line.as_bytes()).stdout.lines().count(), 2);
    run("translate --model a --split words").refused(&["--split", "auto", "sentences", "lines"]);
}

#[test]
fn alternatives_of_a_line_that_is_too_long_are_refused_not_cut() {
    let long = ["a dog runs on the grass.", "the old dog sleeps.", "cats hide in the trees."].join(" ");
    let outcome = fed("--alternatives 2", format!("fish\n{long}\n").as_bytes());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("the model can read at most 64: split it"), "{}", outcome.stderr);
}

#[test]
fn a_sentence_that_is_too_long_is_read_in_pieces_and_none_of_it_is_lost() {
    let long = ["dog runs on the grass"; 20].join(" ");
    let outcome =
        fed("--beam 1 --json", format!("a dog\n{long}\n{}\nfish\n", "grass".repeat(100)).as_bytes());
    assert_eq!((outcome.code, outcome.stdout.lines().count(), &*outcome.stderr), (Some(0), 4, ""));
    // The model reads 64 tokens at once: it writes at least as many sentences as there are pieces.
    let ends = |line: &str| line.matches("\"</s>\"").count();
    let lines: Vec<usize> = outcome.stdout.lines().map(ends).collect();
    assert!(lines[0] == 1 && lines[1] >= 2 && lines[2] >= 2 && lines[3] == 1, "{lines:?}");
}

#[test]
fn draws_follow_from_the_seed() {
    let draw =
        |options: &str| fed(&format!("--temperature 1.5 --top-k 20 {options}"), lines(5).as_bytes()).stdout;
    assert_eq!(draw("--seed 1"), draw("--seed 1 --batch 2"));
    assert_ne!(draw("--seed 1"), draw("--seed 2"));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let output = file("kept", b"as it was\n");
    let broken = file("broken", b"a dog\nbad \xFF\n");
    let options = format!("--input {} --output {}", broken.display(), output.display());
    finish(translate(&options)).failed(&["broken", "line 2", "UTF-8"]);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "as it was\n");
    let left = || {
        std::fs::read_dir(folder()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
            name.contains("kept") && name.ends_with(".part")
        })
    };
    assert_eq!(left().count(), 0);
    // What was translated before the broken line has been written where it can be.
    let outcome = fed("", b"a dog\nbad \xFF\n");
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(1), 1), "{}", outcome.stderr);
    outcome.says(&["standard input, line 2", "UTF-8"]);
}

#[test]
fn the_advice_about_a_file_in_another_encoding_works() {
    let latin = file("latin 1", b"caf\xe9 dog\n");
    let wide: Vec<u8> =
        [0xfeff].into_iter().chain("a dog\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for path in [latin, file("wide", &wide)] {
        let mut program = translate("--input");
        program.arg(&path);
        let outcome = finish(program);
        outcome.failed(&["line 1", "UTF-8"]);
        let Ok(version) = Command::new("iconv").arg("--version").output() else {
            println!("skipped: there is no iconv");
            return;
        };
        assert!(version.status.success());
        let command = outcome.stderr.split('`').nth(1).unwrap();
        assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
        let converted = format!("{}.utf8", path.display());
        assert!(std::fs::read_to_string(converted).unwrap().ends_with("dog\n"));
    }
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
#[cfg(unix)]
fn an_output_that_is_the_input_is_refused_by_whatever_name() {
    let input = file("precious", b"a dog\n");
    let link = folder().join("precious-link");
    std::os::unix::fs::symlink(&input, &link).unwrap();
    let hard = folder().join("precious-hard");
    std::fs::hard_link(&input, &hard).unwrap();
    let other = folder().join("model/..").join(input.file_name().unwrap());
    for output in [&input, &link, &hard, &other] {
        let options = format!("--input {} --output {}", input.display(), output.display());
        finish(translate(&options)).misused(&["--input", "--output", "precious"]);
        let model = folder().join("model");
        for (source, reference) in [(&input, &file("else", b"a dog\n")), (&file("else", b"a dog\n"), &input)]
        {
            let [model, source, reference, output] =
                [&model, source, reference, output].map(|path| path.display().to_string());
            let files = format!("--source {source} --reference {reference} --output {output}");
            run(&format!("evaluate --model {model} {files}")).misused(&["--output", "precious"]);
        }
    }
    assert_eq!(std::fs::read(&input).unwrap(), b"a dog\n");
    let model = folder().join("model").display().to_string();
    run(&format!("convert --model {model} --out {model}/.")).misused(&["--model", "--out"]);
    // A device is no file that could be lost.
    assert_eq!(finish(translate("--input /dev/null --output /dev/null")).code, Some(0));
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
#[cfg(unix)]
fn an_output_that_is_there_keeps_its_kind_and_its_mode() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = folder().join("outputs");
    std::fs::create_dir_all(&folder).unwrap();
    let [real, link, pipe] = ["real.txt", "link.txt", "pipe"].map(|name| folder.join(name));
    std::fs::write(&real, "old\n").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.txt", &link).unwrap();
    let expected = format!("{}\n", answered(&fed("", b"a dog\n"))[0]);
    let outcome = fed(&format!("--output {}", link.display()), b"a dog\n");
    assert_eq!((outcome.code, std::fs::read_to_string(&real).unwrap()), (Some(0), expected.clone()));
    assert!(link.is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    assert_eq!(fed(&format!("--output {}", pipe.display()), b"a dog\n").code, Some(0));
    assert_eq!(reader.join().unwrap(), expected);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut program = translate("--beam 1");
    program.stdin(std::fs::File::open(file("many", lines(100).as_bytes())).unwrap()).stdout(writer);
    let outcome = finish(program);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_it_with_a_word_and_leaves_no_half_file() {
    let output = folder().join("interrupted");
    let (mut child, mut input, _) = talk(&format!("--output {}", output.display()));
    input.write_all(b"a dog\n").unwrap();
    let signal =
        || assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    // Once the file beside is there, the handler is about to be.
    let beside = || {
        let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".interrupted")).count()
    };
    while beside() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal();
    let status = child.wait().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(130), "attentive: interrupted\n"));
    assert!(!output.exists() && beside() == 0);
}

#[test]
#[cfg(target_os = "linux")]
fn an_endless_stream_needs_no_more_memory_than_its_beginning() {
    let (mut child, mut input, mut output) = talk("--beam 1 --max-length 2");
    let status = format!("/proc/{}/status", child.id());
    let peak = || -> usize {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let writer = std::thread::spawn(move || {
        let lines = lines(1000);
        (0..8).for_each(|_| input.write_all(lines.as_bytes()).unwrap());
        input
    });
    let mut read =
        |count: usize| (0..count).for_each(|_| assert!(output.read_line(&mut String::new()).unwrap() > 0));
    read(2000);
    let early = peak();
    read(6000);
    let late = peak();
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
    assert!(late < early + 8 * 1024, "{early} kB became {late} kB");
}

#[test]
fn a_folder_without_a_model_is_told_in_one_sentence() {
    run("translate --model nowhere hello").failed(&["nowhere"]);
    let other = folder().join("other");
    std::fs::create_dir_all(&other).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(folder().join("model").join(name), other.join(name)).unwrap();
    }
    run(&format!("translate --model {} hello", other.display())).failed(&["no tokenizer"]);
    for name in ["source.spm", "target.spm", "vocab.json"] {
        std::fs::copy(folder().join("model").join(name), other.join(name)).unwrap();
    }
    std::fs::write(other.join("generation_config.json"), r#"{"num_beam_groups": 3}"#).unwrap();
    run(&format!("translate --model {} hello", other.display()))
        .failed(&["generation_config.json", "num_beam_groups"]);
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
    for (command, count) in [("translate", 6), ("evaluate", 2)] {
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
