//! The metrics of a run as TensorBoard reads them: an event file beside `metrics.jsonl`.
//!
//! ```text
//! record  = length: u64   masked CRC-32C of it: u32   data   masked CRC-32C of it: u32      (all little-endian)
//! data    = Event { wall_time, step, "brain.Event:2" | Summary { tag and number, … } }      (protocol buffers)
//! mask(c) = rotate_right(c, 15) + 0xa282ead8
//! ```
//!
//! The formats are TensorFlow's: `record_writer.cc`, `event.proto`, `summary.proto`. Behind a first record that names the
//! version stands one record for each line of `metrics.jsonl`, so that a run that goes back to a checkpoint can cut both to the
//! same line.

use crate::Error;
use crate::metrics::Metric;
use prost::Message;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file in a run's folder: TensorBoard looks for `tfevents` in it.
pub const FILE_NAME: &str = "events.out.tfevents.attentive";

const VERSION: &str = "brain.Event:2";

/// The event file, open for more records.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Opens the event file of a folder, to be cut before anything is written.
    pub(crate) fn open(folder: &Path) -> Result<EventFile, Error> {
        let path = folder.join(FILE_NAME);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        Ok(EventFile { file: file.map_err(Error::file(&path))?, path })
    }

    /// Adds a record.
    pub(crate) fn write(&mut self, metric: &Metric) -> Result<(), Error> {
        let event =
            Event { step: Some(metric.step() as i64), summary: Some(summary(metric)), ..Event::now() };
        self.append(&event)
    }

    /// Lets all records reach the disk.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::file(&self.path))
    }

    /// Keeps the records of the first `metrics` metrics; what came after them will come again.
    pub(crate) fn cut(&mut self, metrics: usize) -> Result<(), Error> {
        let end = end_of_records(&self.file, 1 + metrics).map_err(Error::file(&self.path))?;
        self.file.set_len(end).map_err(Error::file(&self.path))?;
        self.file.seek(SeekFrom::Start(end)).map_err(Error::file(&self.path))?;
        if end == 0 {
            self.append(&Event { file_version: Some(VERSION.to_owned()), ..Event::now() })?;
        }
        Ok(())
    }

    fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.file.write_all(&record(&event.encode_to_vec())).map_err(Error::file(&self.path))
    }
}

/// The numbers of a metric by their names in TensorBoard.
fn summary(metric: &Metric) -> Summary {
    let number = |tag: &str, number: f64| Value {
        tag: Some(tag.to_owned()),
        simple_value: Some(number as f32),
        ..Value::default()
    };
    let values = match metric {
        Metric::Step(step) => vec![
            number("loss/train", step.loss),
            number("learning_rate", step.learning_rate),
            number("gradient_norm", step.gradient_norm),
            number("tokens_per_second", step.tokens_per_second),
            number("epoch", step.epoch),
        ],
        Metric::Validation(validation) => {
            let scores = validation.scores().map(|(name, score)| number(&name.to_lowercase(), score));
            std::iter::once(number("loss/validation", validation.loss)).chain(scores).collect()
        }
        Metric::Event(event) => vec![text("events", &event.message)],
        Metric::End(end) => vec![text("events", &end.reason), number("epoch", end.epoch)],
    };
    Summary { values }
}

/// A text for TensorBoard's page of texts.
fn text(tag: &str, text: &str) -> Value {
    const STRING: i32 = 7;
    let plugin = PluginData { plugin_name: Some("text".to_owned()) };
    Value {
        tag: Some(tag.to_owned()),
        simple_value: None,
        tensor: Some(TensorProto {
            dtype: Some(STRING),
            shape: Some(TensorShape { dimensions: vec![Dimension { size: Some(1) }] }),
            strings: vec![text.as_bytes().to_vec()],
        }),
        metadata: Some(Metadata { plugin_data: Some(plugin) }),
    }
}

/// Frames data.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

/// Where the first `count` records of a file end. A record that is not whole, and all behind it, do not count: the process was
/// killed while it was written.
fn end_of_records(file: &File, count: usize) -> std::io::Result<u64> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let (mut end, mut data) = (0, Vec::new());
    for _ in 0..count {
        let mut head = [0; 12];
        match reader.read_exact(&mut head) {
            Ok(()) if head[8..] == masked(&head[..8]) => {}
            // What cannot be read now is not cut off.
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
            _ => break,
        }
        let length = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
        data.clear();
        reader.by_ref().take(length.saturating_add(4)).read_to_end(&mut data)?;
        let Some((data, sum)) = data.split_last_chunk::<4>() else { break };
        if data.len() as u64 != length || *sum != masked(data) {
            break;
        }
        end += length + 16;
    }
    Ok(end)
}

