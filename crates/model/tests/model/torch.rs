//! Files of PyTorch: everything that a tensor in them may be is read, and whatever else is in them is told in
//! one sentence, without a panic and without running anything.

use crate::common::{Scratch, backends, golden};
use attentive_model::Error;
use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::transformer::Transformer;
use std::fs;
use std::path::Path;

fn original() -> Vec<u8> {
    fs::read(golden("torch.bin")).unwrap()
}

/// Opens these bytes as a file of PyTorch.
fn open(scratch: &Scratch, bytes: &[u8]) -> Result<Checkpoint, Error> {
    let path = scratch.path().join("file.bin");
    fs::write(&path, bytes).unwrap();
    Checkpoint::open(path)
}

/// What is wrong with these bytes.
fn problem(test: &str, bytes: &[u8]) -> String {
    let scratch = Scratch::new(test);
    match open(&scratch, bytes) {
        Err(Error::Format { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// The original with the only place of `from` replaced.
fn with(from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = original();
    let places: Vec<_> =
        bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from).map(|(i, _)| i).collect();
    assert_eq!(places.len(), 1, "{}", from.escape_ascii());
    bytes[places[0]..places[0] + to.len()].copy_from_slice(to);
    with_checksum(bytes)
}

/// The archive with the right checksum of its pickle.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut records = bytes.windows(4).enumerate().filter(|(_, w)| *w == b"PK\x01\x02").map(|(at, _)| at);
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let is_pickle = |at: &usize| bytes[at + 46..][..number(at + 28, 2)].ends_with(b"data.pkl");
    let record = records.find(is_pickle).expect("a pickle");
    let (length, header) = (number(record + 24, 4), number(record + 42, 4));
    let start = header + 30 + number(header + 26, 2) + number(header + 28, 2);
    let sum = crc32fast::hash(&bytes[start..start + length]);
    bytes[record + 16..record + 20].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The original without what it refuses to read.
fn readable() -> Vec<u8> {
    // The tensor that repeats its only number becomes that number: `(5,)` to `(1,)` behind its storage.
    with(b"K\x00K\x05\x85", b"K\x00K\x01\x85")
}

#[test]
fn every_kind_of_tensor_is_read() {
    let scratch = Scratch::new("kinds");
    let checkpoint = open(&scratch, &readable()).unwrap();
    let tensor = |name: &str| {
        let (numbers, shape) = checkpoint.get(name).unwrap().unwrap();
        (numbers, shape.to_string())
    };
    let counted: Vec<f32> = (0..12).map(|i| i as f32).collect();
    assert_eq!(tensor("rows"), (counted.clone(), "[3, 4]".to_owned()));
    assert_eq!(tensor("again"), tensor("rows"));
    let turned = vec![0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0];
    assert_eq!(tensor("turned"), (turned, "[4, 3]".to_owned()));
    assert_eq!(tensor("part"), (vec![5.0, 6.0, 9.0, 10.0], "[2, 2]".to_owned()));
    assert_eq!(tensor("parameter"), (vec![0.5, -0.5], "[2]".to_owned()));
    assert_eq!(tensor("scalar"), (vec![7.0], "[]".to_owned()));
    assert_eq!(tensor("none"), (vec![], "[0, 3]".to_owned()));
    let double = checkpoint.get("double").unwrap_err().to_string();
    assert!(double.contains("`double` has a number in row 0") && double.contains("not finite"), "{double}");
    assert_eq!(tensor("half"), (vec![0.25, -2.0], "[2]".to_owned()));
    assert_eq!(tensor("brain"), (vec![0.25, -3.0], "[2]".to_owned()));
    assert!(checkpoint.get("number").unwrap().is_none() && !checkpoint.has("number"));
    let long = checkpoint.get("long").unwrap_err().to_string();
    assert!(long.ends_with("file.bin: `long` has type I64, which is not supported"), "{long}");
}

#[test]
fn files_from_before_the_archive_have_the_same_tensors() {
    let (new, old) = (Scratch::new("archive"), Scratch::new("before"));
    let new = open(&new, &readable()).unwrap();
    let old = open(&old, &fs::read(golden("torch_before_zip.bin")).unwrap()).unwrap();
    for name in ["rows", "again", "turned", "part", "parameter", "scalar", "none", "half", "brain"] {
        let [new, old] = [&new, &old].map(|file| file.get(name).unwrap().unwrap());
        assert_eq!((new.0, new.1.to_string()), (old.0, old.1.to_string()), "{name}");
    }
}

#[test]
fn what_a_file_from_before_the_archive_lacks_is_told() {
    let whole = fs::read(golden("torch_before_zip.bin")).unwrap();
    assert!(problem("cut-before", &whole[..whole.len() - 1]).contains("not complete"));
    assert!(problem("begin", &whole[..25]).contains("its pickle is "));
    let mut bytes = whole.clone();
    let object = b"ctorch\nHalfStorage";
    let place = bytes.windows(object.len()).position(|w| w == object).unwrap();
    bytes[place..place + object.len()].copy_from_slice(b"cposix\nsystem_call");
    assert!(problem("object-before", &bytes).contains("`posix.system_call`"));
}

#[test]
fn python_objects_that_no_state_dict_needs_are_refused_by_name_and_not_run() {
    let bytes = with(b"torch._utils\n_rebuild_parameter\n", b"subprocesses\ncheck_output_very_\n");
    assert_eq!(
        problem("object", &bytes),
        "its pickle asks for the Python object `subprocesses.check_output_very_`, which no state dict needs; nothing was run"
    );
    // A known object where another one is called for.
    let bytes = with(b"torch._utils\n_rebuild_parameter\n", b"torch._utils\n_rebuild_tensor_v2\n");
    assert!(problem("arguments", &bytes).starts_with("its pickle is damaged at byte "));
}

#[test]
fn what_is_not_read_is_named() {
    assert_eq!(
        problem("spread", &original()),
        "`spread` has shape [5], which does not fit into its storage of 1 numbers"
    );
    let mut compressed = readable();
    let record = compressed.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    compressed[record + 10] = 8;
    assert!(problem("compressed", &compressed).contains("is compressed or encrypted"));
    assert!(problem("big", &with(b"little", b"bigger")).contains("little-endian"));
    assert!(problem("text", b"no archive at all").contains("its end is missing"));
    assert!(problem("empty", b"").contains("its end is missing"));
}

#[test]
fn a_damaged_pickle_is_told() {
    let mut bytes = readable();
    let name = bytes.windows(4).position(|w| w == b"rows").unwrap();
    bytes[name] = b'b';
    let problem = problem("pickle", &bytes);
    assert!(problem.starts_with("its data.pkl is damaged: the checksum is "), "{problem}");
}

#[test]
fn damaged_numbers_are_told_by_their_tensor() {
    let mut bytes = readable();
    let counted: Vec<u8> = (0..12).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let at = bytes.windows(counted.len()).position(|w| w == counted).unwrap();
    bytes[at + 9] ^= 1;
    let problem = problem("sum", &bytes);
    assert!(problem.starts_with("the numbers of `rows` are damaged: the checksum is "), "{problem}");
}

/// Every bit is turned in a unit test of the module, which needs no files.
#[test]
fn a_file_that_was_cut_is_refused() {
    let (scratch, original) = (Scratch::new("cut"), readable());
    for length in (0..original.len()).step_by(97) {
        let error = open(&scratch, &original[..length]).unwrap_err().to_string();
        assert!(error.contains("file.bin: not a complete PyTorch file"), "{length}: {error}");
    }
}

/// The sentence of loading the golden folder `tied`, with one thing changed, without its path.
fn sentence(test: &str, change: impl FnOnce(&Path)) -> String {
    let scratch = Scratch::new(test);
    for file in ["config.json", "pytorch_model.bin"] {
        fs::copy(golden("marian/tied").join(file), scratch.path().join(file)).unwrap();
    }
    change(scratch.path());
    let backend = backends().next().expect("an instruction set");
    let error = Transformer::load(&backend, scratch.path()).unwrap_err().to_string();
    error.strip_prefix(&format!("{}/", scratch.path().display())).unwrap_or(&error).to_owned()
}

fn config(folder: &Path, from: &str, to: &str) {
    let path = folder.join("config.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_file_that_does_not_belong_to_its_configuration_is_told_with_both_shapes() {
    assert_eq!(
        sentence("width", |folder| config(folder, "\"decoder_ffn_dim\": 20", "\"decoder_ffn_dim\": 24")),
        "pytorch_model.bin: `model.decoder.layers.0.fc1.weight` has shape [20, 12], but the model needs [24, 12]"
    );
    assert_eq!(
        sentence("both", |folder| config(folder, "_ffn_dim\": 20", "_ffn_dim\": 24")),
        "pytorch_model.bin: `model.encoder.layers.0.fc1.weight` has shape [20, 12], but the model needs [24, 12]"
    );
    assert_eq!(
        sentence("layers", |folder| config(folder, "\"encoder_layers\": 1", "\"encoder_layers\": 2")),
        "pytorch_model.bin: the tensor `model.encoder.layers.1.self_attn.q_proj.weight` is missing"
    );
    assert_eq!(
        sentence("positions", |folder| config(folder, "_embeddings\": 16", "_embeddings\": 18")),
        "pytorch_model.bin: `model.encoder.embed_positions.weight` has shape [16, 12], but the model needs [18, 12]"
    );
}

#[test]
fn tables_that_contradict_the_configuration_are_named() {
    let contradiction = sentence("tables", |folder| {
        fs::copy(golden("marian/untied/pytorch_model.bin"), folder.join("pytorch_model.bin")).unwrap();
    });
    assert_eq!(
        contradiction,
        "pytorch_model.bin: `model.decoder.embed_tokens.weight` differs from `model.encoder.embed_tokens.weight`, but \
         config.json ties them: set tie_word_embeddings or share_encoder_decoder_embeddings to false there"
    );
}
