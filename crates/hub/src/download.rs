//! One file, from the Hub to its blob: gone on with where an earlier attempt ended, checked, and only then put under its name.

use crate::cache::CachedModel;
use crate::client::broken;
use crate::digest::Etag;
use crate::error::Error;
use crate::lock::Lock;
use crate::protocol::{Protocol, Remote};
use crate::retry::{Failure, Retry};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

/// How many bytes are read at once.
const PIECE: usize = 1 << 17;

/// A file that is to be had.
pub(crate) struct Download<'a> {
    pub protocol: &'a Protocol<'a>,
    pub cached: &'a CachedModel,
    pub commit: &'a str,
    pub file: &'a str,
    pub remote: &'a Remote,
}

impl Download<'_> {
    /// Makes the blob, unless it is there.
    pub fn run(&self, retry: &Retry) -> Result<(), Error> {
        let etag = &self.remote.etag;
        let waits =
            || retry.watch.waits(&format!("another process is downloading `{}`: waiting for it", self.file));
        let _lock = Lock::take(&self.cached.lock(etag), waits)?;
        let blob = self.cached.blob(etag);
        if blob.exists() {
            retry.watch.received(self.remote.size);
            return Ok(());
        }
        let incomplete = self.cached.incomplete(etag);
        let had = self.receive(&incomplete, retry)?;
        let mut found = etag.of_file(&incomplete)?;
        // What an earlier attempt has left may be what is wrong.
        if found != *etag && had > 0 {
            self.discard(&incomplete, retry)?;
            self.receive(&incomplete, retry)?;
            found = etag.of_file(&incomplete)?;
        }
        if found != *etag {
            self.discard(&incomplete, retry)?;
            return Err(self.damaged(found));
        }
        fs::rename(&incomplete, &blob).map_err(|source| Error::File { path: blob, source })
    }

    /// Receives what is missing of a file, and returns how much of it was there before.
    fn receive(&self, path: &Path, retry: &Retry) -> Result<u64, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(failed)?;
        let mut length = file.metadata().map_err(failed)?.len();
        if length > self.remote.size {
            file.set_len(0).map_err(failed)?;
            length = 0;
        }
        let had = length;
        retry.watch.received(had);
        retry.run(|| self.attempt(&mut file, path, &mut length, retry))?;
        file.sync_all().map_err(failed)?;
        Ok(had)
    }

    /// One request for all that is missing.
    fn attempt(&self, file: &mut File, path: &Path, length: &mut u64, retry: &Retry) -> Result<(), Failure> {
        let failed = |source| Failure::from(Error::File { path: path.to_owned(), source });
        let size = self.remote.size;
        if *length == size {
            return Ok(());
        }
        let reply = self.protocol.fetch(self.commit, self.file, (*length > 0).then_some(*length))?;
        let begins = match reply.status {
            206 => reply.header("content-range").and_then(first_byte),
            _ => Some(0),
        };
        // A server that does not go on where it should begins anew.
        if begins != Some(*length) || reply.status == 416 {
            file.set_len(0).map_err(failed)?;
            retry.watch.lost(*length);
            *length = 0;
            if begins != Some(0) || reply.status == 416 {
                let problem = "a part of the file that was not asked for".to_owned();
                let error = Error::Answer { host: reply.host, problem };
                return Err(Failure::Again { error: error.into(), wait: None, progress: false });
            }
        }
        file.seek(SeekFrom::Start(*length)).map_err(failed)?;
        let (host, before) = (reply.host.clone(), *length);
        // More than the file should have cannot make it right.
        let mut reader = reply.reader().take(size - *length + 1);
        let mut buffer = vec![0; PIECE];
        while *length <= size {
            if retry.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped.into());
            }
            let count = reader.read(&mut buffer).map_err(|error| broken(&host, &error, *length > before))?;
            if count == 0 {
                break;
            }
            file.write_all(&buffer[..count]).map_err(failed)?;
            *length += count as u64;
            retry.watch.received(count as u64);
        }
        if *length < size {
            let error = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it ended early");
            return Err(broken(&host, &error, *length > before));
        }
        Ok(())
    }

    fn discard(&self, path: &Path, retry: &Retry) -> Result<(), Error> {
        retry.watch.lost(self.remote.size);
        fs::remove_file(path).map_err(|source| Error::File { path: path.to_owned(), source })
    }

    fn damaged(&self, found: Etag) -> Error {
        let expected = &self.remote.etag;
        Error::Damaged {
            name: self.protocol.name.id().to_owned(),
            file: self.file.to_owned(),
            kind: expected.kind(),
            expected: expected.as_str().to_owned(),
            found: found.as_str().to_owned(),
        }
    }
}

/// The first byte of `Content-Range: bytes FIRST-LAST/SIZE`.
fn first_byte(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes")?.trim().split('-').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_at_a_byte() {
        assert_eq!(first_byte("bytes 10-19/20"), Some(10));
        assert_eq!(first_byte("bytes 0-0/*"), Some(0));
        for bad in ["bytes */20", "10-19/20", "bytes x-1/2", ""] {
            assert_eq!(first_byte(bad), None, "{bad}");
        }
    }
}
