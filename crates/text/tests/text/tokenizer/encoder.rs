//! What encoders read, held against what `golden/bert_text.py` got from transformers.

use super::{Folder, nasty, repository, shared};
use attentive_text::tokenizer::{Encoding, Error, Input, Side, Tokenizer};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

const FOLDERS: [&str; 8] = ["uncased", "cased", "accents", "stripped", "renamed", "added", "left", "json"];

/// Those of RoBERTa, XLM-R and DeBERTa, which `golden/roberta_text.py` and `golden/deberta_text.py` made.
const ROBERTA: [&str; 4] =
    ["roberta_text/byte_pairs", "roberta_text/sentencepiece", "deberta_text/first", "deberta_text/later"];

fn golden(name: &str) -> Tokenizer {
    Tokenizer::load(repository(&format!("golden/bert_text/{name}"))).unwrap()
}

/// One text, two, or words, that live somewhere.
enum Owned {
    Text(String),
    Pair(String, String),
    Words(Vec<String>),
}

impl Owned {
    fn new(case: &Value) -> Owned {
        let text = |key: &str| case[key].as_str().map(str::to_owned);
        match (text("text"), text("pair")) {
            (Some(text), None) => Owned::Text(text),
            (Some(text), Some(pair)) => Owned::Pair(text, pair),
            _ => {
                let words = case["words"].as_array().unwrap().iter();
                Owned::Words(words.map(|word| word.as_str().unwrap().to_owned()).collect())
            }
        }
    }

    fn encode(&self, tokenizer: &Tokenizer, limit: Option<usize>) -> Result<Encoding, Error> {
        match self {
            Owned::Text(text) => tokenizer.encode_input(Input::Text(text), limit),
            Owned::Pair(first, second) => tokenizer.encode_input(Input::Pair(first, second), limit),
            Owned::Words(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                tokenizer.encode_input(Input::Words(&words), limit)
            }
        }
    }

    /// The text that a token's bytes are of.
    fn text(&self, text: usize, word: usize) -> &str {
        match self {
            Owned::Text(only) => only,
            Owned::Pair(first, second) => [first, second][text],
            Owned::Words(words) => &words[word],
        }
    }
}

/// Everything about the tokens as transformers tells it: ids, types, texts, words, and spans in characters.
fn told(owned: &Owned, encoding: &Encoding) -> [String; 5] {
    let join = |numbers: Vec<i64>| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let numbers = |list: &[u32]| join(list.iter().map(|&number| i64::from(number)).collect());
    let of_source = |part: fn(usize, usize) -> usize| {
        let sources = encoding.sources.iter();
        join(
            sources.map(|source| source.map_or(-1, |source| part(source.text, source.word) as i64)).collect(),
        )
    };
    let spans = encoding.sources.iter().flat_map(|source| {
        source.map_or([0, 0], |source| {
            let text = owned.text(source.text, source.word);
            // It can be cut out, and so both ends are at characters.
            assert!(text.get(source.begin..source.end).is_some());
            [source.begin, source.end].map(|byte| text[..byte].chars().count() as i64)
        })
    });
    [
        numbers(&encoding.ids),
        numbers(&encoding.types),
        of_source(|text, _| text),
        of_source(|_, word| word),
        join(spans.collect()),
    ]
}

#[test]
fn tokens_types_words_and_spans_are_those_of_transformers() {
    let of_bert = FOLDERS.map(|name| format!("bert_text/{name}"));
    for name in of_bert.iter().map(String::as_str).chain(ROBERTA) {
        let tokenizer = Tokenizer::load(repository(&format!("golden/{name}"))).unwrap();
        let answers = std::fs::read_to_string(repository(&format!("golden/{name}.jsonl"))).unwrap();
        let mut cut = 0;
        for line in answers.strip_suffix('\n').unwrap().split('\n') {
            let answer: Value = serde_json::from_str(line).unwrap();
            let (case, owned) = (&answer["input"], Owned::new(&answer["input"]));
            let limit = case["limit"].as_u64().map(|limit| limit as usize);
            let encoding = owned.encode(&tokenizer, limit).unwrap();
            let expected =
                ["ids", "types", "texts", "words", "spans"].map(|key| answer[key].as_str().unwrap());
            assert_eq!(told(&owned, &encoding), expected, "{name}: {case}");
            assert_eq!(
                encoding.cut.iter().sum::<usize>() as u64,
                answer["cut"].as_u64().unwrap(),
                "{name}: {case}"
            );
            cut += encoding.cut.iter().sum::<usize>();
        }
        assert!(cut > 0, "{name}: some texts are too long");
    }
}

#[test]
fn words_of_gpt1_are_those_of_transformers() {
    let tokenizer = Tokenizer::load(repository("golden/gpt1")).unwrap();
    let answers = std::fs::read_to_string(repository("golden/gpt1.jsonl")).unwrap();
    for (line, answer) in nasty().iter().zip(answers.strip_suffix('\n').unwrap().split('\n')) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let ids = tokenizer.encode(line, Side::Source).unwrap();
        assert_eq!(json!(ids), answer["ids"], "{line:?}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), answer["text"].as_str().unwrap(), "{line:?}");
    }
}

