//! Trained tokenizers: what is in the files, and that all of them say the same.

use super::{Folder, nasty, repository};
use attentive_text::tokenizer::train::{Kind, Trainer, of_pieces};
use attentive_text::tokenizer::{Side, Tokenizer};
use serde_json::{Value, json};

const SENTENCES: [&str; 6] = [
    "A dog runs on the grass near the river.",
    "Ein Hund läuft im Gras am Fluß.",
    "Two children are playing beside 12 green bottles, and the dog is running.",
    "Zwei Kinder spielen neben 12 grünen Flaschen, und der Hund rennt.",
    "The old man's cat sleeps; the dog barks!",
    "Die Katze des alten Mannes schläft; der Hund bellt!",
];

fn trainer(kind: Kind, size: usize) -> Trainer {
    let mut trainer = Trainer::new(kind, size);
    for (i, sentence) in SENTENCES.iter().enumerate() {
        trainer.line(sentence, if i % 2 == 0 { Side::Source } else { Side::Target });
    }
    trainer
}

#[test]
fn the_vocabulary_has_the_size_that_was_asked_for_and_marians_layout() {
    for kind in [Kind::Bpe, Kind::Unigram] {
        let tokenizer = trainer(kind, 80).joint().unwrap();
        assert_eq!(tokenizer.vocabulary_size(Side::Source), 80, "{kind:?}");
        let piece = |id| tokenizer.piece(id, Side::Source).unwrap();
        assert_eq!([piece(0), piece(1), piece(79)], ["</s>", "<unk>", "<pad>"]);
        let special = tokenizer.special(Side::Source);
        assert_eq!((special.eos, special.unk, special.pad), (Some(0), Some(1), Some(79)));
    }
}

#[test]
fn text_comes_back_and_ends_with_the_end() {
    for kind in [Kind::Bpe, Kind::Unigram] {
        let tokenizer = trainer(kind, 100).joint().unwrap();
        for sentence in SENTENCES {
            let ids = tokenizer.encode(sentence, Side::Target).unwrap();
            assert_eq!(ids.last(), Some(&0));
            assert_eq!(tokenizer.encode_plain(sentence, Side::Target).unwrap(), ids[..ids.len() - 1]);
            assert_eq!(tokenizer.decode(&ids).unwrap(), sentence);
        }
    }
}

#[test]
fn all_files_of_a_folder_have_the_same_ids() {
    for kind in [Kind::Bpe, Kind::Unigram] {
        let folder = Folder::new(&format!("train-{kind:?}"));
        trainer(kind, 120).joint().unwrap().save(&folder.0).unwrap();
        let load = |name: &str| Tokenizer::load(folder.0.join(name)).unwrap();
        let (marian, json) = (load("."), load("tokenizer.json"));
        let [source, target] = ["source.spm", "target.spm"].map(load);
        let vocabulary = std::fs::read_to_string(folder.0.join("vocab.json")).unwrap();
        let vocabulary: Value = serde_json::from_str(&vocabulary).unwrap();
        for (token, id) in vocabulary.as_object().unwrap() {
            let id = id.as_u64().unwrap() as u32;
            for tokenizer in [&source, &target, &json] {
                assert_eq!(tokenizer.piece(id, Side::Source).as_ref(), Some(token));
            }
        }
        for line in SENTENCES {
            let ids = marian.encode(line, Side::Source).unwrap();
            assert_eq!(json.encode(line, Side::Source).unwrap(), ids, "{line:?}");
            assert_eq!([source.encode(line, Side::Source).unwrap(), vec![0]].concat(), ids, "{line:?}");
        }
    }
}

#[test]
fn language_tokens_at_the_beginning_of_lines_are_learned_and_the_same_in_all_files() {
    for kind in [Kind::Bpe, Kind::Unigram] {
        let folder = Folder::new(&format!("languages-{kind:?}"));
        let mut trainer = trainer(kind, 120);
        trainer.line(">>fra<< A dog runs.", Side::Source);
        trainer.line(">>deu<< A dog runs.", Side::Source);
        trainer.joint().unwrap().save(&folder.0).unwrap();
        let load = |name: &str| Tokenizer::load(folder.0.join(name)).unwrap();
        let (marian, json, model) = (load("."), load("tokenizer.json"), load("source.spm"));
        let size = marian.vocabulary_size(Side::Source) as u32;
        for (id, token) in [(size - 3, ">>deu<<"), (size - 2, ">>fra<<"), (size - 1, "<pad>")] {
            for tokenizer in [&marian, &json, &model] {
                assert_eq!(tokenizer.piece(id, Side::Source).as_deref(), Some(token));
            }
        }
        let plain = marian.encode("A dog runs.", Side::Source).unwrap();
        for (text, id) in [(">>fra<< A dog runs.", size - 2), (">>deu<<A dog runs.", size - 3)] {
            let expected = [vec![id], plain.clone()].concat();
            assert_eq!(marian.encode(text, Side::Source).unwrap(), expected);
            assert_eq!(json.encode(text, Side::Source).unwrap(), expected);
        }
    }
}

