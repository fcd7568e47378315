//! The corpus: all pairs by their numbers.

use super::fields::LineFormat;
use super::files::is_json;
use super::held_out::Selection;
use super::text_file::TextFile;
use super::unpack::Cache;
use super::{CorpusFiles, Error};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pairs of source and target, on the disk.
#[derive(Debug, Clone)]
pub struct Corpus {
    parts: Arc<[Part]>,
    /// The number of the first pair of each part, and of all pairs of the files.
    begins: Vec<u32>,
    /// The pairs that belong to this corpus.
    selection: Selection,
}

/// How large a corpus is, and what is in it, by which it is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusSize {
    /// Pairs.
    pub pairs: u64,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
    /// A checksum of the contents; old checkpoints have none.
    #[serde(default)]
    pub checksum: Option<u32>,
}

impl CorpusSize {
    /// Whether both belong to one corpus, as far as sizes and checksums show.
    pub(super) fn fits(&self, other: &CorpusSize) -> bool {
        let same = self.checksum.zip(other.checksum).is_none_or(|(own, others)| own == others);
        (self.pairs, self.bytes) == (other.pairs, other.bytes) && same
    }
}

/// Files that hold pairs together.
#[derive(Debug)]
enum Part {
    Pair { source: TextFile, target: TextFile },
    Lines { file: TextFile, format: LineFormat },
}

impl Corpus {
    /// Reads all files once, to check them and to see where their lines begin. Compressed files are unpacked
    /// to the folder `cache`, which is made when it is needed; if the corpus is refused, nothing stays there.
    pub fn open(files: &CorpusFiles, cache: &Path) -> Result<Corpus, Error> {
        files.check()?;
        let mut cache = Cache::new(cache);
        let corpus = Corpus::index(files, &mut cache);
        if corpus.is_err() {
            cache.undo();
        }
        corpus
    }

    fn index(files: &CorpusFiles, cache: &mut Cache) -> Result<Corpus, Error> {
        let parts = match files {
            CorpusFiles::Pairs { sources, targets } => {
                let part = |(source, target): (&PathBuf, &PathBuf)| Part::pair(source, target, cache);
                sources.iter().zip(targets).map(part).collect::<Result<Vec<_>, _>>()?
            }
            CorpusFiles::Texts(files) => {
                let format = |path: &Path| {
                    if is_json(path) { LineFormat::JsonText } else { LineFormat::Text }
                };
                let parts =
                    files.iter().map(|file| Part::lines(std::slice::from_ref(file), &format(file), cache));
                parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
            }
            CorpusFiles::Tsv(files) => Part::lines(files, &LineFormat::Tsv, cache)?,
            CorpusFiles::Jsonl { files, fields } => {
                Part::lines(files, &LineFormat::Jsonl(fields.clone()), cache)?
            }
        };
        let mut begins = vec![0];
        let mut pairs = 0;
        for part in &parts {
            pairs += part.len() as u64;
            begins.push(u32::try_from(pairs).map_err(|_| Error::TooLarge { pairs })?);
        }
        if pairs == 0 {
            return Err(Error::Empty { paths: files.paths().map(Path::to_owned).collect() });
        }
        Ok(Corpus { parts: parts.into(), begins, selection: Selection::All })
    }

    /// The number of pairs; there is at least one.
    #[allow(clippy::len_without_is_empty, reason = "an empty corpus cannot be opened")]
    pub fn len(&self) -> usize {
        self.selection.len(self.begins[self.parts.len()] as usize)
    }

    /// How large it is.
    pub fn size(&self) -> CorpusSize {
        let mut checksum = crc32fast::Hasher::new();
        let sums = self.parts.iter().flat_map(Part::checksums);
        sums.for_each(|sum| checksum.update(&sum.to_le_bytes()));
        CorpusSize {
            pairs: self.len() as u64,
            bytes: self.parts.iter().map(Part::bytes).sum(),
            checksum: Some(checksum.finalize()),
        }
    }