#[test]
fn a_tokenizer_of_a_relative_is_saved_as_it_was() {
    for name in ROBERTA {
        let tokenizer = Tokenizer::load(repository(&format!("golden/{name}"))).unwrap();
        let folder = Folder::new(&name.replace('/', "-"));
        tokenizer.save(&folder.0).unwrap();
        let again = Tokenizer::load(&folder.0).unwrap();
        let (masked, masked_again) = (
            tokenizer.special_tokens_but_mask_as_text().unwrap(),
            again.special_tokens_but_mask_as_text().unwrap(),
        );
        let mask = masked.piece(masked.mask().unwrap(), Side::Source).unwrap();
        let text = &format!("a {mask} dog</s>[SEP] runs");
        let ids = masked.encode(text, Side::Source).unwrap();
        assert_eq!(masked_again.encode(text, Side::Source).unwrap(), ids);
        // The mask takes the space before it, and what is written as `</s>` is text.
        let special = masked.special(Side::Source);
        let is = |id: Option<u32>| ids.iter().filter(|own| Some(**own) == id).count();
        assert_eq!((is(masked.mask()), is(special.bos), is(special.eos)), (1, 1, 1), "{name}: {ids:?}");
    }
}

#[test]
fn ids_are_those_of_encode() {
    for model in ["bert", "bert_uncased", "gpt2", "json"] {
        let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
        for line in nasty() {
            let encoding = tokenizer.encode_input(Input::Text(&line), None).unwrap();
            assert_eq!(encoding.ids, tokenizer.encode(&line, Side::Source).unwrap(), "{model}: {line:?}");
            for source in encoding.sources.iter().flatten() {
                assert!(line.get(source.begin..source.end).is_some(), "{model}: {line:?}");
            }
        }
    }
}

#[test]
fn the_mask_is_a_token_and_other_special_tokens_are_text_if_so_chosen() {
    let (tokenizer, chosen) =
        (golden("uncased"), golden("uncased").special_tokens_but_mask_as_text().unwrap());
    let mask = tokenizer.mask().unwrap();
    let text = "the [MASK] [SEP] dog[MASK].";
    let encode = |tokenizer: &Tokenizer| tokenizer.encode_input(Input::Text(text), None).unwrap();
    let separator = tokenizer.special(Side::Source).eos.unwrap();
    let count = |encoding: &Encoding, id| encoding.ids.iter().filter(|&&other| other == id).count();
    assert_eq!((count(&encode(&tokenizer), mask), count(&encode(&tokenizer), separator)), (2, 2));
    let encoding = encode(&chosen);
    assert_eq!((count(&encoding, mask), count(&encoding, separator)), (2, 1));
    let at = encoding.ids.iter().position(|&id| id == mask).unwrap();
    let source = encoding.sources[at].unwrap();
    assert_eq!((&text[source.begin..source.end], source.word), ("[MASK]", 1));
    // Where no special token is written, nothing differs; the mask is left out of decoded text.
    for line in nasty().iter().filter(|line| !line.contains('[')) {
        let [one, other] =
            [&tokenizer, &chosen].map(|one| one.encode_input(Input::Text(line), None).unwrap());
        assert_eq!(one, other, "{line:?}");
        assert_eq!(tokenizer.decode(&one.ids).unwrap(), chosen.decode(&one.ids).unwrap());
    }
    assert_eq!(chosen.decode(&[mask, mask]).unwrap(), "");
}

#[test]
fn a_special_token_among_the_words_is_text_as_well() {
    let chosen = golden("cased").special_tokens_but_mask_as_text().unwrap();
    let encoding = chosen.encode_input(Input::Words(&["[SEP]", "[MASK]", "dog"]), None).unwrap();
    let separator = chosen.special(Side::Source).eos.unwrap();
    assert_eq!(encoding.ids.iter().filter(|&&id| id == separator).count(), 1);
    let first = encoding.first_of_words(4);
    assert_eq!(first[1].map(|place| encoding.ids[place]), chosen.mask());
    assert_eq!(first[3], None);
}

#[test]
fn a_tokenizer_without_a_template_and_a_limit_without_room_say_so() {
    let marian = Tokenizer::load(repository("golden/text/marian")).unwrap();
    let error = marian.encode_input(Input::Text("a"), None).unwrap_err().to_string();
    assert!(error.contains("vocab.txt"), "{error}");
    let error = golden("uncased").encode_input(Input::Pair("a", "a"), Some(3)).unwrap_err().to_string();
    assert!(error.contains("3 tokens"), "{error}");
    assert_eq!(golden("uncased").encode_input(Input::Text(""), Some(2)).unwrap().len(), 2);
}

