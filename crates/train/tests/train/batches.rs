//! Batches: every pair once in an epoch, of like length, in an order that only the seed decides, from any
//! position on.

use crate::common::{
    Scratch, batches, batching, encode, encoder, epoch, pair, pair_files, take, write_pairs,
};
use attentive_model::families::transformer;
use attentive_ranks::{ThreadRank, threads};
use attentive_tensor::{CpuBackend, Random};
use attentive_train::corpus::{
    Batching, Corpus, CorpusFiles, Encoded, Error, ExampleBatch, LeftOut, Limits, Position,
};
use attentive_train::tasks::Ranks;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn corpus(scratch: &Scratch, pairs: usize) -> Arc<Corpus> {
    Arc::new(scratch.open(&write_pairs(scratch, pairs)).unwrap())
}

/// The numbers of the pairs in some batches, which must be whole.
fn numbers(batches: &[ExampleBatch]) -> Vec<usize> {
    let tokens = |text: &str| encode(text).into_iter().map(|id| id as i32).collect::<Vec<_>>();
    let number = |(source, target): (&[i32], &[i32])| {
        let number = source[0] as usize - 10;
        let (expected_source, expected_target) = pair(number);
        assert_eq!((source, target), (&tokens(&expected_source)[..], &tokens(&expected_target)[..]));
        number
    };
    batches.iter().flat_map(|batch| batch.pairs()).map(number).collect()
}

#[test]
fn an_epoch_has_every_pair_once_whatever_the_window() {
    let scratch = Scratch::new("once");
    let corpus = corpus(&scratch, 300);
    for window in [1, 7, 100, 299, 300, 10_000] {
        let mut batches = batches(&corpus, batching(1, window));
        for _ in 0..2 {
            let epoch = numbers(&epoch(&mut batches));
            assert_eq!(epoch.len(), 300);
            assert!(epoch.into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..300), "{window}");
        }
    }
}

#[test]
fn batches_are_full_but_never_over_and_hold_like_lengths() {
    let scratch = Scratch::new("full");
    let corpus = corpus(&scratch, 1000);
    let all = epoch(&mut batches(&corpus, batching(1, 1000)));
    let tokens = all.iter().map(ExampleBatch::tokens);
    assert!(tokens.clone().all(|tokens| tokens <= 60));
    // The longest pair has 26 tokens: more than 26 would be left free only at the end of the window.
    assert!(tokens.filter(|&tokens| tokens < 60 - 26).count() <= 1);
    for batch in &all {
        let lengths = || batch.examples.iter().map(|example| example.target.len());
        assert!(lengths().max().unwrap() - lengths().min().unwrap() <= 1, "{batch:?}");
    }
    // Short and long ones take turns.
    let rising = all.windows(2).filter(|two| two[0].examples.len() > two[1].examples.len());
    assert!(rising.count() > all.len() / 4);
}

#[test]
fn the_seed_decides_and_every_epoch_has_its_own_order() {
    let scratch = Scratch::new("seed");
    let corpus = corpus(&scratch, 200);
    let two_epochs = |seed| {
        let mut batches = batches(&corpus, batching(seed, 64));
        [epoch(&mut batches), epoch(&mut batches)]
    };
    let [first, second] = two_epochs(1);
    assert_ne!(numbers(&first), numbers(&second));
    assert_ne!(numbers(&first), numbers(&two_epochs(2)[0]));
    assert_eq!([first, second], two_epochs(1));
}

#[test]
fn a_saved_position_goes_on_with_the_same_batches_wherever_it_was_saved() {
    let scratch = Scratch::new("position");
    let corpus = corpus(&scratch, 250);
    // Of windows as small as the last some have no batch at all.
    for window in [1000, 60, 2] {
        let batching = Batching { limits: Limits { longest: 12, ratio: 4.0 }, ..batching(3, window) };
        let mut uninterrupted = batches(&corpus, batching);
        let (mut saved, mut all, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        while uninterrupted.next_position().epoch < 3 {
            saved.push(serde_json::to_string(uninterrupted.next_position()).unwrap());
            left_out.push(uninterrupted.left_out());
            all.extend(take(&mut uninterrupted, 1));
        }
        assert!(all.len() > 60, "{}", all.len());
        for (at, saved) in saved.iter().enumerate() {
            let position: Position = serde_json::from_str(saved).unwrap();
            let mut resumed = corpus.batches_from(&position, batching, encoder(), encoder()).unwrap();
            assert_eq!(resumed.left_out(), left_out[at]);
            assert_eq!(take(&mut resumed, all.len() - at), all[at..], "from {saved}");
            assert_eq!(resumed.next_position(), uninterrupted.next_position());
            assert_eq!(resumed.left_out(), uninterrupted.left_out());
        }
    }
}

#[test]
fn ranks_tokenize_a_part_each_and_have_the_batches_of_one() {
    let scratch = Scratch::new("among");
    let corpus = corpus(&scratch, 301);
    let batching = Batching { limits: Limits { longest: 12, ratio: 4.0 }, ..batching(3, 100) };
    let mut alone = batches(&corpus, batching);
    take(&mut alone, 7);
    let position = alone.next_position().clone();
    let expected = take(&mut alone, 120);
    let pairs = numbers(&expected).len();
    let learn = |group: ThreadRank| {
        let encoded = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&encoded);
        let source = Arc::new(move |text: &str, _| -> Encoded {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(encode(text))
        });
        let resumed = corpus.batches_from(&position, batching, source, encoder()).unwrap();
        let mut batches = resumed.among(Ranks::of(Some(Rc::new(group)))).unwrap();
        encoded.store(0, Ordering::Relaxed);
        assert_eq!(take(&mut batches, expected.len()), expected);
        // One rank alone tokenizes more than the pairs that are kept.
        assert!(encoded.load(Ordering::Relaxed) < pairs * 3 / 4, "{encoded:?} of {pairs}");
    };
    std::thread::scope(|scope| {
        let learn = &learn;
        threads(3).into_iter().for_each(|group| drop(scope.spawn(move || learn(group))));
    });
}

