//! What the tests of the corpus share.

pub mod runs;

use attentive_train::corpus::{
    Batches, Batching, Corpus, CorpusFiles, Encode, Encoded, Error, ExampleBatch, Limits,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that is gone after the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("attentive-train-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Where compressed files are unpacked to; it is not there before.
    pub fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    pub fn open(&self, files: &CorpusFiles) -> Result<Corpus, Error> {
        Corpus::open(files, &self.cache())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder of the shared data, or none with a word about it.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("ATTENTIVE_SHARED").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("skipped: there is no {}; ATTENTIVE_SHARED names the folder that has it", path.display());
        return None;
    }
    Some(path)
}

pub fn pair_files(source: &Path, target: &Path) -> CorpusFiles {
    CorpusFiles::Pairs { sources: vec![source.to_owned()], targets: vec![target.to_owned()] }
}

/// Pair `i`: its number is in both texts, and their lengths go up and down.
pub fn pair(i: usize) -> (String, String) {
    let words = |n: usize, word: &str| vec![word; n].join(" ");
    (format!("{i} {}", words(i * 7 % 13, "ä")), format!("{i} {}", words(i * 5 % 11, "b")))
}

/// Files with the pairs `0..pairs`.
pub fn write_pairs(scratch: &Scratch, pairs: usize) -> CorpusFiles {
    let side =
        |pick: fn((String, String)) -> String| (0..pairs).map(|i| pick(pair(i)) + "\n").collect::<String>();
    let source = scratch.write("pairs.en", side(|(source, _)| source));
    pair_files(&source, &scratch.write("pairs.de", side(|(_, target)| target)))
}

/// A token for each word, 10 more than its number where it is one, and 0 at the end.
pub fn encode(text: &str) -> Vec<u32> {
    let token = |word: &str| word.parse::<u32>().map_or(word.len() as u32, |number| number + 10);
    text.split_whitespace().map(token).chain([0]).collect()
}

pub fn encoder() -> Arc<dyn Encode> {
    Arc::new(|text: &str, _| -> Encoded { Ok(encode(text)) })
}

/// Small batches and windows, and nothing left out.
pub fn batching(seed: u64, window: usize) -> Batching {
    Batching { seed, tokens: 60, examples: None, window, limits: Limits { longest: 1000, ratio: 1000.0 } }
}

pub fn batches(corpus: &Arc<Corpus>, batching: Batching) -> Batches {
    corpus.batches(batching, encoder(), encoder()).unwrap()
}

pub fn take(batches: &mut Batches, count: usize) -> Vec<ExampleBatch> {
    batches.take(count).map(Result::unwrap).collect()
}

/// All batches of the epoch that begins.
pub fn epoch(batches: &mut Batches) -> Vec<ExampleBatch> {
    let epoch = batches.next_position().epoch;
    let mut all = Vec::new();
    while batches.next_position().epoch == epoch {
        all.extend(take(batches, 1));
    }
    all
}
