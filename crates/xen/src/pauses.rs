//! Replaces the instruction `pause` of a kernel by a no-op of the same length.
//!
//! The emulator leaves its translated code at each `pause`, which takes microseconds of the real machine. A vCPU that spins
//! for a time slice executes millions of them. A no-op stays in the translated code. In the emulated machine both take
//! the time of one instruction.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use object::elf::SHF_EXECINSTR;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, SectionFlags};

const BITS: u32 = 64;
const LENGTH: usize = 2;
/// `xchg ax, ax`, which the manuals of the CPUs' makers recommend as a no-op of two bytes.
const NO_OP: [u8; LENGTH] = [0x66, 0x90];
/// A section may have this part of bytes that are no instructions. The decoder goes through sections from their begin to
/// their end. If it met data, it would go out of step and find many of them; Linux 6.1 has one in 15 MB.
const MAX_INVALID: f64 = 1e-5;

/// The instructions of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PauseCount {
    /// Instructions `pause`.
    pub(crate) pauses: usize,
    /// All instructions.
    pub(crate) all: usize,
    /// Bytes that are no instruction.
    pub(crate) invalid: usize,
}

/// Replaces each `pause` in the executable sections of an ELF file. `None` if it is no 64-bit ELF file, or a section is not
/// only instructions; the file is unchanged then.
pub(crate) fn replace(kernel: &mut [u8]) -> Option<PauseCount> {
    let elf = ElfFile64::<Endianness>::parse(&*kernel).ok()?;
    let mut places = Vec::new();
    let mut sum = PauseCount::default();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let (true, Some((offset, _))) = (sh_flags.contains(SHF_EXECINSTR), section.file_range())
        else {
            continue;
        };
        let (found, of) = find(section.data().ok()?);
        if of.invalid as f64 > of.all as f64 * MAX_INVALID + 1.0 {
            return None;
        }
        places.extend(found.into_iter().map(|at| offset as usize + at));
        sum.pauses += of.pauses;
        sum.all += of.all;
        sum.invalid += of.invalid;
    }
    for at in places {
        kernel.get_mut(at..at + LENGTH)?.copy_from_slice(&NO_OP);
    }
    Some(sum)
}

/// Where each `pause` is in a sequence of instructions.
fn find(code: &[u8]) -> (Vec<usize>, PauseCount) {
    let mut decoder = Decoder::new(BITS, code, DecoderOptions::NONE);
    let (mut instruction, mut places, mut sum) =
        (Instruction::default(), Vec::new(), PauseCount::default());
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut instruction);
        match instruction.code() {
            Code::INVALID => sum.invalid += 1,
            Code::Pause if instruction.len() == LENGTH => places.push(at),
            _ => {}
        }
        sum.all += 1;
    }
    sum.pauses = places.len();
    (places, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, 0x90f3` with the two bytes of `pause` in it, `pause`, and a return.
    const CODE: [u8; 8] = [0xb8, 0xf3, 0x90, 0, 0, 0xf3, 0x90, 0xc3];
    /// `push es`, which a CPU in 64-bit mode does not have.
    const INVALID: u8 = 0x06;
    const CODE_AT: usize = 64;

    /// An ELF file: its header, a section of instructions, a section of strings, and the table of sections.
    fn elf(code: &[u8], data: &[u8]) -> Vec<u8> {
        let data_at = CODE_AT + code.len();
        let table = data_at + data.len();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        // An executable for x86-64, version 1; no entry, no segments; the table of sections; flags.
        file.extend([2_u16, 62].iter().flat_map(|n| n.to_le_bytes()));
        file.extend(1_u32.to_le_bytes());
        file.extend([0, 0, table as u64].iter().flat_map(|n| n.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        // Sizes of the header and of a segment's entry, no segments, size and number of sections, the one of names.
        file.extend([64_u16, 56, 0, 64, 3, 2].iter().flat_map(|n| n.to_le_bytes()));
        file.extend([code, data].concat());
        // The first entry of the table is always empty. Kind 1 is any content, 3 is strings. `SHF_ALLOC` is 2, and
        // `SHF_EXECINSTR` 4.
        for (kind, flags, at, size) in
            [(0_u32, 0_u64, 0, 0), (1, 6, CODE_AT, code.len()), (3, 2, data_at, data.len())]
        {
            file.extend([0, kind].iter().flat_map(|n| n.to_le_bytes()));
            let numbers = [flags, 0, at as u64, size as u64, 0, 1, 0];
            file.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        }
        file
    }

    #[test]
    fn only_instructions_are_replaced() {
        let mut file = elf(&CODE, &[0xf3, 0x90]);
        let before = file.clone();
        let found = replace(&mut file).unwrap();
        assert_eq!(found, PauseCount { pauses: 1, all: 3, invalid: 0 });
        let mut expected = before;
        expected[CODE_AT + 5..CODE_AT + 7].copy_from_slice(&NO_OP);
        assert_eq!(file, expected);
    }

    #[test]
    fn a_section_with_data_among_instructions_is_refused() {
        let mut file = elf(&[&CODE[..], &[INVALID; 3]].concat(), &[]);
        let before = file.clone();
        assert_eq!(replace(&mut file), None);
        assert_eq!(file, before);
        assert_eq!(replace(&mut b"MZ".to_vec()), None);
    }
}
