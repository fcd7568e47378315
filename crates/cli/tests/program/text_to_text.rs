//! `attentive generate` and other commands with models that turn a text into another.

use super::{finish, program, run};
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

fn answers(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(format!("{GOLDEN}/{file}.json")).unwrap()).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Of T5, one folder has the pieces alone, the other `tokenizer.json`; ids and texts are those of transformers either way.
#[test]
fn prompts_are_answered_as_transformers_does() {
    for (file, case, new_tokens, eos) in
        [("t5", "first", 16, 1), ("t5", "later", 16, 1), ("bart", "bart", 14, 2)]
    {
        let answers = answers(file);
        let prompts = strings(&answers["prompts"]);
        let flags = format!("--model {GOLDEN}/{file}/{case} --beam 1 --max-new-tokens {new_tokens}");
        let mut generate = program(&format!("generate {flags} --json"));
        generate.args(&prompts);
        let found = finish(generate);
        assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
        let greedy = strings(&answers[case]["greedy"]);
        for (place, line) in found.stdout.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            let expected = &answers[case]["cases"][0]["results"][place][0]["tokens"];
            let found = &line["continuations"][0];
            assert_eq!(&found["tokens"], expected, "{case}: {}", prompts[place]);
            assert_eq!(found["text"], *greedy[place], "{case}: {}", prompts[place]);
            let ended = expected.as_array().unwrap().last() == Some(&Value::from(eos));
            assert_eq!(found["finish"], if ended { "end" } else { "length" });
        }
        assert_eq!(found.stdout.lines().count(), prompts.len());
        assert_eq!(run(&format!("generate {flags} The")).stdout, format!("{}\n", greedy[2]));
    }
}

