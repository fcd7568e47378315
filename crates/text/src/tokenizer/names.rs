//! What the files beside a tokenizer say about it: `special_tokens_map.json` and `tokenizer_config.json`.

use super::error::Error;
use super::files;
use serde_json::Value;
use std::path::Path;

/// The special tokens by their roles, and the whole of `tokenizer_config.json`.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(super) bos: Option<String>,
    pub(super) eos: Option<String>,
    pub(super) pad: Option<String>,
    pub(super) unk: Option<String>,
    pub(super) cls: Option<String>,
    pub(super) sep: Option<String>,
    pub(super) mask: Option<String>,
    pub(super) config: Value,
}

impl Names {
    /// Reads the files beside `path`, if they are there.
    pub(super) fn load(path: &Path) -> Result<Names, Error> {
        let beside = |name: &str| {
            let path = path.with_file_name(name);
            if files::is_file(&path)? { files::read_json(&path) } else { Ok(Value::Null) }
        };
        let (map, config) = (beside("special_tokens_map.json")?, beside("tokenizer_config.json")?);
        // A token stands as it is, or as an object with its text in it.
        let text = |value: &Value| value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned);
        let name = |key: &str| text(&config[key]).or_else(|| text(&map[key]));
        let [bos, eos, pad, unk] = ["bos_token", "eos_token", "pad_token", "unk_token"].map(name);
        let [cls, sep, mask] = ["cls_token", "sep_token", "mask_token"].map(name);
        // BERT's texts begin with one and end with the other.
        let (bos, eos) = (bos.or_else(|| cls.clone()), eos.or_else(|| sep.clone()));
        Ok(Names { bos, eos, pad, unk, cls, sep, mask, config })
    }

    pub(super) fn flag(&self, key: &str, usual: bool) -> bool {
        self.config[key].as_bool().unwrap_or(usual)
    }
}
