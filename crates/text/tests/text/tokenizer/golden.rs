//! The nasty text, held against what `golden/text.py` got from the libraries.

use super::{Folder, nasty, repository};
use attentive_text::tokenizer::{Side, Tokenizer};
use serde_json::Value;

/// What the library made of each line.
fn answers(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(repository(&format!("golden/text/{name}.jsonl"))).unwrap();
    text.strip_suffix('\n').unwrap().split('\n').map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Holds every line's ids, pieces and text against the library's.
fn compare(model: &str, name: &str) {
    let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
    let (lines, answers) = (nasty(), answers(name));
    assert_eq!(lines.len(), answers.len());
    for (line, answer) in lines.iter().zip(&answers) {
        let expected = ids(&answer["ids"]);
        assert_eq!(tokenizer.encode(line, Side::Source).unwrap(), expected, "{line:?}");
        if let Some(pieces) = answer["pieces"].as_str() {
            assert_eq!(tokenizer.encode_pieces(line, Side::Source).unwrap().join(" "), pieces, "{line:?}");
        }
        let mut decoded = expected;
        if !answer["target"].is_null() {
            decoded = ids(&answer["target"]);
            assert_eq!(tokenizer.encode(line, Side::Target).unwrap(), decoded, "{line:?}");
        }
        assert_eq!(tokenizer.decode(&decoded).unwrap(), answer["text"].as_str().unwrap(), "{line:?}");
    }
}

#[test]
fn unigram_with_bytes_and_the_rules_of_nmt_nfkc() {
    compare("unigram.model", "unigram");
}

#[test]
fn unigram_with_user_defined_symbols_and_text_left_as_it_is() {
    compare("unigram_symbols.model", "unigram_symbols");
}

#[test]
fn unigram_with_unused_pieces() {
    compare("unigram_symbols_unused.model", "unigram_symbols_unused");
}

#[test]
fn bpe_with_user_defined_and_control_symbols() {
    compare("bpe_symbols.model", "bpe_symbols");
}

#[test]
fn bpe_with_bytes_and_spaces_after_words() {
    compare("bpe_bytes.model", "bpe_bytes");
}

#[test]
fn bpe_with_unused_pieces() {
    compare("bpe_symbols_unused.model", "bpe_symbols_unused");
}

#[test]
fn marian_with_two_models_one_vocabulary_and_language_tokens() {
    compare("marian", "marian");
}

#[test]
fn byte_pairs_of_gpt2() {
    compare("gpt2", "gpt2");
}

#[test]
fn words_of_bert_cased_and_uncased() {
    compare("bert", "bert");
    compare("bert_uncased", "bert_uncased");
}

#[test]
fn tokenizer_json_without_its_truncation_and_padding() {
    compare("json", "json");
}

#[test]
fn a_saved_tokenizer_is_the_same_tokenizer() {
    for model in ["unigram.model", "bpe_bytes.model", "marian", "gpt2", "bert_uncased", "json"] {
        let folder = Folder::new(&format!("saved-{model}"));
        let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
        tokenizer.save(&folder.0).unwrap();
        let again = Tokenizer::load(&folder.0).unwrap();
        for line in nasty() {
            for side in [Side::Source, Side::Target] {
                let [first, second] = [&tokenizer, &again].map(|one| one.encode(&line, side).unwrap());
                assert_eq!(first, second, "{model}: {line:?}");
                assert_eq!(tokenizer.decode(&first).unwrap(), again.decode(&first).unwrap());
            }
        }
        assert_eq!(tokenizer.vocabulary_size(Side::Source), again.vocabulary_size(Side::Source));
        assert_eq!(tokenizer.special(Side::Source), again.special(Side::Source));
    }
}

#[test]
fn a_saved_tokenizer_keeps_the_names_of_its_special_tokens() {
    let [first, second] = ["named", "named-again"].map(Folder::new);
    std::fs::copy(repository("golden/text/json/tokenizer.json"), first.0.join("tokenizer.json")).unwrap();
    std::fs::write(first.0.join("special_tokens_map.json"), r#"{"eos_token": {"content": "<s>"}}"#).unwrap();
    let tokenizer = Tokenizer::load(&first.0).unwrap();
    assert_eq!(tokenizer.special(Side::Source).eos, Some(0));
    tokenizer.save(&second.0).unwrap();
    assert_eq!(Tokenizer::load(&second.0).unwrap().special(Side::Source).eos, Some(0));
}

#[test]
fn a_folder_with_the_files_of_another_tokenizer_is_refused_and_left_as_it_is() {
    let folder = Folder::new("mixed");
    let [marian, bert] =
        ["marian", "bert"].map(|name| Tokenizer::load(repository(&format!("golden/text/{name}"))).unwrap());
    marian.save(&folder.0).unwrap();
    let before = std::fs::read_dir(&folder.0).unwrap().count();
    let error = bert.save(&folder.0).unwrap_err().to_string();
    assert!(error.contains("source.spm") && error.contains("another"), "{error}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), before);
    marian.save(&folder.0).unwrap();
}

#[test]
fn lossless_tokenizers_give_the_text_back() {
    let gpt2 = Tokenizer::load(repository("golden/text/gpt2")).unwrap();
    // What is written like a special token is one, and is left out.
    for line in nasty().iter().filter(|line| !line.contains("<|endoftext|>")) {
        let ids = gpt2.encode(line, Side::Source).unwrap();
        assert_eq!(gpt2.decode(&ids).unwrap(), *line);
    }
    // Bytes for what is unknown, and nothing is normalised but spaces.
    let bpe = Tokenizer::load(repository("golden/text/bpe_bytes.model")).unwrap();
    for line in nasty().iter().filter(|line| !line.contains('▁') && !line.contains("<0x")) {
        let ids = bpe.encode(line, Side::Source).unwrap();
        let spaces = line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        assert_eq!(bpe.decode(&ids).unwrap().trim_end_matches(' '), spaces);
    }
}

#[test]
fn random_text_survives_a_lossless_tokenizer() {
    let gpt2 = Tokenizer::load(repository("golden/text/gpt2")).unwrap();
    let mut state = 1u64;
    let mut random = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below
    };
    for _ in 0..2_000 {
        let length = random(30);
        let text: String = (0..length)
            .filter_map(|_| {
                let most = [0x80, 0x800, 0x1_0000, 0x11_0000][random(4) as usize];
                char::from_u32(random(most))
            })
            .collect();
        let ids = gpt2.encode(&text, Side::Source).unwrap();
        assert_eq!(gpt2.decode(&ids).unwrap(), text);
    }
}

#[test]
fn special_ids_are_those_of_the_files() {
    let special = |model: &str| {
        let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
        let special = tokenizer.special(Side::Source);
        [special.bos, special.eos, special.pad, special.unk]
    };
    assert_eq!(special("unigram.model"), [Some(1), Some(2), None, Some(0)]);
    assert_eq!(special("bpe_symbols.model"), [Some(1), Some(2), Some(3), Some(0)]);
    assert_eq!(special("bert"), [Some(2), Some(3), Some(0), Some(1)]);
    assert_eq!(special("gpt2"), [Some(0), Some(0), None, None]);
    let [bos, eos, pad, unk] = special("marian");
    assert_eq!((bos, eos, unk), (None, Some(0), Some(1)));
    let marian = Tokenizer::load(repository("golden/text/marian")).unwrap();
    assert_eq!(pad, Some(marian.vocabulary_size(Side::Source) as u32 - 1));
}

#[test]
fn an_id_that_is_not_there_is_named() {
    for model in ["unigram.model", "marian", "gpt2"] {
        let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
        let error = tokenizer.decode(&[1, 70_000]).unwrap_err().to_string();
        assert!(error.contains("70000"), "{error}");
    }
}

#[test]
fn a_long_word_takes_no_longer_than_its_length() {
    // 300,000 characters without a space: quadratic merging would take minutes.
    let word = "abc".repeat(100_000);
    for model in ["bpe_symbols.model", "bpe_bytes.model", "unigram.model"] {
        let tokenizer = Tokenizer::load(repository(&format!("golden/text/{model}"))).unwrap();
        let ids = tokenizer.encode(&word, Side::Source).unwrap();
        assert!(tokenizer.decode(&ids).unwrap().trim_end() == word || model == "bpe_symbols.model");
    }
}

#[test]
fn broken_files_are_refused_with_their_name() {
    let folder = Folder::new("broken");
    let bytes = std::fs::read(repository("golden/text/unigram.model")).unwrap();
    let cut = |length: usize| bytes[..length].to_vec();
    let cases: [(&str, Vec<u8>, &str); 7] = [
        ("cut.model", cut(bytes.len() / 2), "SentencePiece"),
        ("empty.model", vec![], "has no pieces"),
        ("text.model", b"hello world".to_vec(), "SentencePiece"),
        ("tokenizer.json", b"{}".to_vec(), "tokenizer"),
        ("half.json", b"{\"a\":".to_vec(), "tokenizer"),
        ("vocab.txt", b"hello\nworld\n".to_vec(), "[CLS]"),
        ("latin.txt", b"[CLS]\n\xE4\n".to_vec(), "line 2"),
    ];
    for (name, contents, word) in cases {
        let path = folder.0.join(name);
        std::fs::write(&path, contents).unwrap();
        let error = Tokenizer::load(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(word), "{name}: {error}");
    }
    let missing = Tokenizer::load(folder.0.join("nothing.model")).unwrap_err().to_string();
    assert!(missing.contains("nothing.model: no such file"), "{missing}");
    let empty = Folder::new("no-tokenizer");
    let error = Tokenizer::load(&empty.0).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json") && error.contains("vocab.txt"), "{error}");
}

#[test]
fn a_damaged_model_is_refused_or_still_safe_to_use() {
    let folder = Folder::new("damaged");
    let path = folder.0.join("a.model");
    for model in ["unigram.model", "bpe_symbols.model"] {
        let bytes = std::fs::read(repository(&format!("golden/text/{model}"))).unwrap();
        for i in 0..150 {
            let mut damaged = bytes.clone();
            let at = i * 7919 % bytes.len();
            damaged[at] = damaged[at].wrapping_add(1 + i as u8);
            std::fs::write(&path, damaged).unwrap();
            if let Ok(tokenizer) = Tokenizer::load(&path) {
                for line in nasty() {
                    let ids = tokenizer.encode(&line, Side::Source).unwrap();
                    tokenizer.decode(&ids).unwrap();
                }
            }
        }
    }
}