#[test]
fn known_pieces_cut_a_text_into_as_few_as_can_be() {
    let pieces = ["▁ein", "ein", "eins", "und", "▁zwanzig", "zwanzig", "s", "n", "u", "d"].map(str::to_owned);
    let made = of_pieces(&pieces, &[">>de<<".to_owned()]);
    let folder = Folder::new("pieces");
    made.save(&folder.0).unwrap();
    let loaded = Tokenizer::load(&folder.0).unwrap();
    for tokenizer in [made, loaded] {
        let cut = |text| tokenizer.encode_pieces(text, Side::Source).unwrap();
        assert_eq!(cut(">>de<< einundzwanzig"), [">>de<<", "▁ein", "und", "zwanzig", "</s>"]);
        assert_eq!(cut("einseins"), ["▁ein", "s", "eins", "</s>"]);
        let ids = tokenizer.encode("einundzwanzig zwanzig", Side::Target).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), "einundzwanzig zwanzig");
        assert!(tokenizer.encode("drei", Side::Source).unwrap().contains(&1));
    }
}

#[test]
fn tokenizer_json_says_the_same_of_nasty_text_but_where_marks_follow_compatibility_letters() {
    // Language tokens and special tokens are Marian's own affair.
    let marians = |line: &str| line.contains(">>") || line.contains('<');
    for kind in [Kind::Bpe, Kind::Unigram] {
        let folder = Folder::new(&format!("nasty-{kind:?}"));
        trainer(kind, 120).joint().unwrap().save(&folder.0).unwrap();
        let [marian, json] =
            [".", "tokenizer.json"].map(|name| Tokenizer::load(folder.0.join(name)).unwrap());
        let lines: Vec<String> = nasty().into_iter().filter(|line| !marians(line)).collect();
        let differs = |line: &&String| {
            marian.encode(line, Side::Source).unwrap() != json.encode(line, Side::Source).unwrap()
        };
        let different: Vec<&String> = lines.iter().filter(differs).collect();
        assert!(different.len() * 20 <= lines.len(), "{different:?}");
    }
}

#[test]
fn the_same_lines_give_the_same_bytes_in_any_order() {
    for kind in [Kind::Bpe, Kind::Unigram, Kind::WordPiece, Kind::ByteBpe, Kind::Characters] {
        let folder = Folder::new(&format!("bytes-{kind:?}"));
        let size = if kind == Kind::ByteBpe { 300 } else { 110 };
        let mut backwards = Trainer::new(kind, size);
        SENTENCES.iter().rev().for_each(|sentence| backwards.line(sentence, Side::Source));
        trainer(kind, size).joint().unwrap().save(folder.0.join("a")).unwrap();
        backwards.joint().unwrap().save(folder.0.join("b")).unwrap();
        for entry in std::fs::read_dir(folder.0.join("a")).unwrap() {
            let name = entry.unwrap().file_name();
            let [a, b] = ["a", "b"].map(|side| std::fs::read(folder.0.join(side).join(&name)).unwrap());
            assert!(a == b, "{kind:?}: {name:?}");
        }
    }
}

#[test]
fn each_side_can_have_pieces_of_its_own() {
    let folder = Folder::new("separate");
    trainer(Kind::Bpe, 70).separate().unwrap().save(&folder.0).unwrap();
    let tokenizer = Tokenizer::load(&folder.0).unwrap();
    let size = tokenizer.vocabulary_size(Side::Source);
    assert!((71..137).contains(&size), "{size}");
    assert_eq!(tokenizer.piece(size as u32 - 1, Side::Target).unwrap(), "<pad>");
    // An English word is one piece to the English side only.
    let lengths = [Side::Source, Side::Target].map(|side| tokenizer.encode("the dog", side).unwrap().len());
    assert!(lengths[0] < lengths[1], "{lengths:?}");
    for (i, sentence) in SENTENCES.iter().enumerate() {
        let side = if i % 2 == 0 { Side::Source } else { Side::Target };
        let ids = tokenizer.encode(sentence, side).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), *sentence);
    }
    assert!(!folder.0.join("tokenizer.json").exists());
}

