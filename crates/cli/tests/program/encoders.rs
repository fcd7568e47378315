//! `attentive embed`, `fill-mask`, `classify` and `tag`, and what other commands make of a BERT.

use super::{Outcome, finish, program, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

/// A small model with a tokenizer, in a folder that is gone when the test ends.
pub struct Model(PathBuf);

impl Model {
    pub fn new(model: &str, test: &str) -> Model {
        let folder = std::env::temp_dir().join(format!("attentive-encoders-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(Path::new(GOLDEN).join("bert").join(model).join(file), folder.join(file)).unwrap();
        }
        let answers = std::fs::read(Path::new(GOLDEN).join("tasks.json")).unwrap();
        let answers: Value = serde_json::from_slice(&answers).unwrap();
        let words: Vec<&str> =
            answers["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").unwrap();
        Model(folder)
    }

    pub fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// Runs a command on an input.
fn run_with(line: &str, input: &str) -> Outcome {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("attentive-encoders-{}-{number}.txt", std::process::id()));
    std::fs::write(&path, input).unwrap();
    let mut program = program(line);
    program.stdin(Stdio::from(std::fs::File::open(&path).unwrap()));
    let outcome = finish(program);
    let _ = std::fs::remove_file(path);
    outcome
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lines_become_vectors_in_three_formats() {
    let model = Model::new("hidden", "formats");
    let line = format!("embed --model {}", model.name());
    let text = run_with(&line, "a dog\n\nthe cat runs.\r\n");
    assert_eq!((text.code, text.stderr.as_str(), text.stdout.lines().count()), (Some(0), "", 3));
    let json = run_with(&format!("{line} --json"), "a dog\n\nthe cat runs.\r\n");
    for (text, json) in text.stdout.lines().zip(json.stdout.lines()) {
        let json: Value = serde_json::from_str(json).unwrap();
        let numbers: Vec<f64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
        let embedding: Vec<f64> = serde_json::from_value(json["embedding"].clone()).unwrap();
        assert_eq!(numbers, embedding);
        assert!((numbers.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-5);
    }
    std::fs::write(model.file("texts.txt"), "a dog\n\nthe cat runs.").unwrap();
    let npy = model.file("vectors.npy");
    let outcome = run(&format!("{line} --input {} --output {npy}", model.file("texts.txt")));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
    let bytes = std::fs::read(npy).unwrap();
    assert_eq!(bytes.len(), 128 + 3 * 32 * 4);
    let header = String::from_utf8_lossy(&bytes[10..128]).into_owned();
    assert!(header.contains("'shape': (3, 32)") && header.contains("'<f4'"), "{header}");
    let first = f32::from_le_bytes(bytes[128..132].try_into().unwrap());
    assert_eq!(first.to_string(), text.stdout.split(' ').next().unwrap());
}

#[test]
fn texts_are_ranked_by_similarity() {
    let model = Model::new("hidden", "similar");
    let line = format!("embed --model {} --similar the.cat --top 2", model.name());
    let outcome = run_with(&line, "a dog\nthe . cat\nthe.cat\n");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", outcome.stderr);
    assert!(lines.iter().all(|line| line.starts_with("1.0000")), "{lines:?}");
    run_with(&format!("{line} --json"), "a dog\n").json();
}

#[test]
fn masks_classes_and_tags_are_told() {
    let masked = Model::new("masked", "told-masked");
    let json =
        run_with(&format!("fill-mask --model {} --json --top 2", masked.name()), "a [MASK] runs\n").json();
    assert_eq!(json["masks"][0].as_array().unwrap().len(), 2);
    let wrong = run_with(&format!("fill-mask --model {}", masked.name()), "a [MASK]\na dog\n");
    assert_eq!(wrong.code, Some(1));
    wrong.says(&["text 2", "[MASK]"]);

    let classes = Model::new("sequence", "told-classes");
    let json = run_with(&format!("classify --model {} --json", classes.name()), "a dog\n").json();
    assert_eq!(json["scores"].as_array().unwrap().len(), 3);
    assert_eq!(json["label"], json["scores"][0]["label"]);
    let pair = run_with(&format!("classify --model {} --pairs", classes.name()), "a dog\ta cat\n");
    assert_eq!((pair.code, pair.stdout.lines().count()), (Some(0), 1));
    run_with(&format!("classify --model {} --pairs", classes.name()), "a dog\n").failed(&["text 1", "tab"]);

    let tags = Model::new("token", "told-tags");
    let bio = run_with(&format!("tag --model {} --bio", tags.name()), "A dog runs.\n");
    let words: Vec<&str> = bio.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["A", "dog", "runs", ".", ""]);
    let json = run_with(&format!("tag --model {} --json", tags.name()), "A dog runs.\n").json();
    let entity = &json["entities"][0];
    assert!(entity["start"].is_u64() && entity["end"].is_u64() && entity["word"].is_string(), "{json}");
}

#[test]
fn the_questions_of_a_squad_file_are_answered_and_scored() {
    let model = Model::new("answer", "squad");
    let folder = std::env::temp_dir().join(format!("attentive-squad-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [questions, answers] = ["dev.json", "answers.json"].map(|name| folder.join(name));
    let file = |start: usize| {
        json!({"version": "1.1", "data": [{"title": "", "paragraphs": [{"context": "the dog runs", "qas": [
            {"id": "a", "question": "dog", "answers": [{"text": "dog", "answer_start": start}]},
            {"id": "b", "question": "the", "answers": [{"text": "the dog runs", "answer_start": 0}]}]}]}]})
        .to_string()
    };
    std::fs::write(&questions, file(4)).unwrap();
    let found = run(&format!("answer --model {} --squad {}", model.name(), questions.display())).json();
    assert!(["a", "b"].iter().all(|id| "the dog runs".contains(found[id].as_str().unwrap())), "{found}");
    // A question that leaves no room for its text takes no answer from the others.
    let long = file(4).replace("\"question\":\"the\"", &format!("\"question\":\"{}\"", "the ".repeat(600)));
    std::fs::write(&questions, long).unwrap();
    let told = run(&format!("answer --model {} --squad {}", model.name(), questions.display()));
    assert!(told.stderr.contains("1 questions leave no room for their text"), "{}", told.stderr);
    let kept: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(kept, json!({"a": found["a"], "b": ""}));
    std::fs::write(&questions, file(4)).unwrap();
    std::fs::write(&answers, r#"{"a": "A dog!", "c": "?"}"#).unwrap();
    let line = format!("score --squad {} --hypothesis {}", questions.display(), answers.display());
    let scored = run(&format!("{line} --json"));
    assert!(
        scored.stderr.contains("1 questions have no answer in the file, and score 0"),
        "{}",
        scored.stderr
    );
    let scores: Value = serde_json::from_str(&scored.stdout).unwrap();
    assert_eq!(scores, json!({"exact_match": 50.0, "f1": 50.0, "total": 2}));
    assert!(run(&line).stdout.contains("50.00"));
    std::fs::write(&questions, file(5)).unwrap();
    run(&line).failed(&["dev.json: question `a`: the answer `dog` is not in its context at character 5"]);
    std::fs::write(&answers, "[1]").unwrap();
    std::fs::write(&questions, file(4)).unwrap();
    run(&line).failed(&["answers.json: this is no JSON object"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn questions_are_answered_with_words_of_a_text() {
    let model = Model::new("answer", "answer");
    let line = format!("answer --model {}", model.name());
    let told = run_with(&line, "the dog\ta cat and a dog runs\n");
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let columns: Vec<&str> = told.stdout.trim_end().split('\t').collect();
    assert!(columns[2].contains(&format!("[{}]", columns[1])), "{}", told.stdout);
    std::fs::write(model.file("context.txt"), "a cat and a dog runs").unwrap();
    let context = model.file("context.txt");
    let json = run_with(&format!("{line} --context-file {context} --top 2 --json"), "the dog\n").json();
    let answers = json["answers"].as_array().unwrap();
    assert_eq!((answers.len(), answers[0]["answer"].as_str()), (2, Some(columns[1])));
    let place = ["start", "end"].map(|key| answers[0][key].as_u64().unwrap() as usize);
    assert_eq!(&"a cat and a dog runs"[place[0]..place[1]], columns[1]);
    let json = run_with(&format!("{line} --context dog --no-answer --top 9 --json"), "the dog\n").json();
    assert_eq!(json["answers"].as_array().unwrap().len(), 2, "{json}");
    run_with(&line, "the dog\n").failed(&["text 1", "tab", "--context"]);
    run_with(&line, "the dog\t\n").failed(&["text 1", "no tokens"]);
    let other = Model::new("token", "answer-none");
    run(&format!("answer --model {} --context a dog", other.name())).failed(&["BertForQuestionAnswering"]);
}

#[test]
fn texts_are_ranked_by_how_well_they_fit() {
    let model = Model::new("rank", "rerank");
    let line = format!("rerank --model {} --query dog", model.name());
    let told = run_with(&line, "a dog\nthe cat\nlondon\n");
    let scores: Vec<f32> =
        told.stdout.lines().map(|line| line.split_once("  ").unwrap().0.parse().unwrap()).collect();
    assert_eq!((told.code, scores.len()), (Some(0), 3), "{}", told.stderr);
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|score| (0.0..=1.0).contains(score)));
    let json = run_with(&format!("{line} --top 1 --json"), "a dog\nthe cat\nlondon\n").json();
    let best = told.stdout.lines().next().unwrap().split_once("  ").unwrap().1;
    assert_eq!(json["text"].as_str(), Some(best));
    assert_eq!(["a dog", "the cat", "london"][json["line"].as_u64().unwrap() as usize - 1], best);
    let classes = Model::new("sequence", "rerank-classes");
    run(&format!("rerank --model {} --query dog text", classes.name())).failed(&["3 classes"]);
}

#[test]
fn a_roberta_answers_as_it_comes() {
    let folder = format!("{GOLDEN}/roberta/masked");
    let filled = run_with(&format!("fill-mask --model {folder} --top 1 --json"), "a dog <mask>.\n").json();
    assert_eq!(filled["masks"][0][0]["token"].as_u64(), Some(84));
    let info = run(&format!("info {folder}"));
    for word in ["RoBERTa", "RobertaForMaskedLM", "attentive fill-mask", "positions"] {
        assert!(info.stdout.contains(word), "{}", info.stdout);
    }
    let vectors = run_with(&format!("embed --model {folder} --json"), "a dog\n").json();
    assert_eq!(vectors["embedding"].as_array().unwrap().len(), 32);
}

#[test]
fn a_long_text_is_cut_with_a_word_or_refused() {
    let model = Model::new("hidden", "long");
    let long = "a dog ".repeat(20);
    let line = format!("embed --model {}", model.name());
    let cut = run_with(&line, &format!("a dog\n{long}\n"));
    assert_eq!((cut.code, cut.stdout.lines().count()), (Some(0), 2));
    assert!(cut.stderr.contains("1 text cut"), "{}", cut.stderr);
    let refused = run_with(&format!("{line} --too-long error"), &format!("a dog\n{long}\n"));
    // The first text may have been answered before the second came.
    assert_eq!(refused.code, Some(1));
    refused.says(&["text 2", "42 tokens", "at most 16"]);
}

#[test]
fn a_model_that_cannot_do_it_says_what_is_needed() {
    let model = Model::new("hidden", "cannot");
    run(&format!("classify --model {} text", model.name()))
        .failed(&["classify", "BertForSequenceClassification"]);
    run(&format!("embed --model {GOLDEN}/marian/tied text")).failed(&["config.json", "marian", "bert"]);
}

#[test]
fn info_tells_what_a_bert_is_for() {
    let model = Model::new("sequence", "info");
    let table = run(&format!("info {}", model.name()));
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    for word in ["BertForSequenceClassification", "attentive classify", "bad, fair, good"] {
        assert!(table.stdout.contains(word), "{}", table.stdout);
    }
    let json = run(&format!("info {} --json", model.name())).json();
    assert_eq!((json["command"].as_str(), json["layers"].as_u64()), (Some("classify"), Some(2)));
}

#[test]
fn an_argument_is_one_text_whatever_is_in_it() {
    let model = Model::new("sequence", "argument");
    let mut program = program(&format!("classify --model {} --json", model.name()));
    program.arg("a dog\nruns.").arg("the cat");
    let outcome = finish(program);
    assert_eq!((outcome.code, outcome.stdout.lines().count()), (Some(0), 2), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with(r#"{"text":"a dog\nruns.","#), "{}", outcome.stdout);
}

#[test]
fn inspect_shows_what_a_bert_looks_at() {
    let model = Model::new("hidden", "inspect");
    let page = model.file("page.html");
    let mut program = program(&format!("inspect --model {} --out {page}", model.name()));
    program.arg("a dog runs");
    let outcome = finish(program);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<h1 class=\"sentence\">a dog runs</h1>"));
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data = serde_json::from_str::<Value>(data).unwrap()["attention"].take();
    let pieces: Vec<&str> =
        data["source"].as_array().unwrap().iter().map(|token| token["piece"].as_str().unwrap()).collect();
    assert_eq!(pieces, ["[CLS]", "a", "dog", "run", "##s", "[SEP]"]);
    // Four heads and their mean in each of two layers; each row sums to 1.
    let maps = data["attention"].as_array().unwrap();
    assert_eq!(maps.len(), 10);
    for map in maps {
        assert_eq!(map["kind"], "encoder");
        for row in map["weights"].as_array().unwrap() {
            let sum: f64 = row.as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{row}");
        }
    }
    let svg = model.file("head.svg");
    let line = format!("inspect --model {} dog --out {svg}", model.name());
    run(&format!("{line} --kind cross")).misused(&["--kind", "encoder"]);
    run(&format!("{line} --layer 3")).misused(&["--layer", "layers 1 to 2"]);
    run(&format!("{line} --translation Hund")).misused(&["--translation"]);
    assert_eq!(run(&format!("{line} --layer 2 --head mean")).code, Some(0));
    assert!(std::fs::read_to_string(svg).unwrap().contains("dog"));
}

#[test]
fn convert_keeps_what_a_bert_answers() {
    let model = Model::new("sequence", "convert");
    let (half, old) = (model.file("half"), model.file("new-names"));
    let json = run(&format!("convert --model {} --out {half} --precision bf16 --json", model.name())).json();
    assert!(json["bytes"].as_f64().unwrap() < 0.7 * json["bytes_before"].as_f64().unwrap(), "{json}");
    let classify = |folder: &str| run_with(&format!("classify --model {folder} --json"), "a dog\n").json();
    let (before, after) = (classify(&model.name()), classify(&half));
    assert_eq!(before["label"], after["label"]);
    let score = |json: &Value| json["scores"][0]["score"].as_f64().unwrap();
    assert!((score(&before) - score(&after)).abs() < 0.02, "{before} {after}");
    run(&format!("convert --model {} --out {half}", model.name())).failed(&["already has a model"]);
    run(&format!("convert --model {} --out {old} --precision int8", model.name())).misused(&["int8", "bf16"]);
    run(&format!("convert --model {} --out {old} --layout marian", model.name())).misused(&["--layout"]);
    assert!(!Path::new(&old).exists());
    // Old names and buffers become those of today.
    let outcome = run(&format!("convert --model {GOLDEN}/bert/old --out {old}"));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.says(&["cannot read text"]);
    let file = std::fs::read(Path::new(&old).join("model.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&file[8..8 + usize::from(file[8])]).into_owned();
    assert!(!header.contains("gamma") && !String::from_utf8_lossy(&file).contains("LayerNorm.gamma"));
}

#[test]
fn bench_train_takes_models_of_two_classes() {
    for family in ["bert", "roberta", "deberta"] {
        let line = format!(
            "bench train --family {family} --preset tiny --batch 2 --tokens 8 --vocab 50 --steps 1 --json"
        );
        let json = run(&line).json();
        assert_eq!((json["family"].as_str(), json["preset"].as_str()), (Some(family), Some("tiny")));
        let loss = json["loss"].as_f64().unwrap();
        assert!(json["step_ms"].as_f64().unwrap() > 0.0 && (0.1..2.0).contains(&loss), "{loss}");
    }
    run("bench train --family bert --target 3").misused(&["--target"]);
    run("bench train --family bert --vocab 4").misused(&["--vocab"]);
}

#[test]
fn bench_train_takes_models_with_encoder_and_decoder() {
    for family in ["bart", "t5"] {
        let line = format!(
            "bench train --family {family} --preset tiny --batch 2 --tokens 8 --target 6 --vocab 50 --steps 1 --json"
        );
        let json = run(&line).json();
        assert_eq!((json["family"].as_str(), json["preset"].as_str()), (Some(family), Some("tiny")));
        let loss = json["loss"].as_f64().unwrap();
        assert!((1.0..60.0).contains(&loss), "{loss}");
    }
}

#[test]
fn bench_train_takes_a_gpt2() {
    let line = "bench train --family gpt2 --preset tiny --batch 2 --tokens 8 --vocab 50 --steps 1 --json";
    let json = run(line).json();
    assert_eq!((json["family"].as_str(), json["preset"].as_str()), (Some("gpt2"), Some("tiny")));
    // A model that has learned nothing finds each of 50 tokens about as probable, ln 50 is 3.9, and this one has made some steps.
    let loss = json["loss"].as_f64().unwrap();
    assert!((1.0..4.4).contains(&loss), "{loss}");
    run("bench train --family gpt2 --target 3").misused(&["--target"]);
    run("bench train --family gpt2 --tokens 1").misused(&["--source"]);
}

#[test]
fn a_classifier_is_trained_killed_and_asked() {
    let model = Model::new("masked", "train");
    let lines: String =
        (0..60).map(|i| format!("{}\n", ["yes\ta dog runs", "no\tthe cat", "no\tcat"][i % 3])).collect();
    std::fs::write(model.file("train.tsv"), lines).unwrap();
    let (data, out) = (model.file("train.tsv"), model.file("run"));
    let line = format!(
        "train --task classify --from {} --data {data} --valid-data {data} --learning-rate 0.01 --threads 1 --out",
        model.name()
    );
    let json = run(&format!("{line} {out} --epochs 20 --json -q")).json();
    assert_eq!((json["accuracy"].as_f64(), json["f1"].as_f64()), (Some(100.0), Some(100.0)), "{json}");
    let told = run_with(&format!("classify --model {out}"), "a dog runs\nthe cat\n");
    let labels: Vec<&str> = told.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(labels, ["yes", "no"], "{}", told.stderr);

    // Killed at once and taken up again, to the same bits.
    let again = model.file("again");
    let mut killed = program(&format!("{line} {again} --epochs 20 --save-every 3 -q")).spawn().unwrap();
    let state = Path::new(&again).join("checkpoints/step-00000003.safetensors");
    let begin = std::time::Instant::now();
    while !state.exists() && begin.elapsed().as_secs() < 60 && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let _ = killed.kill();
    killed.wait().unwrap();
    assert!(state.exists());
    let whole = model.file("whole");
    assert_eq!(run(&format!("{line} {whole} --epochs 20 --save-every 3 -q")).code, Some(0));
    let resumed = run(&format!("train --out {again} --resume --threads 2 -q"));
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let weights = |folder: &str| std::fs::read(Path::new(folder).join("model.safetensors")).unwrap();
    assert!(weights(&again) == weights(&whole), "the weights differ");

    run(&format!(
        "train -q --task classify --from {GOLDEN}/marian/tied --data {data} --out {}",
        model.file("x")
    ))
    .failed(&["config.json", "marian", "bert"]);
    std::fs::write(model.file("tags"), "a O\ndog\n").unwrap();
    let (tags, out) = (model.file("tags"), model.file("x"));
    run(&format!("train -q --task tag --from {} --data {tags} --out {out}", model.name()))
        .failed(&["tags", "line 2"]);
}
