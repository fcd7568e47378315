//! `attentive generate`, and what other commands make of a GPT-2.

use super::{Outcome, finish, program, run};
use serde_json::Value;
use std::process::Stdio;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

fn answers() -> Value {
    serde_json::from_slice(&std::fs::read(format!("{GOLDEN}/gpt2.json")).unwrap()).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The command with flags and prompts.
fn generate(flags: &str, prompts: &[&str]) -> Outcome {
    let mut program = program(&format!("generate --model {GOLDEN}/gpt2/saved {flags}"));
    program.args(prompts);
    finish(program)
}

fn with_input(flags: &str, input: &str) -> Outcome {
    let path =
        std::env::temp_dir().join(format!("attentive-generate-{}-{}", std::process::id(), input.len()));
    std::fs::write(&path, input).unwrap();
    let mut program = program(&format!("generate --model {GOLDEN}/gpt2/saved {flags}"));
    program.stdin(Stdio::from(std::fs::File::open(&path).unwrap()));
    let outcome = finish(program);
    let from_file = run(&format!("generate --model {GOLDEN}/gpt2/saved {flags} --input {}", path.display()));
    assert_eq!((from_file.code, &from_file.stdout), (outcome.code, &outcome.stdout));
    let _ = std::fs::remove_file(path);
    outcome
}

#[test]
fn a_prompt_is_continued_as_transformers_does_alone_and_among_others() {
    let answers = answers();
    let (prompts, expected) = (strings(&answers["prompts"]), strings(&answers["greedy"]));
    // transformers was asked to keep special tokens.
    let expected: Vec<String> = expected.iter().map(|text| text.replace("<|endoftext|>", "")).collect();
    let flags = "--max-new-tokens 16";
    for (prompt, expected) in prompts.iter().zip(&expected) {
        let alone = generate(flags, &[prompt]);
        assert_eq!((alone.code, alone.stderr.as_str()), (Some(0), ""));
        assert_eq!(alone.stdout, format!("{expected}\n"), "{prompt}");
    }
    // Lines of an argument are one prompt.
    let lines = generate("--max-new-tokens 2 --json", &["The\nA", "B"]);
    assert_eq!(lines.stdout.lines().count(), 2);
    assert!(lines.stdout.starts_with(r#"{"prompt":"The\nA","#), "{}", lines.stdout);
    // More of them than are read ahead.
    let many = generate("--max-new-tokens 1 --threads 1 --batch 1 --json", &["A"; 11]);
    assert_eq!(many.stdout.lines().count(), 11);
    let all = format!("{}\n", expected.join("\n---\n"));
    let borrowed: Vec<&str> = prompts.iter().map(String::as_str).collect();
    assert_eq!(generate(flags, &borrowed).stdout, all);
    assert_eq!(with_input(flags, &(prompts.join("\n") + "\n")).stdout, all);
}

#[test]
fn json_tells_tokens_scores_and_why_a_text_ends() {
    let answers = answers();
    let beam = &answers["cases"][3];
    assert_eq!(beam["name"], "beam");
    let prompts = strings(&answers["prompts"]);
    let borrowed: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let found = generate("--max-new-tokens 16 --beam 4 --n-best 4 --json", &borrowed);
    let lines: Vec<Value> = found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), prompts.len());
    for ((line, prompt), expected) in lines.iter().zip(&prompts).zip(beam["results"].as_array().unwrap()) {
        assert_eq!(line["prompt"], **prompt);
        for (found, expected) in
            line["continuations"].as_array().unwrap().iter().zip(expected.as_array().unwrap())
        {
            assert_eq!(found["tokens"], expected["tokens"]);
            let [found_score, score] = [found, expected].map(|one| one["score"].as_f64().unwrap());
            assert!((found_score - score).abs() < 1e-3, "{found_score} {score}");
            let ended = expected["tokens"].as_array().unwrap().last() == Some(&Value::from(0));
            assert_eq!(found["finish"], if ended { "end" } else { "length" });
        }
    }
}

#[test]
fn a_stop_text_ends_a_continuation_before_it() {
    let answers = answers();
    let prompt = &strings(&answers["prompts"])[4];
    let whole = generate("--max-new-tokens 16", &[prompt]).stdout;
    let at = whole.find("ors").unwrap();
    let stopped = generate("--max-new-tokens 16 --stop ors --stop zzz", &[prompt]);
    assert_eq!(stopped.stdout, format!("{}\n", &whole[..at]));
    let told = generate("--max-new-tokens 16 --stop ors --json", &[prompt]).json();
    assert_eq!(told["continuations"][0]["finish"], "stop");
    assert_eq!(told["continuations"][0]["text"], whole[..at]);
}

#[test]
fn draws_follow_from_the_seed_and_not_from_the_precision_of_threads() {
    let flags = "--max-new-tokens 12 --sample --top-p 0.95 --json";
    let seeded = |more: &str| generate(&format!("{flags} {more}"), &["The", "A"]).stdout;
    let first = seeded("--seed 3");
    assert_eq!(first, seeded("--seed 3 --threads 1 --batch 1"));
    assert_ne!(first, seeded("--seed 4"));
}

#[test]
fn the_end_of_the_context_ends_a_text_and_a_prompt_that_fills_it_is_refused() {
    let long = "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 ";
    let full = generate("--max-new-tokens 100 --min-new-tokens 100", &[long]);
    assert_eq!(full.code, Some(0));
    assert_eq!(full.stderr, "attentive: the text ends because the model has no positions left\n");
    assert!(!full.stdout.is_empty());
    generate("", &[&long.repeat(2)]).failed(&[
        "the arguments, line 1",
        "the prompt has",
        "at most 48",
        "shorten",
    ]);
    let slid = generate("--max-new-tokens 100 --min-new-tokens 100 --slide --json", &[long, &long.repeat(2)]);
    assert_eq!((slid.code, slid.stderr.as_str(), slid.stdout.lines().count()), (Some(0), "", 2));
    for line in slid.stdout.lines() {
        let found: Value = serde_json::from_str(line).unwrap();
        let continuation = &found["continuations"][0];
        assert_eq!(
            (continuation["tokens"].as_array().unwrap().len(), &continuation["finish"]),
            (100, &"length".into())
        );
    }
}

#[test]
fn every_precision_writes_and_an_empty_prompt_begins_a_text() {
    for precision in ["f32", "bf16", "int8", "auto"] {
        let found = generate(&format!("--max-new-tokens 5 --precision {precision} --json"), &["", "The"]);
        assert_eq!((found.code, found.stdout.lines().count()), (Some(0), 2), "{precision}: {}", found.stderr);
    }
}

#[test]
fn info_describes_it_and_others_refuse_it() {
    let table = run(&format!("info {GOLDEN}/gpt2/hub")).stdout;
    for word in ["GPT-2", "attentive generate", "32, 4 heads", "48", "h.0.attn.bias", "none in the folder"] {
        assert!(table.contains(word), "`{word}` is not in: {table}");
    }
    let report = run(&format!("info --json {GOLDEN}/gpt2/saved")).json();
    assert_eq!((&report["family"], &report["layers"]), (&Value::from("GPT-2"), &Value::from(2)));
    run(&format!("generate --model {GOLDEN}/gpt2/hub A")).failed(&["no tokenizer"]);
    run(&format!("generate --model {GOLDEN}/bert/masked A")).failed(&[
        "`bert`",
        "`gpt2`, `openai-gpt`, `gpt_neo`, `t5`",
        "is needed",
    ]);
    run(&format!("translate --model {GOLDEN}/gpt2/saved A")).failed(&["`gpt2`", "`marian`"]);
}

#[test]
fn a_converted_model_writes_the_same() {
    let out = std::env::temp_dir().join(format!("attentive-gpt2-converted-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&out);
    let convert = format!("convert --model {GOLDEN}/gpt2/saved --out {}", out.display());
    run(&format!("{convert} --precision int8")).misused(&[
        "--precision",
        "int8 is not supported",
        "f32 and bf16",
    ]);
    run(&format!("{convert} --layout marian")).misused(&["--layout", "only translation models"]);
    assert!(!out.exists());
    let converted = run(&convert);
    assert_eq!((converted.code, converted.stderr.lines().count()), (Some(0), 1), "{}", converted.stderr);
    let prompt = "--max-new-tokens 16 The";
    let [before, after] = [format!("{GOLDEN}/gpt2/saved"), out.display().to_string()]
        .map(|model| run(&format!("generate --model {model} {prompt}")).stdout);
    assert_eq!(before, after);
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn the_perplexity_of_a_text_is_that_of_transformers_for_every_stride() {
    let expected = &answers()["perplexity"];
    let path = std::env::temp_dir().join(format!("attentive-perplexity-{}.txt", std::process::id()));
    std::fs::write(&path, expected["text"].as_str().unwrap()).unwrap();
    let line = format!("perplexity {} --model {GOLDEN}/gpt2/saved", path.display());
    for (stride, predicted) in [(16, 423), (48, 415)] {
        let found = run(&format!("{line} --stride {stride} --json")).json();
        let [found_number, number] =
            [&found["perplexity"], &expected["values"][stride.to_string()]].map(|x| x.as_f64().unwrap());
        assert!((found_number / number - 1.0).abs() < 1e-4, "{found_number} {number}");
        assert_eq!((&found["tokens"], &found["predicted"]), (&expected["tokens"], &Value::from(predicted)));
    }
    run(&format!("{line} --stride 49")).misused(&["--stride", "at most 48"]);
    std::fs::write(&path, "").unwrap();
    run(&line).failed(&["at least two tokens"]);
    let _ = std::fs::remove_file(path);
}