#[test]
fn wordpiece_is_bert_cased() {
    let folder = Folder::new("wordpiece");
    trainer(Kind::WordPiece, 150).joint().unwrap().save(&folder.0).unwrap();
    let [json, vocab] = [".", "vocab.txt"].map(|name| Tokenizer::load(folder.0.join(name)).unwrap());
    let pieces = json.encode_pieces("The dog", Side::Source).unwrap();
    assert_eq!((pieces[0].as_str(), pieces[pieces.len() - 1].as_str()), ("[CLS]", "[SEP]"));
    for line in SENTENCES.map(str::to_owned).into_iter().chain(nasty()) {
        let [a, b] = [&json, &vocab].map(|tokenizer| tokenizer.encode(&line, Side::Source).unwrap());
        assert_eq!(a, b, "{line:?}");
    }
    let ids = json.encode("Zwei Kinder spielen", Side::Source).unwrap();
    assert_eq!(json.decode(&ids).unwrap(), "Zwei Kinder spielen");
}

/// Text of several lines, as a language model reads it.
fn novel() -> String {
    SENTENCES.map(str::to_owned).into_iter().chain(nasty()).map(|line| line + "\n").collect()
}

#[test]
fn byte_pairs_are_gpt2_and_know_every_text() {
    let folder = Folder::new("byte-bpe");
    let mut trainer = Trainer::new(Kind::ByteBpe, 400);
    trainer.text(&novel(), Side::Source);
    trainer.joint().unwrap().save(&folder.0).unwrap();
    let json = Tokenizer::load(&folder.0).unwrap();
    std::fs::remove_file(folder.0.join("tokenizer.json")).unwrap();
    let merges = Tokenizer::load(&folder.0).unwrap();
    assert_eq!((json.vocabulary_size(Side::Source), json.special(Side::Source).eos), (400, Some(399)));
    let novel = novel();
    for text in novel.lines().chain([&*novel, "犬\t 🐕\r\n\n  x"]) {
        let [a, b] = [&json, &merges].map(|tokenizer| tokenizer.encode(text, Side::Source).unwrap());
        assert_eq!(a, b, "{text:?}");
        // The end of a text is no text.
        assert_eq!(json.decode(&a).unwrap(), text.replace("<|endoftext|>", ""));
    }
    // Words are learned with the space before them, and line breaks are learned as well.
    let most = SENTENCES[0].split(' ').nth(1).unwrap();
    assert!(json.encode(&format!("A {most}"), Side::Source).unwrap().len() <= 4, "{most}");
}