#[test]
fn epochs_rise_with_every_batch_and_are_whole_at_their_end() {
    let scratch = Scratch::new("epochs");
    let corpus = corpus(&scratch, 250);
    for window in [1000, 60] {
        let mut batches = batches(&corpus, batching(3, window));
        assert_eq!(batches.epochs(), 0.0);
        for end in [1.0, 2.0] {
            let mut last = batches.epochs();
            while batches.next_position().epoch < end as u64 {
                take(&mut batches, 1);
                assert!(batches.epochs() > last && batches.epochs() <= end, "{last} {}", batches.epochs());
                last = batches.epochs();
            }
            assert_eq!(batches.epochs(), end);
        }
    }
}

#[test]
fn a_position_of_another_corpus_or_of_other_batches_is_refused() {
    let scratch = Scratch::new("other");
    let corpus = corpus(&scratch, 50);
    let batching = batching(1, 20);
    let position = batches(&corpus, batching).next_position().clone();
    let refused = |position: &Position, batching| {
        let resumed = corpus.batches_from(position, batching, encoder(), encoder());
        resumed.and_then(|mut batches| batches.next().unwrap()).unwrap_err().to_string()
    };
    let mut other = position.clone();
    other.corpus.pairs = 51;
    let error = refused(&other, batching);
    assert!(
        error.contains("a corpus with 51 pairs") && error.contains("this corpus has 50 pairs"),
        "{error}"
    );
    // As many bytes, but others.
    let mut other = position.clone();
    other.corpus.checksum = other.corpus.checksum.map(|checksum| checksum ^ 1);
    let error = refused(&other, batching);
    assert!(error.contains("CRC-32") && error.contains("use the same files"), "{error}");
    // Old checkpoints have no checksum.
    other.corpus.checksum = None;
    assert!(corpus.batches_from(&other, batching, encoder(), encoder()).is_ok());
    let error = refused(&position, Batching { seed: 2, ..batching });
    assert!(error.contains("seed: 1") && error.contains("seed: 2"), "{error}");
    for (window, batch) in [(3, 0), (0, 1000)] {
        let error = refused(&Position { window, batch, ..position.clone() }, batching);
        assert!(error.contains(&format!("batch {batch} in window {window}, does not exist")), "{error}");
    }
}

#[test]
fn pairs_that_are_left_out_are_counted_once_the_first_epoch_is_over() {
    let scratch = Scratch::new("left-out");
    let source = scratch.write("source", "a b c\n\n   \na\na b c d e f\na b\n1 2 3 4 5 6 7 8 9\n");
    let target = scratch.write("target", "a b c\na\nb\n \na b c d e f\na b c d e\na b c d e f g h i\n");
    let corpus = Arc::new(scratch.open(&pair_files(&source, &target)).unwrap());
    let limits = Limits { longest: 7, ratio: 1.5 };
    let mut batches = batches(&corpus, Batching { tokens: 13, limits, ..batching(1, 7) });
    assert_eq!(batches.left_out(), None);
    let expected = LeftOut { empty: 3, too_long: 2, lopsided: 1 };
    for _ in 0..3 {
        assert_eq!(epoch(&mut batches).len(), 1);
        assert_eq!(batches.left_out(), Some(expected));
    }
}

#[test]
fn a_corpus_of_which_all_is_left_out_is_an_error_with_the_reasons() {
    let scratch = Scratch::new("all-left-out");
    let corpus = corpus(&scratch, 30);
    let limits = Limits { longest: 1, ratio: 9.0 };
    let mut batches = batches(&corpus, Batching { limits, ..batching(1, 7) });
    let error = batches.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("0 empty, 30 too long, 0 above the length ratio"), "{error}");
    assert!(batches.next().is_none());
}

#[test]
fn batches_that_are_dropped_leave_no_thread_behind() {
    let scratch = Scratch::new("dropped");
    let corpus = corpus(&scratch, 100);
    for taken in [0, 1, 5] {
        let encoder = encoder();
        let mut batches = corpus.batches(batching(1, 10), encoder.clone(), encoder.clone()).unwrap();
        take(&mut batches, taken);
        drop(batches);
        assert_eq!((Arc::strong_count(&encoder), Arc::strong_count(&corpus)), (1, 1));
    }
}

