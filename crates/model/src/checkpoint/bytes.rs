//! Numbers out of bytes that may be anything: what is not there is `None`, and nothing is read beyond the
//! end.

/// Bytes from the first that was not read yet.
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes, at: 0 }
    }

    /// How many were read.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        self.at += count;
        Some(taken)
    }

    /// What stands before the next line feed, which is read as well.
    pub fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'\n')?;
        let line = self.take(end)?;
        self.take(1)?;
        Some(line)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}
