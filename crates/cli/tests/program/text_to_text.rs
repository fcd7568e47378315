//! `attentive generate` and other commands with models that turn a text into another.

use super::{finish, program, run};
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

fn answers() -> Value {
    serde_json::from_slice(&std::fs::read(format!("{GOLDEN}/t5.json")).unwrap()).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// One folder has the pieces alone, the other `tokenizer.json`; ids and texts are those of transformers either way.
#[test]
fn a_t5_answers_prompts_as_transformers_does() {
    let answers = answers();
    let prompts = strings(&answers["prompts"]);
    for case in ["first", "later"] {
        let mut generate =
            program(&format!("generate --model {GOLDEN}/t5/{case} --beam 1 --max-new-tokens 16 --json"));
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
            let ended = expected.as_array().unwrap().last() == Some(&Value::from(1));
            assert_eq!(found["finish"], if ended { "end" } else { "length" });
        }
        assert_eq!(found.stdout.lines().count(), prompts.len());
        let plain = run(&format!("generate --model {GOLDEN}/t5/{case} --beam 1 --max-new-tokens 16 The"));
        assert_eq!(plain.stdout, format!("{}\n", greedy[2]));
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
    run(&format!("classify --model {GOLDEN}/t5/first A"))
        .failed(&["T5ForConditionalGeneration", "not supported"]);
    run(&format!("convert --model {GOLDEN}/t5/first --out never")).misused(&["`t5`", "cannot be converted"]);
}
