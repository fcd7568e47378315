//! The answers of transformers, by the small models of `golden/bert` with the words of `golden/tasks.json`.

use attentive_tasks::{
    Answer, Answerer, Asking, Classifier, Embedder, Encoder, Error, Kind, MaskFiller, Reranker, Tagger,
    TooLong, cosine,
};
use attentive_tensor::{Backend, CpuBackend, Form};
use attentive_text::tokenizer::Input;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name)
}

fn answers() -> Value {
    serde_json::from_slice(&std::fs::read(golden("tasks.json")).unwrap()).unwrap()
}

fn backend() -> Arc<dyn Backend> {
    CpuBackend::from_env().unwrap().shared()
}

/// A model of `golden/bert` with a tokenizer, in a folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(model: &str, test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("attentive-tasks-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(golden("bert").join(model).join(file), folder.join(file)).unwrap();
        }
        let words: Vec<String> = serde_json::from_value(answers()["words"].clone()).unwrap();
        std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").unwrap();
        Folder(folder)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

fn near(found: f32, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((f64::from(found) - expected).abs() < 1e-5, "{found} is not {expected}");
}

/// Checks the vectors of all texts.
fn check_vectors(embedder: &Embedder, expected: &Value) {
    let texts = strings(&answers()["texts"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts).unwrap();
    assert_eq!(vectors.rows().len(), texts.len());
    for (vector, expected) in vectors.rows().zip(expected.as_array().unwrap()) {
        let expected = expected.as_array().unwrap();
        assert_eq!(vector.len(), expected.len());
        vector.iter().zip(expected).for_each(|(&found, expected)| near(found, expected));
    }
}

#[test]
fn vectors_are_made_as_the_folder_says() {
    let folder = Folder::new("hidden", "vectors");
    let open = || Embedder::open(&backend(), &folder.0, Form::Precise);
    check_vectors(&open().unwrap(), &answers()["mean"]);
    // Batches of any size give the same.
    check_vectors(&open().unwrap().with_encoder(|encoder| encoder.with_batch_tokens(7)), &answers()["mean"]);
    let module = |kind: &str, path: &str| {
        format!(
            r#"{{"idx": 0, "name": "0", "path": "{path}", "type": "sentence_transformers.models.{kind}"}}"#
        )
    };
    let (transformer, pooling) = (module("Transformer", ""), module("Pooling", "1_Pooling"));
    folder.write("modules.json", &format!("[{transformer}, {pooling}]"));
    folder.write(
        "1_Pooling/config.json",
        r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#,
    );
    check_vectors(&open().unwrap(), &answers()["first"]);
    std::fs::remove_file(folder.0.join("1_Pooling/config.json")).unwrap();
    let error = open().err().unwrap().to_string();
    assert!(error.contains("1_Pooling/config.json") && error.contains("missing"), "{error}");
    folder.write("1_Pooling/config.json", r#"{"pooling_mode": "max"}"#);
    let error = open().err().unwrap().to_string();
    assert!(error.contains("1_Pooling/config.json") && error.contains("max"), "{error}");
    folder.write("modules.json", &format!("[{transformer}, {}]", module("Dense", "2_Dense")));
    let error = open().err().unwrap().to_string();
    assert!(error.contains("modules.json") && error.contains("Dense"), "{error}");
}

#[test]
fn the_limit_is_that_of_the_folder_and_what_is_cut_is_told() {
    let folder = Folder::new("hidden", "limit");
    folder.write("sentence_bert_config.json", r#"{"max_seq_length": 5, "do_lower_case": false}"#);
    let embedder = Embedder::open(&backend(), &folder.0, Form::Precise).unwrap();
    let inputs = ["a dog runs.", "a dog"].map(Input::Text);
    let texts = embedder.encoder().read(&inputs).unwrap();
    assert_eq!((texts.cut(), texts.tokens(), embedder.encoder().limit()), (1, 5 + 4, 5));
    let refusing = embedder.with_encoder(|encoder: Encoder| encoder.with_too_long(TooLong::Refuse));
    let error = refusing.encoder().read(&inputs).unwrap_err();
    assert!(matches!(error, Error::TooLong { text: 1, tokens: 7, limit: 5 }), "{error}");
}

#[test]
fn int8_is_near() {
    let folder = Folder::new("hidden", "int8");
    let texts = strings(&answers()["texts"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embed = |form| Embedder::open(&backend(), &folder.0, form).unwrap().embed(&texts).unwrap();
    let (exact, int8) = (embed(Form::Precise), embed(Form::Int8));
    assert_ne!(exact, int8);
    for (int8, exact) in int8.rows().zip(exact.rows()) {
        assert!(cosine(int8, exact) > 0.99, "{}", cosine(int8, exact));
    }
}

#[test]
fn masks_are_filled_with_the_words_of_transformers() {
    let folder = Folder::new("masked", "masks");
    let filler = MaskFiller::open(&backend(), &folder.0, Form::Precise).unwrap();
    assert_eq!(filler.mask(), "[MASK]");
    let texts = strings(&answers()["masked_texts"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (_, filled) = filler.fill(&texts, 3).unwrap();
    for (masks, expected) in filled.iter().zip(answers()["filled"].as_array().unwrap()) {
        assert_eq!(masks.len(), expected.as_array().unwrap().len());
        for (guesses, expected) in masks.iter().zip(expected.as_array().unwrap()) {
            for (guess, expected) in guesses.iter().zip(expected.as_array().unwrap()) {
                assert_eq!(u64::from(guess.token), expected[0].as_u64().unwrap());
                near(guess.score, &expected[1]);
            }
        }
    }
    let error = filler.fill(&["a [MASK]", "a dog"], 3).unwrap_err();
    assert!(matches!(error, Error::NoMask { text: 2, .. }), "{error}");
}

#[test]
fn texts_and_pairs_have_the_classes_of_transformers() {
    let folder = Folder::new("sequence", "classes");
    let classifier = Classifier::open(&backend(), &folder.0, Form::Precise).unwrap();
    let (texts, pairs) = (strings(&answers()["texts"]), answers()["pairs"].clone());
    let pairs: Vec<Vec<String>> = pairs.as_array().unwrap().iter().map(strings).collect();
    let mut inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
    inputs.extend(pairs.iter().map(|pair| Input::Pair(&pair[0], &pair[1])));
    let (read, classified) = classifier.classify(&inputs).unwrap();
    assert_eq!(read.cut(), 2);
    for (found, expected) in classified.iter().zip(answers()["classes"].as_array().unwrap()) {
        assert!(found.scores.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert_eq!(found.scores.len(), 3);
        found.scores.iter().for_each(|(label, score)| near(*score, &expected[label]));
    }
}

#[test]
fn words_have_the_tags_of_transformers() {
    let folder = Folder::new("token", "tags");
    let tagger = Tagger::open(&backend(), &folder.0, Form::Precise).unwrap();
    let texts = strings(&answers()["texts"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (_, tagged) = tagger.tag(&texts).unwrap();
    for ((text, tagged), expected) in texts.iter().zip(&tagged).zip(answers()["tags"].as_array().unwrap()) {
        let expected = expected.as_array().unwrap();
        assert_eq!(tagged.words.len(), expected.len(), "{text}");
        for (word, expected) in tagged.words.iter().zip(expected) {
            assert_eq!(text[word.bytes.clone()], *expected[0].as_str().unwrap());
            assert_eq!(word.label, expected[1].as_str().unwrap());
            near(word.score, &expected[2]);
        }
    }
    // Words that are split already have the labels that the text has.
    let words = vec!["A", "dog", "runs", "."];
    let labels = tagger.label_words(&[words]).unwrap().remove(0);
    let expected: Vec<_> = tagged[0].words.iter().map(|word| Some(word.label.clone())).collect();
    assert_eq!(labels, expected);
}

/// Holds answers to a question about `context` against those of a golden file.
fn check_answers(found: &[Answer], context: &str, expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        let characters = |byte: usize| context[..byte].chars().count() as u64;
        let place = [characters(found.bytes.start), characters(found.bytes.end)];
        assert_eq!(found.text, expected["answer"].as_str().unwrap());
        assert_eq!(place.map(Some), ["start", "end"].map(|key| expected[key].as_u64()));
        near(found.score, &expected["score"]);
    }
}

#[test]
fn answers_are_spans_of_the_text_whatever_the_windows() {
    let (folder, answers) = (Folder::new("answer", "answers"), answers());
    let questions = strings(&answers["questions"]);
    let contexts = strings(&answers["contexts"]);
    let asked: Vec<(&str, &str)> = questions
        .iter()
        .flat_map(|question| contexts.iter().map(move |context| (&question[..], &context[..])))
        .collect();
    for (i, how) in answers["asked"].as_array().unwrap().iter().enumerate() {
        let number = |place: usize| how[place].as_u64().unwrap() as usize;
        let asking = Asking {
            window: number(0),
            overlap: number(1),
            count: number(2),
            longest: number(3),
            may_be_empty: how[4].as_bool().unwrap(),
        };
        let answerer = Answerer::open(&backend(), &folder.0, Form::Precise).unwrap().with_asking(asking);
        let found = answerer.answer(&asked).unwrap();
        for ((found, (_, context)), expected) in
            found.iter().zip(&asked).zip(answers["spans"].as_array().unwrap())
        {
            check_answers(found, context, &expected[i]);
        }
    }
    let answerer = Answerer::open(&backend(), &folder.0, Form::Precise).unwrap();
    let refused = |question: &str, context: &str| {
        answerer.answer(&[("a", "a dog"), (question, context)]).unwrap_err().to_string()
    };
    assert!(refused("a", "").contains("text 2 has no tokens"), "{}", refused("a", ""));
    let long = "a dog ".repeat(20);
    assert!(refused(&long, "a").contains("question 2 leaves no room"), "{}", refused(&long, "a"));
}

#[test]
fn a_folder_that_names_no_class_is_known_by_its_weights() {
    let (folder, answers) = (Folder::new("masked", "unnamed"), answers());
    let config = std::fs::read_to_string(golden("bert/masked/config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config.as_object_mut().unwrap().retain(|name, _| name != "model_type" && name != "architectures");
    folder.write("config.json", &config.to_string());
    let filler = MaskFiller::open(&backend(), &folder.0, Form::Precise).unwrap();
    let texts = strings(&answers["masked_texts"]);
    let (_, filled) = filler.fill(&[&texts[0]], 1).unwrap();
    assert_eq!(Some(u64::from(filled[0][0][0].token)), answers["filled"][0][0][0][0].as_u64());
    assert_eq!(Kind::of(&folder.0).unwrap(), Some(Kind::FillMask));
}

#[test]
fn texts_are_scored_for_a_query_as_the_folder_says() {
    let (folder, answers) = (Folder::new("rank", "rank"), answers());
    let texts = strings(&answers["texts"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = |reranker: &Reranker, query: &str| reranker.scores(query, &texts).unwrap().1;
    let open = || Reranker::open(&backend(), &folder.0, Form::Precise).unwrap();
    for (query, expected) in strings(&answers["questions"]).iter().zip(answers["ranks"].as_array().unwrap()) {
        let (sigmoids, raw) = (scores(&open(), query), scores(&open().with_raw_scores(), query));
        for ((sigmoid, raw), expected) in sigmoids.iter().zip(raw).zip(expected.as_array().unwrap()) {
            near(raw, expected);
            assert!((sigmoid - 1.0 / (1.0 + (-raw).exp())).abs() < 1e-6);
        }
    }
    let config = std::fs::read_to_string(folder.0.join("config.json")).unwrap();
    let identity = r#"{"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity","#;
    folder.write("config.json", &config.replacen('{', identity, 1));
    near(scores(&open(), &strings(&answers["questions"])[0])[0], &answers["ranks"][0][0]);
    let error = Reranker::open(&backend(), &golden("bert/sequence"), Form::Precise).unwrap_err().to_string();
    assert!(error.contains("tokenizer") || error.contains("3 classes"), "{error}");
}

#[test]
fn relatives_of_bert_answer_as_transformers_does() {
    let answers: Value = serde_json::from_slice(&std::fs::read(golden("roberta.json")).unwrap()).unwrap();
    let texts = strings(&answers["masked"]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for case in ["masked", "multilingual"] {
        let folder = golden("roberta").join(case);
        let filler = MaskFiller::open(&backend(), &folder, Form::Precise).unwrap();
        let (_, filled) = filler.fill(&texts, 3).unwrap();
        for (filled, expected) in filled.iter().zip(answers["filled"][case].as_array().unwrap()) {
            for (guesses, expected) in filled.iter().zip(expected.as_array().unwrap()) {
                for (guess, expected) in guesses.iter().zip(expected.as_array().unwrap()) {
                    assert_eq!(Some(u64::from(guess.token)), expected[0].as_u64(), "{case}");
                    near(guess.score, &expected[1]);
                }
            }
        }
    }
    let asking = Asking { window: 64, overlap: 8, count: 3, longest: 6, may_be_empty: false };
    let folder = golden("roberta/answer");
    let answerer = Answerer::open(&backend(), &folder, Form::Precise).unwrap().with_asking(asking);
    let contexts = strings(&answers["contexts"]);
    for (question, expected) in
        strings(&answers["questions"]).iter().zip(answers["spans"].as_array().unwrap())
    {
        for (context, expected) in contexts.iter().zip(expected.as_array().unwrap()) {
            let found = answerer.answer(&[(question, context)]).unwrap();
            check_answers(&found[0], context, expected);
        }
    }
}

#[test]
fn what_a_model_cannot_read_is_refused() {
    let folder = Folder::new("hidden", "types");
    // A tokenizer without a template leaves nothing of an empty text.
    let vocabulary = r#"{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 7}"#;
    let json = format!(
        r###"{{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {{"type": "Whitespace"}},
            "post_processor": null, "decoder": null, "model": {{"type": "WordPiece", "unk_token": "[UNK]",
            "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {vocabulary}}}}}"###
    );
    folder.write("tokenizer.json", &json);
    let embedder = Embedder::open(&backend(), &folder.0, Form::Precise).unwrap();
    let error = embedder.embed(&["a", ""]).unwrap_err();
    assert!(matches!(error, Error::NoTokens { text: 2 }), "{error}");
}

#[test]
fn a_model_without_the_head_says_what_is_needed() {
    let folder = Folder::new("hidden", "head");
    let error = Classifier::open(&backend(), &folder.0, Form::Precise).err().unwrap().to_string();
    assert!(error.contains("BertForSequenceClassification") && error.contains("BertModel"), "{error}");
}

#[test]
fn a_folder_says_what_its_model_is_for() {
    let kind = |name: &str| Kind::of(&golden(name)).unwrap();
    let found =
        ["bert/hidden", "bert/masked", "bert/sequence", "bert/token", "roberta/answer", "marian/tied"]
            .map(kind);
    let expected = [Kind::Embed, Kind::FillMask, Kind::Classify, Kind::Tag, Kind::Answer]
        .map(Some)
        .into_iter()
        .chain([None]);
    assert_eq!(found.to_vec(), expected.collect::<Vec<_>>());
    // A folder of sentence-transformers makes vectors, whatever head was saved with it.
    let folder = Folder::new("masked", "kind");
    folder.write("modules.json", "[]");
    assert_eq!(Kind::of(&folder.0).unwrap(), Some(Kind::Embed));
}

#[test]
fn tokens_are_read_as_they_are() {
    let folder = Folder::new("hidden", "ids");
    let embedder = Embedder::open(&backend(), &folder.0, Form::Precise).unwrap();
    let texts = embedder.encoder().read(&[Input::Text("a dog runs.")]).unwrap();
    let ids = &texts.encodings[0].ids;
    let read = attentive_tasks::Texts { encodings: vec![embedder.encoder().read_ids(0, ids).unwrap()] };
    assert_eq!(embedder.vectors(&read).unwrap(), embedder.vectors(&texts).unwrap());
    let refused = |ids: &[u32]| embedder.encoder().read_ids(6, ids).unwrap_err().to_string();
    for (ids, words) in [(vec![], "text 7"), (vec![2, 100], "token 100"), (vec![2; 17], "at most 16")] {
        assert!(refused(&ids).contains(words), "{}", refused(&ids));
    }
}
