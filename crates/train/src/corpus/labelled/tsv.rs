//! Tables: fields with tabs between them, one example on each line.
//!
//! A first line that names a text and a label is a header, and says which column is which; other columns are not read. Without a header
//! there are two fields, a text and a label, or three, two texts and a label. The label is the last field or the first one.

use super::super::Error;
use super::jsonl::{LABEL, PAIR, TEXT};
use super::labels::Labels;
use super::{File, LabelledText, Reading, shown};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Where the label is in tables without a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// In the first column; texts are behind it.
    LabelFirst,
    /// In the last column; texts are before it.
    LabelLast,
}

/// Which column of a table is which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    text: usize,
    pair: Option<usize>,
    label: usize,
    /// How many fields a line has.
    fields: usize,
    /// The line that names the columns, if there is one.
    pub(super) header: Option<usize>,
}

/// How a file begins.
enum Begin {
    /// It is no table, or has no lines.
    Nothing,
    Header(Layout),
    /// A line without names, with so many fields.
    Fields {
        count: usize,
        line: usize,
    },
}

/// The layout of each table among files; none for files of JSON, and where there is nothing to split.
pub(super) fn layouts(files: &[File<'_>], reading: Reading<'_>) -> Result<Vec<Option<Layout>>, Error> {
    let mut begins = Vec::with_capacity(files.len());
    let (mut first, mut last) = (Column::default(), Column::default());
    for file in files {
        let mut begin = Begin::Nothing;
        let look = |number: usize, _: &[u8], line: &str| {
            if line.is_empty() {
                return Ok(());
            }
            if let Begin::Nothing = begin {
                let layout = header(line, number).map_err(|problem| file.wrong(number, problem))?;
                let fields = Begin::Fields { count: line.split('\t').count(), line: number };
                begin = layout.map_or(fields, Begin::Header);
            }
            if let Begin::Fields { .. } = begin {
                first.add(line.split('\t').next().unwrap_or_default(), reading.labels);
                last.add(line.rsplit('\t').next().unwrap_or_default(), reading.labels);
            }
            Ok(())
        };
        if !file.is_json() {
            file.each_line(look)?;
        }
        begins.push(begin);
    }
    let guess = if first.is_rather_the_label_than(&last) { Columns::LabelFirst } else { Columns::LabelLast };
    let columns = reading.columns.unwrap_or(guess);
    let layout = |(file, begin): (&File<'_>, Begin)| match begin {
        Begin::Nothing => Ok(None),
        Begin::Header(layout) => Ok(Some(layout)),
        Begin::Fields { count, line } => {
            Layout::without_header(columns, count).map(Some).map_err(|problem| file.wrong(line, problem))
        }
    };
    files.iter().zip(begins).map(layout).collect()
}

impl Layout {
    fn without_header(columns: Columns, fields: usize) -> Result<Layout, String> {
        if !(2..=3).contains(&fields) {
            return Err(format!(
                "has {fields} tab-separated fields: there must be a text and a label, or two texts and a label; of more \
                 columns, the first line must name `text`, `text_pair` and `label`"
            ));
        }
        let (text, label) = match columns {
            Columns::LabelFirst => (1, 0),
            Columns::LabelLast => (0, fields - 1),
        };
        let pair = (fields == 3).then_some(text + 1);
        Ok(Layout { text, pair, label, fields, header: None })
    }

    /// The example of a line, or what is wrong with it.
    pub(super) fn split(&self, line: &str) -> Result<LabelledText, String> {
        let fields: Vec<&str> = line.split('\t').take(self.fields + 1).collect();
        if fields.len() != self.fields {
            let found = line.split('\t').count();
            return Err(format!(
                "has {found} tab-separated fields, and the first line has {}: remove tabs from texts",
                self.fields
            ));
        }
        Ok(LabelledText {
            text: fields[self.text].to_owned(),
            pair: self.pair.map(|pair| fields[pair].to_owned()),
            label: fields[self.label].trim().to_owned(),
        })
    }
}

/// The layout that the first line says, if it is a header.
fn header(line: &str, number: usize) -> Result<Option<Layout>, String> {
    let fields: Vec<String> = line.split('\t').map(|field| field.trim().to_lowercase()).collect();
    let columns = |names: &[&str]| {
        let columns = (0..fields.len()).filter(|&column| names.contains(&&*fields[column]));
        columns.take(2).collect::<Vec<usize>>()
    };
    let (texts, pairs, labels) = (columns(&TEXT), columns(&PAIR), columns(&LABEL));
    let (Some(&text), Some(&label)) = (texts.first(), labels.first()) else { return Ok(None) };
    for several in [&texts, &pairs, &labels] {
        if let [one, other] = several[..] {
            return Err(format!(
                "names both `{}` and `{}`: name only the columns that are meant `text`, `text_pair` and `label`",
                shown(&fields[one]),
                shown(&fields[other])
            ));
        }
    }
    let pair = pairs.first().copied();
    Ok(Some(Layout { text, pair, label, fields: fields.len(), header: Some(number) }))
}

/// What tells a column of labels from one of texts.
#[derive(Default)]
struct Column {
    known: u64,
    different: HashSet<u64>,
    bytes: u64,
}

impl Column {
    /// Hashes are enough to count; of more than these, the column has texts.
    const MOST: usize = 1 << 20;

    fn add(&mut self, field: &str, labels: Option<&Labels>) {
        self.known += u64::from(labels.is_some_and(|labels| labels.number(field.trim()).is_some()));
        self.bytes += field.len() as u64;
        if self.different.len() < Column::MOST {
            let mut hasher = DefaultHasher::new();
            field.trim().hash(&mut hasher);
            self.different.insert(hasher.finish());
        }
    }

    fn is_rather_the_label_than(&self, other: &Column) -> bool {
        let key = |column: &Column| (std::cmp::Reverse(column.known), column.different.len(), column.bytes);
        key(self) < key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lines: &[&str], known: Option<&Labels>) -> Columns {
        let (mut first, mut last) = (Column::default(), Column::default());
        for line in lines {
            let (one, other) = line.split_once('\t').unwrap();
            first.add(one, known);
            last.add(other, known);
        }
        if first.is_rather_the_label_than(&last) { Columns::LabelFirst } else { Columns::LabelLast }
    }

    #[test]
    fn the_column_with_fewer_values_has_the_labels() {
        assert_eq!(labels(&["0\ta b", "1\tc", "0\td"], None), Columns::LabelFirst);
        assert_eq!(labels(&["a b\tgood", "c\tbad", "d\tgood"], None), Columns::LabelLast);
        assert_eq!(labels(&["0\tgood film"], None), Columns::LabelFirst);
        assert_eq!(labels(&["good film\t0"], None), Columns::LabelLast);
        assert_eq!(labels(&["a\tb"], None), Columns::LabelLast);
    }

    #[test]
    fn labels_that_are_known_say_more_than_their_number() {
        let known = Labels::sorted(["positive".to_owned(), "negative".to_owned()]);
        assert_eq!(labels(&["positive\tok", "negative\tok"], Some(&known)), Columns::LabelFirst);
        assert_eq!(labels(&["ok\tpositive", "ok\tnegative"], Some(&known)), Columns::LabelLast);
    }

    #[test]
    fn a_header_says_which_column_is_which() {
        let layout = header("index\tSentence1\tsentence2\tlabel", 1).unwrap().unwrap();
        let example = layout.split("7\ta b\tc\t1 ").unwrap();
        let expected =
            LabelledText { text: "a b".to_owned(), pair: Some("c".to_owned()), label: "1".to_owned() };
        assert_eq!(example, expected);
        assert_eq!(header("good\tfilm", 1).unwrap(), None);
        assert!(
            header("question\tsentence\tlabel", 1).unwrap_err().contains("both `question` and `sentence`")
        );
    }

    #[test]
    fn a_line_with_other_fields_is_refused() {
        let layout = Layout::without_header(Columns::LabelFirst, 2).unwrap();
        assert!(layout.split("1\ta\tb").unwrap_err().contains("has 3 tab-separated fields"));
        assert!(layout.split("1").unwrap_err().contains("has 1 tab-separated fields"));
        assert!(Layout::without_header(Columns::LabelLast, 1).unwrap_err().contains("has 1 tab"));
    }
}
