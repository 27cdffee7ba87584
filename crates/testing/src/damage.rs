//! Damages real inputs in ways that seldom leave them as they were, and gives them to what reads them: it may refuse
//! them, and must not panic, hang or use up the memory.
//!
//! The changes follow from a number, so each run of a test tries the same inputs. Fuzzers, which choose inputs by what
//! they reach in the program, take the same readers.

use crate::{deep, root};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Something that reads bytes from outside, and real examples of them.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its name, which is also that of a folder of inputs.
    pub name: &'static str,
    /// Reads an input. It panics if the reader does what it must not do.
    pub read: fn(&[u8]),
    /// Real inputs: files of this repository, from its root.
    pub examples: &'static [&'static str],
    /// Words that its inputs are made of, for damage that keeps the form.
    pub words: &'static [&'static str],
    /// Damaged inputs of a test. `OVERSPIN_DEEP=1` tries [`DEEPER`] times as many.
    pub inputs: u32,
}

/// Times as many inputs are tried with `OVERSPIN_DEEP=1`.
pub const DEEPER: u32 = 20;

/// Longest damaged input, in bytes.
const LONGEST: usize = 1 << 18;
/// Most changes of an input.
const CHANGES: u64 = 6;
/// No input takes so long, in a build without optimisation on a busy machine too.
const TOO_LONG: Duration = Duration::from_secs(30);
/// The part of an input that a failed test prints.
const SHOWN: usize = 4096;

impl Reader {
    /// The folder with inputs that once made it fail, and with small ones that were made by hand.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        root().join("crates/page/tests/inputs").join(self.name)
    }

    /// Its real inputs and those of its folder.
    ///
    /// # Panics
    /// If an example is not there.
    #[must_use]
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let examples = self.examples.iter().map(|path| root().join(path));
        let mut kept: Vec<PathBuf> =
            fs::read_dir(self.folder()).into_iter().flatten().flatten().map(|e| e.path()).collect();
        kept.sort();
        let read =
            |path: PathBuf| fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        examples.chain(kept).map(read).collect()
    }

    /// Reads its seeds as they are, and then damaged.
    ///
    /// # Panics
    /// If it fails at an input, which is printed and stays in a file.
    pub fn try_damaged(&self) {
        let seeds = self.seeds();
        assert!(!seeds.is_empty(), "{} has no input to begin with", self.name);
        seeds.iter().enumerate().for_each(|(i, seed)| self.try_one(seed, &format!("seed {i}")));
        let inputs = self.inputs * if deep() { DEEPER } else { 1 };
        let began = Instant::now();
        for number in 0..inputs {
            let mut damage = Damage { state: u64::from(number) << 32, words: self.words };
            let input = damage.damaged(&seeds);
            self.try_one(&input, &format!("damaged input {number}"));
        }
        println!("{}: {inputs} inputs in {:.1} s", self.name, began.elapsed().as_secs_f64());
    }

    /// The file with the input that is tried: a stack that overflows ends the process, which then reports nothing else.
    fn file(&self) -> PathBuf {
        std::env::temp_dir().join(format!("overspin-input-{}-{}", std::process::id(), self.name))
    }

    fn try_one(&self, input: &[u8], what: &str) {
        let file = self.file();
        fs::write(&file, input).expect("a temporary file");
        let began = Instant::now();
        let read = catch_unwind(AssertUnwindSafe(|| (self.read)(input)));
        let elapsed = began.elapsed();
        let shown = &input[..input.len().min(SHOWN)];
        assert!(
            read.is_ok() && elapsed < TOO_LONG,
            "{what} of {} makes it fail after {elapsed:.1?}. It is in {}, has {} bytes and begins with:\n{}",
            self.name,
            file.display(),
            input.len(),
            shown.escape_ascii()
        );
        let _ = fs::remove_file(&file);
    }
}

/// Changes of inputs, which follow from a number.
struct Damage {
    state: u64,
    words: &'static [&'static str],
}

/// Numbers at which arithmetic goes wrong.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "2",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0.1",
    "-0.0",
    "1e308",
    "1e999",
    "00000000000000000000000000000001",
    "340282366920938463463374607431768211456",
];
/// Text that surprises what slices it.
const STRANGE: [&str; 10] =
    ["\u{e9}", "\u{1f600}", "\u{2028}", "\u{feff}", "\u{202e}", "\0", "\r", "\t", "\x1b[2J", "\""];