    /// Reads some pairs, given by their numbers in ascending order, and shows them in this order with the
    /// place that each has in `numbers`. What `show` returns ends the reading if it is `false`.
    ///
    /// # Panics
    /// If a pair does not exist.
    pub fn read(
        &self,
        numbers: &[u32],
        mut show: impl FnMut(usize, &str, &str) -> bool,
    ) -> Result<(), Error> {
        let (asked, numbers) = (numbers, self.numbers(numbers));
        let mut done = 0;
        for (part, begins) in self.parts.iter().zip(self.begins.windows(2)) {
            let here = numbers[done..].partition_point(|&number| number < begins[1]);
            let lines: Vec<usize> =
                numbers[done..done + here].iter().map(|&number| (number - begins[0]) as usize).collect();
            let goes_on = part.read(&lines, |i, source, target| show(done + i, source, target))?;
            if !goes_on {
                return Ok(());
            }
            done += here;
        }
        assert_eq!(done, asked.len(), "corpus: pair {} of {}", asked[done], self.len());
        Ok(())
    }
}

impl Corpus {
    /// Some pairs of the same files.
    pub(super) fn select(&self, selection: Selection) -> Corpus {
        Corpus { selection, ..self.clone() }
    }

    /// The numbers that pairs have in the files.
    fn numbers<'a>(&self, pairs: &'a [u32]) -> Cow<'a, [u32]> {
        match &self.selection {
            Selection::All => pairs.into(),
            selection => pairs.iter().map(|&pair| selection.number(pair)).collect(),
        }
    }

    /// The file and the line, counted from one, of a text that has no other side.
    pub(crate) fn place_of_line(&self, number: u32) -> (&Path, usize) {
        self.place(number, Side::Source)
    }

    /// The file and the line, counted from one, of a side of a pair.
    pub(super) fn place(&self, number: u32, side: Side) -> (&Path, usize) {
        let number = self.selection.number(number);
        let part = self.begins.partition_point(|&begin| begin <= number) - 1;
        let file = match (&self.parts[part], side) {
            (Part::Pair { source: file, .. }, Side::Source)
            | (Part::Pair { target: file, .. }, Side::Target) => file,
            (Part::Lines { file, .. }, _) => file,
        };
        (file.named(), (number - self.begins[part]) as usize + 1)
    }
}

/// Of a pair.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Source,
    Target,
}

impl Part {
    fn pair(source: &Path, target: &Path, cache: &mut Cache) -> Result<Part, Error> {
        let mut index = |path: &Path| TextFile::index(path, cache.unpacked(path)?, |_| Ok(()));
        let (source, target) = (index(source)?, index(target)?);
        if source.lines() != target.lines() {
            return Err(Error::LineCounts {
                source_path: source.named().to_owned(),
                source_lines: source.lines(),
                target_path: target.named().to_owned(),
                target_lines: target.lines(),
            });
        }
        Ok(Part::Pair { source, target })
    }

    fn lines(files: &[PathBuf], format: &LineFormat, cache: &mut Cache) -> Result<Vec<Part>, Error> {
        let part = |path: &PathBuf| {
            let check = |line: &str| format.split(line).map(|_| ());
            let file = TextFile::index(path, cache.unpacked(path)?, check)?;
            Ok(Part::Lines { file, format: format.clone() })
        };
        files.iter().map(part).collect()
    }

    fn len(&self) -> usize {
        match self {
            Part::Pair { source: file, .. } | Part::Lines { file, .. } => file.lines(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Part::Pair { source, target } => source.bytes() + target.bytes(),
            Part::Lines { file, .. } => file.bytes(),
        }
    }

    /// Of each of its files.
    fn checksums(&self) -> Vec<u32> {
        match self {
            Part::Pair { source, target } => vec![source.checksum(), target.checksum()],
            Part::Lines { file, .. } => vec![file.checksum()],
        }
    }

    /// Shows the pairs of some lines, and says whether all were wanted.
    fn read(&self, lines: &[usize], mut show: impl FnMut(usize, &str, &str) -> bool) -> Result<bool, Error> {
        if lines.is_empty() {
            return Ok(true);
        }
        match self {
            Part::Pair { source, target } => {
                let (sources, targets) = (source.read(lines)?, target.read(lines)?);
                let mut pairs = sources.iter().zip(targets.iter()).enumerate();
                Ok(pairs.all(|(i, (source, target))| show(i, source, target)))
            }
            Part::Lines { file, format } => {
                for (i, line) in file.read(lines)?.iter().enumerate() {
                    // Every line was a pair when the file was opened.
                    let (source, target): (Cow<str>, Cow<str>) =
                        format.split(line).map_err(|_| Error::Changed { path: file.named().to_owned() })?;
                    if !show(i, &source, &target) {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

impl fmt::Display for CorpusSize {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} pairs in {} bytes", self.pairs, self.bytes)?;
        self.checksum.map_or(Ok(()), |checksum| write!(f, " (CRC-32 {checksum:08x})"))
    }
}