/// A sum that does not mistake data with sums in it for itself.
fn masked(data: &[u8]) -> [u8; 4] {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// Castagnoli's CRC, bit by bit: records are small and few.
fn crc32c(data: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    !data.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, optional, tag = "1")]
    wall_time: Option<f64>,
    #[prost(int64, optional, tag = "2")]
    step: Option<i64>,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

impl Event {
    fn now() -> Event {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Event { wall_time: Some(since.as_secs_f64()), ..Event::default() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, optional, tag = "1")]
    tag: Option<String>,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<TensorProto>,
    #[prost(message, optional, tag = "9")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int32, optional, tag = "1")]
    dtype: Option<i32>,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShape>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    strings: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShape {
    #[prost(message, repeated, tag = "2")]
    dimensions: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    size: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(message, optional, tag = "1")]
    plugin_data: Option<PluginData>,
}

#[derive(Clone, PartialEq, Message)]
struct PluginData {
    #[prost(string, optional, tag = "1")]
    plugin_name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{EventMetric, ValidationMetric};

    /// A folder of its own for a test, gone when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("attentive-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn bytes(&self) -> Vec<u8> {
            std::fs::read(self.0.join(FILE_NAME)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn open(folder: &Folder, metrics: usize) -> EventFile {
        let mut events = EventFile::open(&folder.0).unwrap();
        events.cut(metrics).unwrap();
        events
    }

    fn message(step: u64) -> Metric {
        Metric::Event(EventMetric { step, message: format!("at {step}") })
    }

    /// The steps of all records, the first one's left out.
    fn steps(bytes: &[u8]) -> Vec<i64> {
        let (mut rest, mut steps) = (bytes, Vec::new());
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            let event = Event::decode(&rest[12..12 + length]).unwrap();
            steps.extend(event.step);
            rest = &rest[length + 16..];
        }
        steps
    }

    #[test]
    fn sums_are_castagnolis() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_first_record_names_the_version() {
        let folder = Folder::new("events-version");
        open(&folder, 0);
        let bytes = folder.bytes();
        assert_eq!(bytes[..8], 24u64.to_le_bytes());
        // What TensorFlow writes before an event of 24 bytes.
        assert_eq!(bytes[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
        assert_eq!(&bytes[12 + 9..12 + 24], b"\x1a\x0dbrain.Event:2");
    }

    #[test]
    fn a_record_has_the_numbers_of_its_metric() {
        let validation = ValidationMetric {
            step: 7,
            loss: 1.5,
            bleu: Some(30.0),
            chrf: None,
            rouge: None,
            accuracy: None,
            exact: None,
            f1: None,
            ap: None,
            ap50: None,
            seconds: 1.0,
            best: true,
        };
        let values = summary(&Metric::Validation(validation)).values;
        let values: Vec<_> =
            values.iter().map(|value| (value.tag.as_deref().unwrap(), value.simple_value)).collect();
        assert_eq!(values, [("loss/validation", Some(1.5)), ("bleu", Some(30.0))]);
    }

    #[test]
    fn records_after_a_checkpoint_are_cut_off_and_come_again() {
        let folder = Folder::new("events-cut");
        let mut events = open(&folder, 0);
        (1..=3).for_each(|step| events.write(&message(step)).unwrap());
        drop(events);
        let mut events = open(&folder, 2);
        events.write(&message(30)).unwrap();
        assert_eq!(steps(&folder.bytes()), [1, 2, 30]);
        events.cut(1).unwrap();
        events.write(&message(20)).unwrap();
        assert_eq!(steps(&folder.bytes()), [1, 20]);
    }

    #[test]
    fn half_a_record_and_a_broken_one_are_cut_off() {
        let folder = Folder::new("events-half");
        let mut events = open(&folder, 0);
        (1..=3).for_each(|step| events.write(&message(step)).unwrap());
        let whole = folder.bytes();
        let mut broken = whole.clone();
        let place = broken.len() - 10;
        broken[place] ^= 1;
        for bytes in [&whole[..whole.len() - 3], &broken] {
            std::fs::write(folder.0.join(FILE_NAME), bytes).unwrap();
            let mut events = open(&folder, 3);
            events.write(&message(9)).unwrap();
            assert_eq!(steps(&folder.bytes()), [1, 2, 9]);
        }
        std::fs::write(folder.0.join(FILE_NAME), b"no records at all").unwrap();
        open(&folder, 3).write(&message(9)).unwrap();
        assert_eq!(steps(&folder.bytes()), [9]);
    }
}
