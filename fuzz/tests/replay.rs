//! Reads the seeds of every target, and some mutations of them.

use attentive_fuzz::Target;
use attentive_fuzz::mutate::Draw;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn replay(name: &str) {
    let target = Target::named(name).unwrap();
    let mut reader = (target.start)();
    let mut read = |input: &[u8], what: &str| {
        catch_unwind(AssertUnwindSafe(|| reader(input))).unwrap_or_else(|_| {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-broken"));
            std::fs::write(&path, input).unwrap();
            panic!(
                "{what} breaks the target {name}; the input is in {}: keep it in fuzz/seeds/{name}",
                path.display()
            );
        })
    };
    let paths = target.seeds();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut read_seed = |(seed, path): (&Vec<u8>, &PathBuf)| read(seed, &path.display().to_string());
    // Else mutations would only show how the first byte is refused.
    assert!(seeds.iter().zip(&paths).filter(|&seed| read_seed(seed)).count() > 0, "no seed is accepted");
    for round in 0..target.mutations {
        let mut draw = Draw::new(round);
        let [seed, other] = [round, round / 3 + 1].map(|place| &seeds[place as usize % seeds.len()]);
        read(&draw.mutate(seed, other), &format!("mutation {round}"));
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let names: Vec<&str> = attentive_fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets! {
    safetensors zip pickle sentencepiece tokenizer_json vocab vocab_txt config bert_config index generation_config
    train_toml state metrics corpus idx http html picture preprocessor vit_config boxes hub
}
