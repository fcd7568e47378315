//! Objects of JSON, one on each line, with the names of fields that are usual on the Hugging Face hub.

use super::labels::Collector;
use super::{LabelledText, TaggedSentence};
use serde_json::{Map, Value};

/// Fields of a text, of which an object has one.
pub(super) const TEXT: [&str; 8] =
    ["text", "sentence", "sentence1", "text1", "premise", "question", "question1", "content"];
/// Fields of a second text.
pub(super) const PAIR: [&str; 5] = ["text_pair", "sentence2", "text2", "hypothesis", "question2"];
/// Fields of a label.
pub(super) const LABEL: [&str; 4] = ["label", "labels", "class", "category"];
/// Fields of words.
const WORDS: [&str; 2] = ["tokens", "words"];
/// Fields of tags.
const TAGS: [&str; 3] = ["tags", "ner_tags", "labels"];

/// The example of a line, or what is wrong with it.
pub(super) fn text(line: &str) -> Result<LabelledText, String> {
    let object = object(line)?;
    let (name, value) = field(&object, &TEXT)?.ok_or_else(|| missing("text"))?;
    let text = string(name, value)?;
    let pair = field(&object, &PAIR)?.map(|(name, value)| string(name, value)).transpose()?;
    let (name, value) = field(&object, &LABEL)?.ok_or_else(|| missing("label"))?;
    Ok(LabelledText { text, pair, label: label(name, value)? })
}

/// The sentence of a line, or what is wrong with it; none if it has no words or the line is empty.
pub(super) fn tags(
    line: &str,
    all: &mut Collector<'_, TaggedSentence>,
) -> Result<Option<TaggedSentence>, String> {
    if line.is_empty() {
        return Ok(None);
    }
    let object = object(line)?;
    let (name, value) = field(&object, &WORDS)?.ok_or_else(|| missing("tokens"))?;
    let words = strings(name, value)?;
    let (name, value) = field(&object, &TAGS)?.ok_or_else(|| missing("tags"))?;
    let tags = strings(name, value)?;
    if words.len() != tags.len() {
        return Err(format!("has {} words and {} tags: every word needs one tag", words.len(), tags.len()));
    }
    tags.iter().try_for_each(|tag| all.label(tag))?;
    Ok((!words.is_empty()).then_some(TaggedSentence { words, tags }))
}

fn object(line: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(line).map_err(|error| {
        // A line is one line of its own to the parser, whose number would only confuse.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message);
        format!("is not a JSON object, of which each line must have one: {message}")
    })
}

/// The one field among some names that an object has; what is null is not there.
fn field<'o>(
    object: &'o Map<String, Value>,
    names: &[&'static str],
) -> Result<Option<(&'static str, &'o Value)>, String> {
    let there = |&name: &&'static str| Some((name, object.get(name).filter(|value| !value.is_null())?));
    let mut fields = names.iter().filter_map(there);
    match (fields.next(), fields.next()) {
        (Some((one, _)), Some((other, _))) => Err(format!(
            "has both `{one}` and `{other}`: remove one, or call them `{}` and `text_pair` if both are meant",
            names[0]
        )),
        (field, _) => Ok(field),
    }
}

fn missing(name: &str) -> String {
    format!("has no field `{name}`, nor another usual name of it")
}

fn string(name: &str, value: &Value) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("has a field `{name}` that is not a text: put it in quotes"))
}

fn strings(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let problem = || {
        format!(
            "has a field `{name}` that is not a list of texts: write words and the names of tags in quotes"
        )
    };
    let list = value.as_array().ok_or_else(problem)?;
    list.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(problem)).collect()
}

/// A label is a text, a whole number or a truth.
fn label(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(label) => Ok(label.trim().to_owned()),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        Value::Bool(label) => Ok(label.to_string()),
        _ => Err(format!(
            "has a field `{name}` that is neither a text nor a whole number: an example has one class"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_are_read() {
        let example =
            text(r#"{"idx": 3, "premise": "a\u00e4", "hypothesis": "b", "label": 2, "x": [{}]}"#).unwrap();
        let expected =
            LabelledText { text: "aä".to_owned(), pair: Some("b".to_owned()), label: "2".to_owned() };
        assert_eq!(example, expected);
        let example = text(r#"{"sentence": "a", "text_pair": null, "label": "good"}"#).unwrap();
        assert_eq!((example.pair, &*example.label), (None, "good"));
    }

    #[test]
    fn what_is_missing_or_meant_twice_is_told() {
        for (line, word) in [
            (r#"{"label": 1}"#, "no field `text`"),
            (r#"{"text": "a"}"#, "no field `label`"),
            (r#"{"text": 1, "label": 1}"#, "`text` that is not a text"),
            (r#"{"text": "a", "label": 0.5}"#, "`label` that is neither"),
            (r#"{"text": "a", "label": [1]}"#, "`label` that is neither"),
            (r#"{"question": "a", "sentence": "b", "label": 1}"#, "both `sentence` and `question`"),
            ("[", "not a JSON object"),
            ("[1]", "not a JSON object"),
            (r#"{"text": "a", "label": 1} x"#, "not a JSON object"),
        ] {
            let problem = text(line).unwrap_err();
            assert!(problem.contains(word) && !problem.contains("line 1"), "{line}: {problem}");
        }
    }

    #[test]
    fn words_and_tags_are_read_and_counted() {
        let mut all = Collector::new(None);
        let mut read = |line| tags(line, &mut all);
        let sentence =
            read(r#"{"id": "0", "tokens": ["A", "b"], "ner_tags": ["O", "B-X"], "pos_tags": [1, 2]}"#);
        assert_eq!(sentence.unwrap().unwrap().tags, ["O", "B-X"]);
        assert_eq!(read(r#"{"tokens": [], "tags": []}"#).unwrap(), None);
        assert!(read(r#"{"tokens": ["a"], "tags": []}"#).unwrap_err().contains("1 words and 0 tags"));
        assert!(
            read(r#"{"tokens": ["a"], "tags": [3]}"#)
                .unwrap_err()
                .contains("`tags` that is not a list of texts")
        );
        assert!(read(r#"{"tokens": ["a"], "tags": [""]}"#).unwrap_err().contains("empty label"));
    }
}
