//! `metrics.jsonl` as it is written, with TensorBoard's events beside it: lines are added, and cut off again when a run goes back
//! to a checkpoint.

use crate::Error;
use crate::metrics::{EndMetric, Metric};
use crate::tensorboard::EventFile;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The name of the file in a run's folder.
pub const FILE_NAME: &str = "metrics.jsonl";

/// The file, open for more lines.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    files: Option<Files>,
    bytes: u64,
    /// Where the line begins that says that the run has ended, if it has.
    end: Option<u64>,
}

/// What is written to.
#[derive(Debug)]
struct Files {
    lines: File,
    events: EventFile,
}

impl Log {
    /// Opens the log of a folder and keeps its first `bytes`: what came after a checkpoint will come again.
    pub(crate) fn open(folder: &Path, bytes: u64) -> Result<Log, Error> {
        let path = folder.join(FILE_NAME);
        let options = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let files = Files { lines: options.map_err(Error::file(&path))?, events: EventFile::open(folder)? };
        let mut log = Log { files: Some(files), path, bytes, end: None };
        log.cut(bytes)?;
        Ok(log)
    }

    /// A log that writes nothing: that of a rank that is not the first.
    pub(crate) fn silent() -> Log {
        Log { files: None, path: PathBuf::new(), bytes: 0, end: None }
    }

    /// Adds the line that says where the run ended. Should it go on, the line is removed.
    pub(crate) fn write_end(&mut self, end: EndMetric) -> Result<(), Error> {
        let bytes = self.bytes;
        self.write(&Metric::End(end))?;
        self.end = Some(bytes);
        Ok(())
    }

    /// Adds a line.
    pub(crate) fn write(&mut self, metric: &Metric) -> Result<(), Error> {
        if let Some(bytes) = self.end {
            self.cut(bytes)?;
        }
        let Some(files) = &mut self.files else { return Ok(()) };
        let line = serde_json::to_string(metric).expect("a plain structure") + "\n";
        files.lines.write_all(line.as_bytes()).map_err(Error::file(&self.path))?;
        self.bytes += line.len() as u64;
        files.events.write(metric)
    }

    /// Lets all lines reach the disk, and says how many bytes they are.
    pub(crate) fn sync(&mut self) -> Result<u64, Error> {
        if let Some(files) = &mut self.files {
            files.lines.sync_data().map_err(Error::file(&self.path))?;
            files.events.sync()?;
        }
        Ok(self.bytes)
    }

    /// Cuts off what lies behind the first `bytes`.
    pub(crate) fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let mut kept = std::fs::read(&self.path).map_err(Error::file(&self.path))?;
        kept.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        // A log that was shortened continues after its last whole line: it is for people, and no reason to stop.
        kept.truncate(kept.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        self.bytes = kept.len() as u64;
        self.end = None;
        files.lines.set_len(self.bytes).map_err(Error::file(&self.path))?;
        files.lines.seek(SeekFrom::Start(self.bytes)).map_err(Error::file(&self.path))?;
        files.events.cut(kept.iter().filter(|&&byte| byte == b'\n').count())
    }
}

/// Reads a folder's log; none if there is no log. Lines that are not whole are passed over: a run may have been killed, or a disk
/// full, while one was written, and nothing that a run needs is in them.
pub fn read(folder: &Path) -> Result<Vec<Metric>, Error> {
    let path = folder.join(FILE_NAME);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes.map_err(Error::file(&path))?,
    };
    Ok(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::EventMetric;

    #[test]
    fn lines_after_a_checkpoint_are_cut_off_and_come_again() {
        let folder = std::env::temp_dir().join(format!("attentive-logs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let line = |step| Metric::Event(EventMetric { step, message: "ä".repeat(step as usize) });
        let mut log = Log::open(&folder, 0).unwrap();
        log.write(&line(1)).unwrap();
        let bytes = log.sync().unwrap();
        log.write(&line(2)).unwrap();
        drop(log);
        // Killed in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(folder.join(FILE_NAME)).unwrap();
        file.write_all(b"{\"kind\":\"ev").unwrap();
        assert_eq!(read(&folder).unwrap(), [line(1), line(2)]);
        let mut log = Log::open(&folder, bytes).unwrap();
        log.write(&line(3)).unwrap();
        assert_eq!(read(&folder).unwrap(), [line(1), line(3)]);
        let end = EndMetric { step: 4, epoch: 0.5, seconds: 1.0, reason: "the end".to_owned() };
        log.write_end(end.clone()).unwrap();
        assert_eq!(read(&folder).unwrap(), [line(1), line(3), Metric::End(end)]);
        log.write(&line(5)).unwrap();
        assert_eq!(read(&folder).unwrap(), [line(1), line(3), line(5)]);
        // Shortened in the middle of a line that the checkpoint counts.
        let bytes = log.sync().unwrap();
        file.set_len(bytes - 5).unwrap();
        let mut log = Log::open(&folder, bytes).unwrap();
        log.write(&line(6)).unwrap();
        assert_eq!(read(&folder).unwrap(), [line(1), line(3), line(6)]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
