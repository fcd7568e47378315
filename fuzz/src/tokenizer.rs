//! Files of tokenizers. What can be loaded also reads and writes some texts.

use crate::Reader;
use crate::scratch::Scratch;
use attentive_text::tokenizer::{Side, Tokenizer};

const TEXTS: [&str; 5] =
    ["", "A dog runs.", "  ein  Löwe 狮子 e\u{301}\u{fb01}", "\0<pad></s><unk>\u{7}", ">>de<< ab\n\tab"];

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
        let _ = tokenizer.vocabulary_size(side);
        for id in [0, 1, 7, u32::MAX] {
            let _ = (tokenizer.piece(id, side), tokenizer.decode(&[id, id]));
        }
    }
}
