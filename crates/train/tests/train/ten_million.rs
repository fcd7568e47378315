//! Ten million pairs: `cargo test --release -p attentive-train --test train -- --ignored ten_million --nocapture`.

use crate::common::{Scratch, encoder, pair_files, take};
use attentive_train::corpus::{Batching, Corpus};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const PAIRS: usize = 10_000_000;

fn write_side(scratch: &Scratch, name: &str, words: &[&str]) -> PathBuf {
    let path = scratch.path(name);
    let mut out = BufWriter::new(File::create(&path).unwrap());
    for i in 0..PAIRS {
        write!(out, "{i}").unwrap();
        for j in 0..4 + i % 17 {
            write!(out, " {}", words[(i * 31 + j * 7) % words.len()]).unwrap();
        }
        writeln!(out).unwrap();
    }
    out.flush().unwrap();
    path
}

/// The most memory that this process has had, in MiB, where the system tells.
fn peak_mb() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? / 1024)
}

#[test]
#[ignore = "writes two gigabytes and takes a minute"]
fn ten_million_pairs_need_less_than_two_gigabytes() {
    let scratch = Scratch::new("ten-million");
    let source =
        write_side(&scratch, "source", &["the", "river", "carries", "boats", "towards", "a", "harbour"]);
    let target =
        write_side(&scratch, "target", &["der", "Fluss", "trägt", "Boote", "einem", "Hafen", "entgegen"]);
    let begin = Instant::now();
    let corpus = Arc::new(Corpus::open(&pair_files(&source, &target), &scratch.cache()).unwrap());
    let opened = begin.elapsed();
    let mut batches = corpus.batches(Batching::default(), encoder(), encoder()).unwrap();
    take(&mut batches, 1);
    let first = begin.elapsed();
    let mut taken = 1;
    while batches.next_position().window < 10 {
        taken += take(&mut batches, 1).len();
    }
    let all = begin.elapsed();
    println!(
        "{}: opened after {opened:.1?}, first batch after {first:.1?}, \
         {taken} batches in ten windows after {all:.1?}",
        corpus.size()
    );
    let Some(peak) = peak_mb() else { return };
    println!("peak {peak} MiB");
    assert!(peak < 2048, "{peak} MiB");
}