#[test]
fn characters_are_tokens_and_what_was_not_seen_is_unknown() {
    let folder = Folder::new("characters");
    let mut trainer = Trainer::new(Kind::Characters, 0);
    trainer.text("b a,\né b\n", Side::Source);
    trainer.joint().unwrap().save(&folder.0).unwrap();
    let tokenizer = Tokenizer::load(&folder.0).unwrap();
    assert_eq!(tokenizer.vocabulary_size(Side::Source), 2 + 6);
    assert_eq!(
        (tokenizer.special(Side::Source).eos, tokenizer.special(Side::Source).unk),
        (Some(0), Some(1))
    );
    let ids = tokenizer.encode("a\n, bé", Side::Source).unwrap();
    assert_eq!(ids, [5, 2, 4, 3, 6, 7]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a\n, bé");
    assert_eq!(tokenizer.encode("axz", Side::Source).unwrap(), [5, 1, 1]);
    assert_eq!(tokenizer.words(&ids, Side::Source).len(), 6);
    let as_text = Tokenizer::load(&folder.0).unwrap().special_tokens_as_text();
    assert_eq!(as_text.encode("<unk>a", Side::Source).unwrap(), [1, 1, 1, 1, 1, 5]);
}

#[test]
fn a_vocabulary_that_is_too_small_and_no_text_are_told() {
    for kind in [Kind::Bpe, Kind::Unigram, Kind::WordPiece] {
        let error = trainer(kind, 20).joint().unwrap_err().to_string();
        assert!(error.contains("20") && error.contains("characters"), "{error}");
        let folder = Folder::new(&format!("empty-{kind:?}"));
        let empty = folder.0.join("empty.txt");
        std::fs::write(&empty, " \n\n").unwrap();
        let mut trainer = Trainer::new(kind, 100);
        trainer.file(&empty, Side::Source).unwrap();
        let error = trainer.joint().unwrap_err().to_string();
        assert!(error.contains("empty.txt"), "{error}");
    }
    assert!(trainer(Kind::WordPiece, 100).separate().unwrap_err().to_string().contains("each side"));
    assert!(trainer(Kind::ByteBpe, 256).joint().unwrap_err().to_string().contains("at least 257"));
}

#[test]
fn a_small_text_gives_fewer_pieces_than_asked_for_and_still_works() {
    let tokenizer = trainer(Kind::Bpe, 10_000).joint().unwrap();
    let size = tokenizer.vocabulary_size(Side::Source);
    assert!(size < 1_000, "{size}");
    assert_eq!(
        tokenizer.decode(&tokenizer.encode(SENTENCES[0], Side::Source).unwrap()).unwrap(),
        SENTENCES[0]
    );
}

#[test]
fn broken_utf8_is_told_with_file_and_line() {
    let folder = Folder::new("utf8");
    let path = folder.0.join("broken.txt");
    std::fs::write(&path, b"good\nb\xFFd\ngood\n").unwrap();
    let error = Trainer::new(Kind::Bpe, 100).file(&path, Side::Source).unwrap_err().to_string();
    assert!(error.contains("broken.txt") && error.contains("line 2"), "{error}");
    let error = Trainer::new(Kind::Bpe, 100).file(&repository("golden/nothing"), Side::Source).unwrap_err();
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn skipped_merges_cut_a_text_otherwise_and_it_stays_the_same_text() {
    let bpe = trainer(Kind::Bpe, 120).joint().unwrap();
    assert!(bpe.merges());
    for sentence in SENTENCES {
        let skipping =
            |skip: &mut dyn FnMut() -> bool| bpe.encode_with_dropout(sentence, Side::Source, skip).unwrap();
        let whole = bpe.encode(sentence, Side::Source).unwrap();
        assert_eq!(skipping(&mut || false), whole);
        // No merge at all leaves characters, a `▁` before each word, and the end.
        let words = sentence.split(' ').count();
        assert_eq!(skipping(&mut || true).len(), sentence.chars().count() - (words - 1) + words + 1);
        let mut merge = 0;
        let some = skipping(&mut || {
            merge += 1;
            merge % 4 == 0
        });
        assert_ne!(some, whole, "{sentence}");
        assert_eq!(bpe.decode(&some).unwrap(), sentence);
    }
    let unigram = trainer(Kind::Unigram, 120).joint().unwrap();
    assert!(!unigram.merges());
    let skipped = unigram.encode_with_dropout(SENTENCES[0], Side::Source, || true).unwrap();
    assert_eq!(skipped, unigram.encode(SENTENCES[0], Side::Source).unwrap());
}

/// Texts with special tokens and control characters in them.
const SPECIAL_TEXTS: [&str; 5] =
    ["a <pad> dog", "<s>a dog</s>", "the</s><pad><unk>", "</s>", "a\0dog\u{1}\u{7f} runs"];

#[test]
fn special_tokens_in_a_text_are_text_for_those_who_want_it() {
    let folder = Folder::new("special-as-text");
    for kind in [Kind::Bpe, Kind::Unigram] {
        trainer(kind, 120).joint().unwrap().save(&folder.0).unwrap();
        for name in [".", "tokenizer.json"] {
            let load = || Tokenizer::load(folder.0.join(name)).unwrap();
            let (tokens, text) = (load(), load().special_tokens_as_text());
            let special = text.special(Side::Target);
            for line in SPECIAL_TEXTS {
                let ids = text.encode(line, Side::Target).unwrap();
                let (end, inside) = ids.split_last().unwrap();
                assert_eq!(Some(*end), special.eos, "{kind:?} {name} {line}");
                let reserved = |id: &u32| [special.eos, special.pad].contains(&Some(*id));
                assert!(!inside.iter().any(reserved), "{kind:?} {name} {line}: {ids:?}");
                assert!(inside.len() > 1, "{kind:?} {name} {line}: {ids:?}");
            }
            for sentence in SENTENCES {
                let [text, tokens] = [&text, &tokens].map(|one| one.encode(sentence, Side::Source).unwrap());
                assert_eq!(text, tokens, "{kind:?} {name}");
            }
        }
    }
}

#[test]
fn a_language_token_at_the_beginning_stays_one_where_special_tokens_are_text() {
    let folder = Folder::new("language-as-text");
    let mut trainer = trainer(Kind::Bpe, 120);
    trainer.line(">>deu<< A dog", Side::Source);
    trainer.joint().unwrap().save(&folder.0).unwrap();
    for name in [".", "tokenizer.json"] {
        let text = Tokenizer::load(folder.0.join(name)).unwrap().special_tokens_as_text();
        let [ids, inside, plain] =
            [">>deu<< A dog", "A >>deu<< dog", " A dog"].map(|line| text.encode(line, Side::Source).unwrap());
        assert_eq!(text.piece(ids[0], Side::Source).as_deref(), Some(">>deu<<"), "{name}");
        assert_eq!(ids[1..], plain, "{name}");
        assert!(!inside.contains(&ids[0]), "{name}: {inside:?}");
    }
}

#[test]
fn zero_bytes_are_never_learned_and_harm_nothing() {
    for kind in [Kind::Bpe, Kind::Unigram, Kind::WordPiece] {
        let mut trainer = trainer(kind, 120);
        trainer.line("a\0dog \0 \0\0", Side::Source);
        let tokenizer = trainer.joint().unwrap();
        let text = tokenizer.decode(&tokenizer.encode("a dog\0", Side::Source).unwrap()).unwrap();
        assert!(text.starts_with("a dog"), "{kind:?}: {text}");
    }
}

/// Loads the `tokenizer.json` of a small tokenizer with one part of it replaced.
fn with_part(folder: &Folder, part: &str, value: Value) -> Result<Tokenizer, String> {
    let path = folder.0.join("tokenizer.json");
    trainer(Kind::Unigram, 120).joint().unwrap().save(&folder.0).unwrap();
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    json[part] = value;
    std::fs::write(&path, json.to_string()).unwrap();
    Tokenizer::load(&path).map_err(|error| error.to_string())
}

#[test]
fn a_hostile_tokenizer_json_is_an_error_and_never_a_panic() {
    let folder = Folder::new("hostile");
    let table = "/////w==".to_owned() + &"A".repeat(400);
    let long = json!({"type": "Replace", "pattern": {"String": " "}, "content": "x".repeat(1 << 20)});
    let gone = json!({"SpecialToken": {"id": "[GONE]", "type_id": 0}});
    let hostile = [
        ("normalizer", json!({"type": "Precompiled", "precompiled_charsmap": table})),
        ("normalizer", json!({"type": "Sequence", "normalizers": [long]})),
        ("pre_tokenizer", json!({"type": "FixedLength", "length": 0})),
        (
            "post_processor",
            json!({"type": "TemplateProcessing", "single": [gone], "pair": [], "special_tokens": {}}),
        ),
        (
            "model",
            json!({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]],
                   "continuing_subword_prefix": "abcdef"}),
        ),
        (
            "model",
            json!({"type": "WordLevel", "vocab": {"a": 0, "<unk>": 4_000_000_000u32}, "unk_token": "<unk>"}),
        ),
        ("model", json!(null)),
    ];
    for (part, value) in hostile {
        let loaded = with_part(&folder, part, value.clone());
        let encoded =
            loaded.and_then(|it| it.encode("A dog runs.", Side::Source).map_err(|error| error.to_string()));
        let problem = encoded.unwrap_err();
        assert!(!problem.contains('\n'), "{part} {value}: {problem}");
    }
    // Some are of use for words that they know.
    let digits = json!({"type": "WordLevel", "vocab": {"1": 0, "2": 1}, "unk_token": "[UNK]"});
    assert!(with_part(&folder, "model", digits).is_ok());
    // What is only noticed in use is an error there.
    let strip = json!({"type": "Strip", "content": "▁", "start": 1u64 << 40, "stop": 1u64 << 40});
    let tokenizer = with_part(&folder, "decoder", strip);
    drop(tokenizer.map(|tokenizer| tokenizer.decode(&tokenizer.encode("A dog", Side::Source).unwrap())));
}