#[test]
fn a_file_that_changes_under_way_is_an_error_and_the_end() {
    let scratch = Scratch::new("changed");
    let corpus = corpus(&scratch, 100);
    let mut batches = batches(&corpus, batching(1, 10));
    take(&mut batches, 1);
    scratch.write("pairs.de", "something else\n");
    let error = batches.find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    assert!(error.to_string().contains("pairs.de has changed"), "{error}");
    assert!(batches.next().is_none());
}

#[test]
#[should_panic(expected = "no token for pair 33")]
fn a_panic_of_the_tokenizer_is_passed_on() {
    let scratch = Scratch::new("panic");
    let corpus = corpus(&scratch, 100);
    let fails = |text: &str, _| -> Encoded {
        assert!(!text.starts_with("33 "), "no token for pair 33");
        Ok(encode(text))
    };
    let batches = corpus.batches(batching(1, 10), Arc::new(fails), encoder()).unwrap();
    batches.take(1000).for_each(drop);
}

#[test]
fn a_text_that_cannot_be_encoded_is_named_by_file_and_line() {
    let scratch = Scratch::new("encoded");
    let corpus = corpus(&scratch, 100);
    let fails = |text: &str, _| -> Encoded {
        if text.contains("33") { Err("no token".into()) } else { Ok(encode(text)) }
    };
    let mut batches = corpus.batches(batching(1, 10), encoder(), Arc::new(fails)).unwrap();
    let error = batches.find_map(Result::err).unwrap().to_string();
    assert!(error.contains("pairs.de: line 34 cannot be encoded: no token"), "{error}");
}

#[test]
fn more_lines_than_are_read_in_one_go_are_all_there() {
    let scratch = Scratch::new("many");
    let corpus = corpus(&scratch, 120_000);
    assert!(corpus.size().bytes > 3_000_000, "{}", corpus.size());
    let batching = Batching { tokens: 4000, ..batching(1, 120_000) };
    let all = numbers(&epoch(&mut batches(&corpus, batching)));
    assert!(all.into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..120_000));
}

#[test]
fn a_batch_goes_into_the_model_as_it_is() {
    let scratch = Scratch::new("model");
    let corpus = corpus(&scratch, 40);
    let batch = &take(&mut batches(&corpus, batching(1, 40)), 1)[0];
    let backend = CpuBackend::from_env().unwrap().shared();
    let packed = transformer::Batch::new(&*backend, &batch.pairs(), 7);
    assert_eq!((packed.tokens(), packed.target_sequences.len()), (batch.tokens(), batch.examples.len()));
}

#[test]
fn corpora_of_several_files_are_one_corpus() {
    let scratch = Scratch::new("several");
    let corpus = corpus(&scratch, 100);
    let expected = epoch(&mut batches(&corpus, batching(1, 30)));
    let part = |name: &str, range: std::ops::Range<usize>, pick: fn((String, String)) -> String| {
        scratch.write(name, range.map(|i| pick(pair(i)) + "\n").collect::<String>())
    };
    // The second part is empty.
    let ranges = [0..33, 33..33, 33..99, 99..100];
    let side = |end: &str, pick: fn((String, String)) -> String| {
        ranges.iter().enumerate().map(|(i, range)| part(&format!("{i}.{end}"), range.clone(), pick)).collect()
    };
    let files = CorpusFiles::Pairs {
        sources: side("en", |(source, _)| source),
        targets: side("de", |(_, target)| target),
    };
    let several = Arc::new(scratch.open(&files).unwrap());
    assert_eq!(epoch(&mut batches(&several, batching(1, 30))), expected);
}

#[test]
fn each_text_of_each_epoch_has_chances_of_its_own_and_the_same_again_on_the_way_back() {
    let scratch = Scratch::new("chances");
    let corpus = corpus(&scratch, 30);
    let drawn = || Arc::new(|_: &str, random: Random| -> Encoded { Ok(vec![random.bits(0) >> 1, 0]) });
    let mut batches = corpus.batches(batching(1, 10), drawn(), drawn()).unwrap();
    let (first, second) = (epoch(&mut batches), epoch(&mut batches));
    let chances = |batch: &ExampleBatch| -> Vec<i32> {
        let tokens = batch.examples.iter().flat_map(|example| example.source.iter().chain(&example.target));
        tokens.copied().filter(|&token| token != 0).collect()
    };
    let mut all: Vec<i32> = first.iter().chain(&second).flat_map(chances).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * 2 * 30);

    let mut again = corpus.batches(batching(1, 10), drawn(), drawn()).unwrap();
    assert_eq!(epoch(&mut again), first);
    let position = again.next_position().clone();
    let mut resumed = corpus.batches_from(&position, batching(1, 10), drawn(), drawn()).unwrap();
    assert_eq!(epoch(&mut resumed), second);
}
