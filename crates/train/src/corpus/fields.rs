//! A pair in one line.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The fields of an object that source and target are in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldNames {
    /// The field of the source.
    pub source: String,
    /// The field of the target.
    pub target: String,
}

/// How a line holds a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// The line is a text, and there is no other side.
    Text,
    /// The same in a field `text`.
    JsonText,
    Tsv,
    Jsonl(FieldNames),
}

impl LineFormat {
    /// The source and the target of a line, or what is wrong with it.
    pub(super) fn split<'a>(&self, line: &'a str) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
        match self {
            LineFormat::Text => Ok((line.into(), "".into())),
            LineFormat::JsonText => json_text(line),
            LineFormat::Tsv => tsv(line),
            LineFormat::Jsonl(names) => jsonl(line, names),
        }
    }
}

fn tsv(line: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), String> {
    let fields = line.split('\t').count();
    match line.split_once('\t') {
        Some((source, target)) if fields == 2 => Ok((source.into(), target.into())),
        _ => Err(format!("has {fields} tab-separated fields: there must be two, the source and the target")),
    }
}

fn jsonl<'a>(line: &'a str, names: &FieldNames) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let fields = Pick(names).deserialize(&mut deserializer).and_then(|fields| {
        deserializer.end()?;
        Ok(fields)
    });
    let (source, target) = fields.map_err(|error| not_json("two texts", &error))?;
    let missing = |name: &str| format!("has no field `{name}`");
    let source = source.ok_or_else(|| missing(&names.source))?;
    Ok((source.0, target.ok_or_else(|| missing(&names.target))?.0))
}

fn json_text(line: &str) -> Result<(Cow<'_, str>, Cow<'_, str>), String> {
    #[derive(serde::Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    let object: Object = serde_json::from_str(line).map_err(|error| not_json("a field `text`", &error))?;
    Ok((object.text, "".into()))
}

/// A line is one line of its own to the parser, whose number would only confuse.
fn not_json(wanted: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    format!("is not a JSON object with {wanted}: {message}")
}

/// Picks two fields out of an object and reads over the rest.
struct Pick<'n>(&'n FieldNames);

/// A text that is borrowed from the line where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = (Option<Text<'de>>, Option<Text<'de>>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = (Option<Text<'de>>, Option<Text<'de>>);

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "an object with `{}` and `{}`", self.0.source, self.0.target)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut source, mut target) = (None, None);
        while let Some(Text(key)) = map.next_key()? {
            if key == self.0.source {
                source = Some(map.next_value()?);
            } else if key == self.0.target {
                target = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((source, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> LineFormat {
        LineFormat::Jsonl(FieldNames { source: "en".to_owned(), target: "de".to_owned() })
    }

    #[test]
    fn a_line_with_a_tab_is_a_pair() {
        assert_eq!(LineFormat::Tsv.split("a b\tc"), Ok(("a b".into(), "c".into())));
        assert_eq!(LineFormat::Tsv.split("\t"), Ok(("".into(), "".into())));
        for (line, fields) in [("a", 1), ("a\tb\tc", 3), ("", 1)] {
            let problem = LineFormat::Tsv.split(line).unwrap_err();
            assert!(problem.starts_with(&format!("has {fields} tab-separated fields")), "{problem}");
        }
    }

    #[test]
    fn an_object_gives_the_named_fields_and_its_escapes_are_read() {
        let line = r#"{"id": [1, {"de": "no"}], "de": "z\u00fcg\n", "en": "trains", "score": null}"#;
        assert_eq!(names().split(line), Ok(("trains".into(), "züg\n".into())));
    }

    #[test]
    fn an_object_without_a_field_says_which() {
        assert_eq!(names().split(r#"{"en": "x"}"#).unwrap_err(), "has no field `de`");
        assert_eq!(names().split("{}").unwrap_err(), "has no field `en`");
    }

    #[test]
    fn what_is_no_object_of_texts_is_told_without_a_second_line_number() {
        for line in ["", "{", "[1]", r#"{"en": 1, "de": "x"}"#, r#"{"en": "x", "de": "y"} more"#] {
            let problem = names().split(line).unwrap_err();
            assert!(problem.starts_with("is not a JSON object with two texts: "), "{problem}");
            assert!(!problem.contains("line 1"), "{problem}");
        }
    }
}
