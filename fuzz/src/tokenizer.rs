//! Files of tokenizers. What can be loaded also reads and writes some texts.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_text::tokenizer::{Input, Side, Tokenizer};

const TEXTS: [&str; 5] = [
    "",
    "A dog runs.",
    "  ein  Löwe 狮子 e\u{301}\u{fb01}",
    "\0<pad></s><unk>[MASK][SEP]\u{7}",
    ">>de<< ab\n\tab",
];

/// `source.spm`, with a vocabulary and the other model as they should be.
pub(crate) fn sentencepiece() -> Reader {
    in_folder_of_marian("source.spm")
}

/// `vocab.json`, with models as they should be.
pub(crate) fn vocab() -> Reader {
    in_folder_of_marian("vocab.json")
}

/// `tokenizer.json`, alone.
pub(crate) fn tokenizer_json() -> Reader {
    let scratch = Scratch::new("tokenizer_json");
    Box::new(move |input| {
        scratch.write("tokenizer.json", input);
        load(&scratch)
    })
}

/// BERT's `vocab.txt`. If the first line is an object, it is `tokenizer_config.json`.
pub(crate) fn vocab_txt() -> Reader {
    let scratch = Scratch::new("vocab_txt");
    Box::new(move |input| {
        let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
        let (config, vocab) = match input {
            [b'{', ..] => (&input[..end], &input[(end + 1).min(input.len())..]),
            _ => (&b"{}"[..], input),
        };
        scratch.write("tokenizer_config.json", config);
        scratch.write("vocab.txt", vocab);
        load(&scratch)
    })
}

fn in_folder_of_marian(name: &'static str) -> Reader {
    let scratch = Scratch::copy_of(name, "golden/text/marian");
    Box::new(move |input| {
        scratch.write(name, input);
        load(&scratch)
    })
}

fn load(scratch: &Scratch) -> bool {
    let Ok(tokenizer) = Tokenizer::load(scratch.folder()) else { return false };
    use_all(&tokenizer);
    use_all(&tokenizer.special_tokens_as_text());
    if let Ok(tokenizer) = Tokenizer::load(scratch.folder()) {
        let _ = tokenizer.special_tokens_but_mask_as_text().map(|tokenizer| use_all(&tokenizer));
    }
    true
}

fn use_all(tokenizer: &Tokenizer) {
    for side in [Side::Source, Side::Target] {
        for text in TEXTS {
            let _ = tokenizer.encode_pieces(text, side);
            if let Ok(ids) = tokenizer.encode(text, side) {
                let _ = tokenizer.decode(&ids);
            }
        }
        let inputs = [Input::Text(TEXTS[2]), Input::Pair(TEXTS[1], TEXTS[3]), Input::Words(&TEXTS)];
        for (input, limit) in inputs.into_iter().flat_map(|input| [(input, None), (input, Some(5))]) {
            if let Ok(encoding) = tokenizer.encode_input(input, limit) {
                assert!(limit.is_none_or(|limit| encoding.len() <= limit), "the limit is kept");
                let _ = (encoding.first_of_words(3), encoding.special_tokens_mask());
            }
        }
        let _ = (tokenizer.vocabulary_size(side), tokenizer.mask());
        for id in [0, 1, 7, u32::MAX] {
            let _ = (tokenizer.piece(id, side), tokenizer.decode(&[id, id]));
        }
    }
}
