//! Every line of Multi30k, held against sums that `golden/text.py` made with the libraries.

use super::{repository, shared};
use attentive_text::tokenizer::{Side, Tokenizer};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

#[test]
fn every_line_of_multi30k_is_as_in_the_libraries() {
    let Some(data) = shared("data/multi30k") else { return };
    let Some(reference) = shared("reference") else { return };
    let sums: Value =
        serde_json::from_str(&std::fs::read_to_string(repository("golden/text/multi30k.json")).unwrap())
            .unwrap();
    let path = |name: &str| -> PathBuf {
        match name {
            "marian-multi30k" => reference.join(name),
            "minilm" => reference.join("minilm/tokenizer.json"),
            name => repository("golden/text").join(name),
        }
    };
    for (name, sums) in sums.as_object().unwrap() {
        let tokenizer = Tokenizer::load(path(name)).unwrap();
        for (language, sum) in sums.as_object().unwrap() {
            let mut numbers = String::new();
            for part in ["train", "val", "test_2016_flickr"] {
                let text = std::fs::read_to_string(data.join(format!("{part}.{language}"))).unwrap();
                for line in text.strip_suffix('\n').unwrap().split('\n') {
                    let ids = tokenizer.encode(line, Side::Source).unwrap();
                    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                    writeln!(numbers, "{}", ids.join(" ")).unwrap();
                }
            }
            assert_eq!(Some(u64::from(crc32(numbers.as_bytes()))), sum.as_u64(), "{name}, {language}");
        }
    }
}

/// The checksum of zlib.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let shift = |sum: u32| if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ 0xEDB8_8320 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), |sum, _| shift(sum)))
}
