//! How a run of `attentive train` begins, what is left where it cannot, and how its model is decoded.

use super::training::Corpus;
use super::{finish, program, run};
use std::fs;

#[test]
fn a_trained_folder_is_decoded_as_the_help_says() {
    let corpus = Corpus::new("decoded");
    corpus.trained("run", "--steps 2 --quiet");
    let folder = corpus.path("run");
    let config = fs::read(folder.join("generation_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((&config["num_beams"], &config["max_length"]), (&4.into(), &512.into()));
    for token in ["decoder_start_token_id", "eos_token_id", "forced_eos_token_id", "pad_token_id"] {
        assert!(config[token].is_u64(), "{token}: {config}");
    }
    assert_eq!(config["bad_words_ids"][0][0], config["pad_token_id"]);

    let model = folder.display();
    let outcome = run(&format!("translate --model {model} --verbose --json ab"));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    outcome.says(&["beam 4, length penalty 1, at most 50 tokens more than the source"]);
    let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let tokens = answer["hypotheses"][0]["tokens"].as_array().unwrap();
    // A model that has learned nothing does not find an end. The source has at most four tokens.
    assert!((40..=54).contains(&tokens.len()), "{}", tokens.len());
    let table = run(&format!("info {model}")).stdout;
    assert!(table.contains("beam 4, length penalty 1, at most 50 tokens more"), "{table}");
}

#[test]
fn resuming_where_there_is_no_run_says_so() {
    let corpus = Corpus::new("nothing");
    let mistyped = corpus.path("mistyped");
    run(&format!("train --out {} --resume", mistyped.display())).misused(&[
        "--resume: there is no run in ",
        "mistyped",
        "--source",
    ]);
    assert!(!mistyped.exists());
    // Whoever says what to train on may always say --resume.
    corpus.trained("run", "--resume --steps 1 --quiet");
}

#[test]
fn a_run_that_cannot_begin_leaves_nothing_behind() {
    let corpus = Corpus::new("nothing-left");
    let impossible = "--steps 2 --vocab-size 9 --quiet";
    for out in ["run", "deep/er/run"] {
        finish(corpus.train(out, impossible)).failed(&["the vocabulary must have"]);
    }
    finish(corpus.train("run", "--steps 1 --tokenizer nowhere --quiet")).failed(&["nowhere"]);
    assert!(!corpus.path("run").exists() && !corpus.path("deep").exists());

    // What a person put there stays.
    fs::create_dir(corpus.path("own")).unwrap();
    fs::write(corpus.path("own/notes.txt"), "mine").unwrap();
    finish(corpus.train("own", impossible)).failed(&["the vocabulary must have"]);
    let left: Vec<_> =
        fs::read_dir(corpus.path("own")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[test]
fn a_model_that_is_too_large_for_the_time_is_told_once() {
    let corpus = Corpus::new("once");
    let at = |name: &str| corpus.path(name).display().to_string();
    for side in ["a", "b"] {
        let text = fs::read_to_string(corpus.path(&format!("train.{side}"))).unwrap();
        fs::write(corpus.path(&format!("many.{side}")), text.repeat(8)).unwrap();
    }
    let line = format!("train --source {} --target {} --out {}", at("many.a"), at("many.b"), at("run"));
    let outcome = finish(program(&format!("{line} --minutes 0.02")));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for name in ["preset", "batch_tokens"] {
        let told: Vec<&str> =
            outcome.stderr.lines().filter(|line| line.starts_with(&format!("{name} "))).collect();
        assert_eq!(told.len(), 1, "{told:?}");
    }
    outcome.says(&["preset tiny: only "]);
}
