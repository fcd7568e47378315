//! Which files of a repository a model is read from. All others, such as weights for other programs, are not downloaded.

use crate::error::{Error, shown};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// What says which family reads a model.
pub(crate) const CONFIG: &str = "config.json";

/// What says how sentence-transformers makes vectors, with the folder of each step.
pub(crate) const MODULES: &str = "modules.json";

/// Files of tokenizers.
pub(crate) const TOKENIZER: [&str; 15] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "target_vocab.json",
    "merges.txt",
    "vocab.txt",
    "source.spm",
    "target.spm",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
];

/// What a model may have beside its configuration, its weights and its tokenizer.
pub(crate) const BESIDE: [&str; 6] = [
    "generation_config.json",
    MODULES,
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "preprocessor_config.json",
    "processor_config.json",
];

/// Files of weights in the order in which they are looked for. An index names several files.
pub(crate) const WEIGHTS: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// Whether a file of weights is an index.
pub(crate) fn is_index(file: &str) -> bool {
    file.ends_with(".index.json")
}

/// The file of weights of a model that has these files.
pub(crate) fn weights(files: &BTreeSet<String>, name: &str) -> Result<&'static str, Error> {
    WEIGHTS.into_iter().find(|file| files.contains(*file)).ok_or_else(|| {
        const OTHERS: [&str; 5] = [".gguf", ".h5", ".msgpack", ".onnx", ".ot"];
        let other = files.iter().find(|file| OTHERS.iter().any(|ending| file.ends_with(ending)));
        let other = other.map(|file| format!(", only others such as `{}`", shown(file))).unwrap_or_default();
        let problem = format!("has neither model.safetensors nor pytorch_model.bin{other}");
        Error::Unfit { name: name.to_owned(), problem }
    })
}

/// The files that an index of weights names.
pub(crate) fn parts(index: &Value) -> Option<BTreeSet<String>> {
    let map = index.get("weight_map")?.as_object()?;
    map.values().map(|file| file.as_str().map(str::to_owned)).collect()
}

/// The files of pooling that `modules.json` names.
pub(crate) fn pooling(modules: &Value) -> Option<BTreeSet<String>> {
    let list = modules.as_array()?;
    let is_pooling = |module: &&Value| module["type"].as_str().is_some_and(|kind| kind.ends_with(".Pooling"));
    list.iter()
        .filter(is_pooling)
        .map(|module| Some(format!("{}/config.json", module["path"].as_str()?)))
        .collect()
}

/// Whether a path stays in the folder that it is in, on every system.
pub(crate) fn stays(path: &str) -> bool {
    let is_plain = |part: &str| {
        let mut components = Path::new(part).components();
        matches!(components.next(), Some(Component::Normal(_))) && components.next().is_none()
    };
    !path.contains(['\\', ':', '\0']) && path.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn files(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn safetensors_come_before_files_of_pytorch() {
        let chosen = |names: &[&str]| weights(&files(names), "a/b").map_err(|error| error.to_string());
        assert_eq!(chosen(&["pytorch_model.bin", "model.safetensors"]), Ok("model.safetensors"));
        assert_eq!(
            chosen(&["pytorch_model.bin", "model.safetensors.index.json"]),
            Ok("model.safetensors.index.json")
        );
        assert_eq!(chosen(&["pytorch_model.bin", "tf_model.h5"]), Ok("pytorch_model.bin"));
        let refused = chosen(&["tf_model.h5"]).unwrap_err();
        assert!(refused.contains("a/b") && refused.contains("tf_model.h5"), "{refused}");
    }

    #[test]
    fn indices_and_modules_name_further_files() {
        let index =
            json!({"weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"}});
        assert_eq!(parts(&index), Some(files(&["one.safetensors", "two.safetensors"])));
        assert_eq!(parts(&json!({"weight_map": {"a": 1}})), None);
        let modules = json!([
            {"type": "sentence_transformers.models.Transformer", "path": ""},
            {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        ]);
        assert_eq!(pooling(&modules), Some(files(&["1_Pooling/config.json"])));
        assert_eq!(pooling(&json!({})), None);
    }

    #[test]
    fn paths_that_leave_the_folder_are_told() {
        for path in ["a", "a/b", "1_Pooling/config.json", "..a", "a b"] {
            assert!(stays(path), "{path}");
        }
        for path in ["", "..", "../a", "a/../b", "/a", "a//b", "a/", "./a", "a/.", "a\\b", "c:a", "a\0"] {
            assert!(!stays(path), "{path:?}");
        }
    }
}
