//! Texts with labels, and sentences with a tag for each word, to learn from or to judge by.
//!
//! | | a line | in files named |
//! |---|---|---|
//! | [`read_texts`] | `text<TAB>label`, `label<TAB>text` or `text<TAB>text<TAB>label`, with or without a header | as you like |
//! | | `{"text": …, "text_pair": …, "label": …}` | `.jsonl`, `.ndjson`, `.json` |
//! | [`read_tags`] | a word, other columns, its tag; an empty line ends a sentence | as you like |
//! | | `{"tokens": […], "tags": […]}` | `.jsonl`, `.ndjson`, `.json` |
//!
//! [`read_questions`] reads the files of SQuAD.
//!
//! Names may end with `.gz` or `.zst` as well. Labels are kept as they are written; their set is sorted, so that it does not depend on
//! the order of lines or files. What a model is judged by must have no label that training never saw.
//!
//! All examples are in memory. A label costs as much as its text for each example; files of labels are small beside corpora of pairs.

mod conll;
mod jsonl;
mod labels;
mod tsv;

pub use labels::Labels;
pub use tsv::Columns;

use super::Error;
use super::files::check_paths;
use super::text_file::each_line;
use super::unpack::Cache;
use attentive_text::squad::{Question, Squad};
use labels::Collector;
use std::path::{Path, PathBuf};

/// One text, or two, with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    /// The text.
    pub text: String,
    /// A second text, such as the hypothesis that belongs to a premise.
    pub pair: Option<String>,
    /// The label.
    pub label: String,
}

/// The words of a sentence, each with its tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaggedSentence {
    /// The words; there is at least one.
    pub words: Vec<String>,
    /// As many tags.
    pub tags: Vec<String>,
}

/// All examples of some files.
#[derive(Debug, Clone)]
pub struct Labelled<T> {
    /// The examples, in the order of the files; there is at least one.
    pub examples: Vec<T>,
    /// All labels or tags: those that were given, or those that the examples have.
    pub labels: Labels,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
    /// CRC-32 of all files, unpacked, one behind the other.
    pub checksum: u32,
}

/// How files are to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// The labels that training saw: others are an error. Without this, all labels are taken, and their set is sorted.
    pub labels: Option<&'a Labels>,
    /// Where the label is in tables without a header. Without this, the tables themselves tell: if labels are given, the label is the
    /// field that is one of them more often; else the field that has fewer different values, or fewer bytes if both have as many.
    pub columns: Option<Columns>,
}

/// Reads texts with labels. Compressed files are unpacked to the folder `cache`, which is made when it is needed; if a file is
/// refused, nothing stays there.
pub fn read_texts(
    files: &[PathBuf],
    reading: Reading<'_>,
    cache: &Path,
) -> Result<Labelled<LabelledText>, Error> {
    with_files(files, cache, |files| {
        let layouts = tsv::layouts(files, reading)?;
        let mut all = Collector::new(reading.labels);
        for (file, layout) in files.iter().zip(layouts) {
            file.each_line(|number, bytes, line| {
                all.count(bytes);
                let is_header = layout.is_some_and(|layout| layout.header == Some(number));
                if line.is_empty() || is_header {
                    return Ok(());
                }
                let example = match layout {
                    Some(layout) => layout.split(line),
                    None => jsonl::text(line),
                };
                let added = example.and_then(|example| {
                    all.label(&example.label)?;
                    all.examples.push(example);
                    Ok(())
                });
                added.map_err(|problem| file.wrong(number, problem))
            })?;
        }
        all.finish(files)
    })
}

/// Reads sentences with tags, as [`read_texts`] reads texts.
pub fn read_tags(
    files: &[PathBuf],
    reading: Reading<'_>,
    cache: &Path,
) -> Result<Labelled<TaggedSentence>, Error> {
    with_files(files, cache, |files| {
        let mut all = Collector::new(reading.labels);
        for file in files {
            let mut conll = conll::Sentences::default();
            file.each_line(|number, bytes, line| {
                all.count(bytes);
                let sentence =
                    if file.is_json() { jsonl::tags(line, &mut all) } else { conll.line(line, &mut all) };
                all.examples.extend(sentence.map_err(|problem| file.wrong(number, problem))?);
                Ok(())
            })?;
            all.examples.extend(conll.end());
        }
        all.finish(files)
    })
}

/// Reads questions with their answers, as [`read_texts`] reads texts. There are no labels.
pub fn read_questions(files: &[PathBuf], cache: &Path) -> Result<Labelled<Question>, Error> {
    with_files(files, cache, |files| {
        let mut all = Collector::new(None);
        for file in files {
            let failed = |source| Error::File { path: file.named.to_owned(), source };
            let bytes = std::fs::read(&file.path).map_err(failed)?;
            all.count(&bytes);
            all.examples.extend(Squad::parse(file.named, &bytes)?.questions);
        }
        all.finish(files)
    })
}

/// A file and where its text is.
struct File<'a> {
    /// What the user named.
    named: &'a Path,
    /// The same, or what it was unpacked to.
    path: PathBuf,
}

impl File<'_> {
    /// Shows the number, the bytes and the text of each line. A byte order mark is no text.
    fn each_line(&self, mut show: impl FnMut(usize, &[u8], &str) -> Result<(), Error>) -> Result<(), Error> {
        each_line(self.named, &self.path, |number, bytes, line| {
            let line = if number == 1 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
            show(number, bytes, line)
        })
    }

    fn is_json(&self) -> bool {
        let ending = |path: &Path| path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let unpacked = match ending(self.named).as_deref() {
            Some("gz" | "zst") => self.named.with_extension(""),
            _ => self.named.to_owned(),
        };
        matches!(ending(&unpacked).as_deref(), Some("jsonl" | "ndjson" | "json"))
    }

    fn wrong(&self, line: usize, problem: String) -> Error {
        Error::Line { path: self.named.to_owned(), line, problem }
    }
}

/// Unpacks files and reads them. If one is refused, what was unpacked goes.
fn with_files<T>(
    files: &[PathBuf],
    cache: &Path,
    read: impl FnOnce(&[File<'_>]) -> Result<T, Error>,
) -> Result<T, Error> {
    check_paths(files.iter().map(PathBuf::as_path))?;
    let mut cache = Cache::new(cache);
    let unpacked = files.iter().map(|named| Ok(File { named, path: cache.unpacked(named)? }));
    let result = unpacked.collect::<Result<Vec<_>, Error>>().and_then(|files| read(&files));
    if result.is_err() {
        cache.undo();
    }
    result
}

/// A piece of a file as messages show it: short, and without characters that a terminal obeys.
fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