#[test]
fn a_bart_is_described_and_converted() {
    let table = run(&format!("info {GOLDEN}/bart/bart")).stdout;
    for word in ["BART", "2 + 1", "post-norm", "48", "24, 4 heads"] {
        assert!(table.contains(word), "`{word}` is not in: {table}");
    }
    let out = std::env::temp_dir().join(format!("attentive-bart-{}", std::process::id()));
    let converted =
        run(&format!("convert --model {GOLDEN}/bart/bart --out {} --precision bf16", out.display()));
    assert_eq!(converted.code, Some(0), "{}", converted.stderr);
    let config: Value = serde_json::from_slice(&std::fs::read(out.join("config.json")).unwrap()).unwrap();
    assert_eq!((&config["model_type"], &config["dtype"]), (&Value::from("bart"), &Value::from("bfloat16")));
    assert_eq!(run(&format!("generate --model {} --max-new-tokens 4 A", out.display())).code, Some(0));
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_t5_is_converted_and_answers_as_before() {
    for case in ["first", "later"] {
        let out = std::env::temp_dir().join(format!("attentive-t5-{case}-{}", std::process::id()));
        let line = format!("convert --model {GOLDEN}/t5/{case} --out {}", out.display());
        assert_eq!(run(&line).code, Some(0), "{case}");
        let said =
            |folder: &str| run(&format!("generate --model {folder} --max-new-tokens 9 A batch")).stdout;
        assert_eq!(said(&out.display().to_string()), said(&format!("{GOLDEN}/t5/{case}")));
        let half = std::env::temp_dir().join(format!("attentive-t5-{case}-half-{}", std::process::id()));
        let line =
            format!("convert --model {} --out {} --precision bf16 --json", out.display(), half.display());
        let report = run(&line).json();
        assert!(report["bytes"].as_u64().unwrap() < 3 * report["bytes_before"].as_u64().unwrap() / 5);
        run(&format!("convert --model {GOLDEN}/t5/{case} --out x --precision int8")).misused(&["int8"]);
        for folder in [out, half] {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn a_t5_is_described_inspected_and_refused_where_it_cannot_be_used() {
    let table = run(&format!("info {GOLDEN}/t5/later")).stdout;
    for word in ["T5", "attentive generate", "2 + 1", "4 heads of 7", "with a gate", "a table of its own"] {
        assert!(table.contains(word), "`{word}` is not in: {table}");
    }
    let report = run(&format!("info --json {GOLDEN}/t5/first")).json();
    assert_eq!((&report["family"], &report["tied_output"]), (&Value::from("T5"), &Value::from(true)));
    for precision in ["f32", "bf16", "int8"] {
        let line = format!("generate --model {GOLDEN}/t5/first --precision {precision} --max-new-tokens 4 A");
        assert_eq!(run(&line).code, Some(0), "{precision}");
    }
    assert_eq!(run(&format!("translate --model {GOLDEN}/t5/first A")).code, Some(0));
    for model in ["t5/first", "bart/bart"] {
        run(&format!("generate --model {GOLDEN}/{model} --slide A"))
            .misused(&["--slide", "continues its prompt"]);
    }
    run(&format!("classify --model {GOLDEN}/t5/first A"))
        .failed(&["T5ForConditionalGeneration", "not supported"]);
}

#[test]
fn a_text_is_summarized_in_parts_that_end_with_sentences() {
    let model = format!("summarize --model {GOLDEN}/bart/bart --beam 2 --max-length 6");
    let line = |text: &str| {
        let mut summarize = program(&model);
        summarize.arg(text);
        finish(summarize)
    };
    let sentences = ["Weights are f32.", "A batch is packed, and it has no padding.", "The rest is zero."];
    let short = line(sentences[0]);
    assert_eq!((short.code, short.stderr.as_str()), (Some(0), ""));
    // The model reads 48 tokens: two of these sentences are too many for it.
    let alone: Vec<String> = sentences.iter().map(|text| line(text).stdout.trim().to_owned()).collect();
    let whole = line(&sentences.join("  "));
    assert_eq!(whole.code, Some(0));
    assert!(whole.stderr.contains("the 48 tokens that the model reads") && whole.stderr.contains(" parts"));
    let parts = run(&format!("{model} --json A")).json();
    assert_eq!((&parts["parts"], parts["tokens_read"].as_u64()), (&Value::from(1), Some(3)));
    if whole.stderr.contains("in 3 parts") {
        assert_eq!(whole.stdout.trim(), alone.join(" ").trim());
    }
    // A word without an end is cut as well; a text of white space has no summary.
    assert_eq!(line(&"x".repeat(300)).code, Some(0));
    assert_eq!(line(" \n ").stdout, "\n");
    let t5 = run(&format!("summarize --model {GOLDEN}/t5/first --max-length 5 --json Weights")).json();
    assert!(t5["tokens_read"].as_u64().unwrap() > 6, "the prefix is read, too: {t5}");
    run(&format!("summarize --model {GOLDEN}/gpt2/saved A")).failed(&["`gpt2`", "`bart`"]);
}

/// One folder has the pieces alone, one a vocabulary with them, one `tokenizer.json`. `fr` reaches the language in all of them.
#[test]
fn translators_among_many_languages_write_what_transformers_does() {
    let answers = answers("languages");
    let lines = strings(&answers["lines"]);
    for case in ["mbart", "m2m", "nllb"] {
        for flags in ["--to fr", "--to fra --from en"] {
            let mut translate = program(&format!(
                "translate --model {GOLDEN}/bart/{case} {flags} --beam 1 --max-length 14 --json --split lines"
            ));
            translate.args(&lines);
            let found = finish(translate);
            assert_eq!(found.code, Some(0), "{case}: {}", found.stderr);
            let expected = answers[case]["lines"].as_array().unwrap();
            assert_eq!(found.stdout.lines().count(), expected.len());
            for (line, expected) in found.stdout.lines().zip(expected) {
                let line: Value = serde_json::from_str(line).unwrap();
                let best = &line["hypotheses"][0];
                let scores = |value: &Value| -> Vec<f64> {
                    value.as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect()
                };
                let (found, wanted) = (scores(&best["token_scores"]), scores(&expected["scores"]));
                assert_eq!(found.len(), wanted.len(), "{case}");
                // What is forced has no score of its own.
                for (found, wanted) in found.iter().zip(&wanted).filter(|(found, _)| **found != 0.0) {
                    assert!((found - wanted).abs() < 1e-3, "{case}: {found} {wanted}");
                }
                // Words that the model cannot read are copied here, and its own unknown ones are left out.
                let [text, wanted] =
                    [&best["text"], &expected["text"]].map(|text| text.as_str().unwrap().trim());
                if !text.contains(['世', 'ж']) && !wanted.contains("<unk>") {
                    assert_eq!(text, wanted, "{case}");
                }
            }
        }
    }
    let model = format!("translate --model {GOLDEN}/bart/nllb");
    run(&format!("{model} --to xx A")).misused(&["--to", "`xx`", "nearest"]);
    run(&format!("{model} --to fr --from qq A")).misused(&["--from", "`qq`", "nearest"]);
    run(&format!("{model} A")).misused(&["--to", "several target languages", "deu_Latn"]);
    run(&format!("translate --model {GOLDEN}/t5/first --from en A")).misused(&["--from", "source languages"]);
}
