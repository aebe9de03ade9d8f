//! Runs an invariant over a corpus and over seeded mutations of it, as an ordinary test.

use std::{fs, panic, path::Path};

/// How many mutated inputs each target gets.
const MUTATIONS: usize = 10_000;

/// No input grows beyond this.
const MAX_INPUT: usize = 32 * 1024;

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] =
    b"\x00\x01\x02\x03\x04\x05\x10\x16\x40\x7f\x80\xff\r\n\t .:,;*[]{}()<>@/\\%#?=\"'-+_0189azAZ";

/// Runs `check` over every file of the corpus of `target`, and over mutations of them.
pub(crate) fn replay(target: &str, check: fn(&[u8])) {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus")).join(target);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The order of a directory is not that of another machine.
    files.sort();
    assert!(files.len() >= 10, "a corpus in {}", directory.display());
    let corpus: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (file, input) in files.iter().zip(&corpus) {
        run(&file.display().to_string(), input, check);
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for number in 0..MUTATIONS {
        let input = dice.mutate(&corpus);
        run(&format!("mutation {number}"), &input, check);
    }
}

fn run(name: &str, input: &[u8], check: fn(&[u8])) {
    let outcome = panic::catch_unwind(|| check(input));
    assert!(outcome.is_ok(), "{name}: {}", input.escape_ascii());
}

/// xorshift64*: the same inputs on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 0 to `end`, without `end`; 0 for 0.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.roll()) * end as u128) >> 64) as usize
    }

    fn byte(&mut self) -> u8 {
        if self.below(2) == 0 { TELLING[self.below(TELLING.len())] } else { self.below(256) as u8 }
    }

    fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        if self.below(10) == 0 {
            return (0..self.below(600)).map(|_| self.byte()).collect();
        }
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(5) {
            let other = self.below(corpus.len());
            self.mutate_once(&mut input, &corpus[other]);
        }
        input.truncate(MAX_INPUT);
        input
    }

    fn mutate_once(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below(input.len() - at + 1);
        match self.below(7) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            1 => {
                let new = self.byte();
                if let Some(byte) = input.get_mut(at) {
                    *byte = new;
                }
            }
            2 => input.insert(at, self.byte()),
            3 => drop(input.drain(at..end)),
            4 => input.truncate(at),
            5 => {
                let copy = input[at..end].to_vec();
                input.extend(copy);
            }
            _ => {
                let from = self.below(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied());
            }
        }
    }
}