#[test]
fn a_saved_encoder_is_the_same_encoder() {
    for name in FOLDERS {
        let folder = Folder::new(&format!("encoder-{name}"));
        let tokenizer = golden(name);
        tokenizer.save(&folder.0).unwrap();
        let again = Tokenizer::load(&folder.0).unwrap();
        assert_eq!(tokenizer.mask(), again.mask());
        for line in nasty() {
            let [one, other] =
                [&tokenizer, &again].map(|one| one.encode_input(Input::Text(&line), Some(9)).unwrap());
            assert_eq!(one, other, "{name}: {line:?}");
        }
    }
}

/// Loads a folder of BERT with these files.
fn load(folder: &Folder, vocab: &str, config: &Value) -> Result<Tokenizer, String> {
    std::fs::write(folder.0.join("vocab.txt"), vocab).unwrap();
    std::fs::write(folder.0.join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(&folder.0).map_err(|error| error.to_string())
}

#[test]
fn a_broken_vocabulary_or_configuration_is_refused_with_a_reason() {
    let folder = Folder::new("bert-broken");
    let vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ndog\n";
    load(&folder, vocab, &json!({})).unwrap();
    load(&folder, &vocab.replace('\n', "\r\n"), &json!(null)).unwrap();
    let token = |id: &str, content: Value| json!({"added_tokens_decoder": {id: {"content": content, "special": true}}});
    for (vocab, config, word) in [
        ("", json!({}), "`[CLS]` is missing"),
        ("[UNK]\n[CLS]\n", json!({}), "`[SEP]` is missing"),
        (vocab, json!({"cls_token": "<s>"}), "`<s>` is missing"),
        (vocab, token("9", json!("<new>")), "gives `<new>` the id 9"),
        (vocab, token("9", json!("dog")), "gives `dog` the id 9"),
        (vocab, token("x", json!("<new>")), "broken token under `x`"),
        (vocab, token("6", json!(7)), "broken token under `6`"),
    ] {
        let error = load(&folder, vocab, &config).unwrap_err();
        assert!(error.contains(word) && !error.contains('\n'), "{config}: {error}");
    }
}

#[test]
fn a_hostile_tokenizer_json_of_bert_is_refused() {
    let folder = Folder::new("bert-hostile");
    let path = repository("golden/bert_text/json/tokenizer.json");
    let usual: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let load = |change: &dyn Fn(&mut Value)| {
        let mut json = usual.clone();
        change(&mut json);
        std::fs::write(folder.0.join("tokenizer.json"), json.to_string()).unwrap();
        Tokenizer::load(&folder.0).map_err(|error| error.to_string())
    };
    load(&|_| {}).unwrap();
    let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
    let error = load(&|json| json["post_processor"]["single"] = json!(vec![&sequence; 100_000])).unwrap_err();
    assert!(error.contains("more than 64 parts"), "{error}");
    let error = load(&|json| json["model"]["max_input_chars_per_word"] = json!(1u64 << 40)).unwrap_err();
    assert!(error.contains("max_input_chars_per_word"), "{error}");
    // A pair that the template has no place for.
    let one = load(&|json| json["post_processor"]["pair"] = json!([sequence.clone()]));
    if let Ok(tokenizer) = one {
        drop(tokenizer.encode_input(Input::Pair("a dog", "a cat"), Some(4)));
    }
}

/// Everything about the tokens of many inputs, as one checksum.
fn sum(tokenizer: &Tokenizer, inputs: impl Iterator<Item = Owned>, limit: Option<usize>) -> u32 {
    let mut lines = String::new();
    for owned in inputs {
        let encoding = owned.encode(tokenizer, limit).unwrap();
        for line in told(&owned, &encoding) {
            writeln!(lines, "{line}").unwrap();
        }
    }
    super::multi30k::crc32(lines.as_bytes())
}

#[test]
fn a_thousand_lines_of_multi30k_are_as_in_transformers() {
    let (Some(minilm), Some(data)) = (shared("reference/minilm"), shared("data/multi30k")) else { return };
    let sums = std::fs::read_to_string(repository("golden/bert_text/multi30k.json")).unwrap();
    let sums: Value = serde_json::from_str(&sums).unwrap();
    let lines = |language: &str| -> Vec<String> {
        let text = std::fs::read_to_string(data.join(format!("train.{language}"))).unwrap();
        text.split('\n').take(1000).map(str::to_owned).collect()
    };
    let (english, german) = (lines("en"), lines("de"));
    for file in ["tokenizer.json", "vocab.txt"] {
        let tokenizer = Tokenizer::load(Path::new(&minilm).join(file)).unwrap();
        let pair = |(a, b): (&String, &String)| Owned::Pair(a.clone(), b.clone());
        let words = |line: &String| Owned::Words(line.split(' ').map(str::to_owned).collect());
        for (kind, sum) in [
            ("texts", sum(&tokenizer, english.iter().cloned().map(Owned::Text), None)),
            ("pairs", sum(&tokenizer, english.iter().zip(&german).map(pair), Some(32))),
            ("words", sum(&tokenizer, german.iter().map(words), None)),
        ] {
            assert_eq!(sums[format!("{file} {kind}")].as_u64(), Some(u64::from(sum)), "{file} {kind}");
        }
    }
}