impl Damage {
    /// The next number, by splitmix64.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// A part of so many bytes, usually a short one.
    fn part(&mut self, len: usize) -> std::ops::Range<usize> {
        let longest = if self.below(4) == 0 { len } else { len.min(32) };
        let begin = self.below(len + 1);
        begin..(begin + self.below(longest + 1)).min(len)
    }

    /// How often to repeat a part of so many bytes. Many times make a form that is nested deeply.
    fn times(&mut self, len: usize) -> usize {
        let times = if self.below(8) == 0 { 20_000 } else { 1 + self.below(2) };
        times.min(LONGEST / len.max(1)).max(1)
    }

    /// One of the seeds with some changes.
    fn damaged(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let seed = self.below(seeds.len());
        let mut bytes = seeds[seed].clone();
        for _ in 0..=self.bits() % CHANGES {
            self.change(&mut bytes, seeds);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let (len, here) = (bytes.len(), self.below(bytes.len() + 1));
        match self.below(13) {
            0 if here < len => bytes[here] ^= 1 << self.below(8),
            1 if here < len => bytes[here] = self.bits() as u8,
            2 => bytes.truncate(here),
            3 => {
                let part = self.part(len);
                bytes.drain(part);
            }
            4 => {
                let part = self.part(len);
                let many = bytes[part.clone()].repeat(self.times(part.len()));
                bytes.splice(here..here, many);
            }
            5 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.part(other.len());
                let to = self.part(len);
                bytes.splice(to, other[from].iter().copied());
            }
            6 | 7 => self.number(bytes),
            8 => {
                // A field of a binary format.
                let size = [1, 2, 4, 8][self.below(4)];
                let at = here / size * size;
                let word = match self.below(4) {
                    0 => 0,
                    1 => u64::MAX,
                    2 => u64::MAX >> self.below(64),
                    _ => self.bits() >> self.below(64),
                };
                for (to, from) in bytes.iter_mut().skip(at).zip(&word.to_le_bytes()[..size]) {
                    *to = *from;
                }
            }
            9 => {
                let word = self.one(if self.words.is_empty() { &STRANGE } else { self.words });
                let many = word.repeat(self.times(word.len()));
                bytes.splice(here..here, many.bytes());
            }
            10 => {
                let strange = self.one(&STRANGE);
                bytes.splice(here..here, strange.bytes());
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
                let (a, b) = (self.below(lines.len()), self.below(lines.len()));
                match self.below(3) {
                    0 => lines.swap(a, b),
                    1 => lines.insert(a, lines[b]),
                    _ => _ = lines.remove(a),
                }
                *bytes = lines.join(&b'\n');
            }
        }
    }

    /// Puts an extreme number in the place of one.
    fn number(&mut self, bytes: &mut Vec<u8>) {
        let is_begin = |i: &usize| {
            bytes[*i].is_ascii_digit()
                && i.checked_sub(1).is_none_or(|p| !bytes[p].is_ascii_digit())
        };
        let begins: Vec<usize> = (0..bytes.len()).filter(is_begin).collect();
        if begins.is_empty() {
            return;
        }
        let begin = begins[self.below(begins.len())];
        let digits = bytes[begin..].iter().take_while(|b| b.is_ascii_digit()).count();
        let number = self.one(&NUMBERS);
        bytes.splice(begin..begin + digits, number.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_the_same_each_time_and_seldom_nothing() {
        let seeds = [b"first 12\nsecond\n".to_vec(), b"third 3\n".to_vec()];
        let made = |number: u64| Damage { state: number << 32, words: &["word"] }.damaged(&seeds);
        let all: Vec<Vec<u8>> = (0..1000).map(made).collect();
        assert_eq!(all, (0..1000).map(made).collect::<Vec<_>>());
        let unchanged = all.iter().filter(|input| seeds.contains(input)).count();
        assert!(unchanged < 100, "{unchanged}");
        let has =
            |what: &[u8]| all.iter().any(|input| input.windows(what.len()).any(|w| w == what));
        assert!(has(b"word") && has("\u{1f600}".as_bytes()) && has(b"18446744073709551616"));
        assert!(all.iter().any(|input| input.len() > 10_000), "something is repeated often");
    }

    #[test]
    fn an_input_that_makes_a_reader_panic_is_reported_and_kept() {
        let reader = Reader {
            name: "damage-itself",
            read: |bytes| assert!(bytes.len() < 20_000),
            examples: &["rustfmt.toml"],
            words: &[],
            inputs: 1000,
        };
        let panic = catch_unwind(|| reader.try_damaged()).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("damaged input"), "{message}");
        let file = reader.file();
        assert!(fs::metadata(&file).unwrap().len() >= 20_000);
        fs::remove_file(file).unwrap();
    }
}
