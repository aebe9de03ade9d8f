//! Bulk bytes that are known at every position, so that gigabytes are checked in constant memory.
//!
//! The bytes repeat with a period that is a prime just below 64 KiB: a lost, doubled or swapped
//! buffer of any usual size shifts the phase and shows at the very byte.

use std::io::{self, Read, Write};

/// The period: the largest prime below 2^16.
const PERIOD: usize = 65_521;

/// How much is written or read at once.
const PIECE: u64 = 64 * 1024;

/// A stream of known bytes: makes them, or checks that others are the same.
#[derive(Debug, Clone)]
pub struct Pattern {
    block: Vec<u8>,
    offset: u64,
    check: PatternCheck,
}

/// What was found about bytes that should follow a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternCheck {
    /// How many bytes were looked at.
    pub length: u64,
    /// The position of the first wrong byte.
    pub first_wrong: Option<u64>,
}

impl PatternCheck {
    /// Whether exactly `length` bytes came and each was right.
    pub fn is_exactly(self, length: u64) -> bool {
        self == Self { length, first_wrong: None }
    }
}

impl Pattern {
    /// The pattern of a seed, at its start.
    pub fn new(seed: u64) -> Self {
        // splitmix64, one byte per step: only needs to look unlike text and unlike zeros.
        let mut state = seed;
        let block = std::iter::repeat_with(|| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((mixed ^ (mixed >> 27)) >> 40) as u8
        });
        let block = block.take(PERIOD).collect();
        Self { block, offset: 0, check: PatternCheck { length: 0, first_wrong: None } }
    }

    /// Fills `bytes` with what comes next.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let next = self.next(bytes.len());
            let (now, later) = bytes.split_at_mut(next.len());
            now.copy_from_slice(next);
            self.offset += now.len() as u64;
            bytes = later;
        }
    }

    /// Compares `bytes` with what comes next.
    pub fn check(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let next = self.next(bytes.len());
            let (now, later) = bytes.split_at(next.len());
            if self.check.first_wrong.is_none() && now != next {
                let wrong = now.iter().zip(next).position(|(a, b)| a != b).unwrap_or(0);
                self.check.first_wrong = Some(self.offset + wrong as u64);
            }
            self.offset += now.len() as u64;
            self.check.length += now.len() as u64;
            bytes = later;
        }
    }

    /// What [`check`](Self::check) has found so far.
    pub fn checked(&self) -> PatternCheck {
        self.check
    }

    /// The next bytes, at most `limit`, up to the end of the block.
    fn next(&self, limit: usize) -> &[u8] {
        let start = (self.offset % PERIOD as u64) as usize;
        let end = self.block.len().min(start + limit);
        &self.block[start..end]
    }
}

/// Writes the first `length` bytes of a pattern.
pub fn write_pattern(to: &mut impl Write, seed: u64, length: u64) -> io::Result<()> {
    let mut pattern = Pattern::new(seed);
    let mut piece = vec![0; PIECE as usize];
    let mut left = length;
    while left > 0 {
        let now = left.min(PIECE) as usize;
        pattern.fill(&mut piece[..now]);
        to.write_all(&piece[..now])?;
        left -= now as u64;
    }
    to.flush()
}

/// Reads at most `limit` bytes, or to the end, and compares them with a pattern.
pub fn read_pattern(from: &mut impl Read, seed: u64, limit: u64) -> io::Result<PatternCheck> {
    let mut pattern = Pattern::new(seed);
    let mut piece = vec![0; PIECE as usize];
    while pattern.check.length < limit {
        let now = (limit - pattern.check.length).min(PIECE) as usize;
        match from.read(&mut piece[..now]) {
            Ok(0) => break,
            Ok(length) => pattern.check(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pattern.checked())
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Pattern, PatternCheck, read_pattern, write_pattern};

    fn bytes(seed: u64, length: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_pattern(&mut bytes, seed, length).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_what_is_expected() {
        for length in [0, 1, PERIOD as u64 - 1, PERIOD as u64, 200_000] {
            let written = bytes(7, length);
            assert!(read_pattern(&mut written.as_slice(), 7, u64::MAX).unwrap().is_exactly(length));
            for piece in [1, 7, 65_536, 70_000] {
                let mut pattern = Pattern::new(7);
                written.chunks(piece).for_each(|bytes| pattern.check(bytes));
                assert!(pattern.checked().is_exactly(length));
            }
        }
        assert!(read_pattern(&mut bytes(7, 100).as_slice(), 7, 10).unwrap().is_exactly(10));
    }

    #[test]
    fn every_kind_of_damage_is_seen() {
        let whole = bytes(7, 300_000);
        let check = |damaged: &[u8], expected: Option<u64>| {
            let found = read_pattern(&mut &*damaged, 7, u64::MAX).unwrap();
            assert_eq!(found, PatternCheck { length: damaged.len() as u64, first_wrong: expected });
        };
        check(&whole, None);
        let mut flipped = whole.clone();
        flipped[123_456] ^= 1;
        check(&flipped, Some(123_456));
        for lost in [1, 4096, 65_536] {
            let damaged = [&whole[..100], &whole[100 + lost..]].concat();
            let found = read_pattern(&mut damaged.as_slice(), 7, u64::MAX).unwrap();
            assert!(found.first_wrong.is_some_and(|at| (100..120).contains(&at)), "{lost}: {found:?}");
        }
        assert_ne!(bytes(7, 64), bytes(8, 64));
    }
}
