//! The program of a guest: an ELF file, which may be a user's own, so nothing in it is taken on trust.

use object::elf::{EM_X86_64, ET_EXEC, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, ProgramHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object};
use overspin_guest_abi::LOWEST;
use std::ops::Range;

/// The end of the addresses that a program may have. The other half of the most memory is for what host and guest share.
const HIGHEST: u64 = 512 << 20;

/// A program for a guest.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Where each vCPU begins.
    pub entry: u64,
    /// Where each part goes, and its bytes.
    pub parts: Vec<(u64, Vec<u8>)>,
    /// The first address behind it.
    pub end: u64,
}

/// A segment of an ELF file that is loaded, as its header states it.
struct Segment {
    /// Its number, as `readelf -l` counts.
    number: usize,
    /// Its addresses.
    range: Range<u64>,
    /// How many bytes of it the file has; the others are zero.
    in_file: u64,
    executable: bool,
}

impl Segment {
    /// Reads a header. Nothing of the file's bytes is touched.
    fn of(
        number: usize,
        header: &ProgramHeader64<Endianness>,
        endian: Endianness,
    ) -> Result<Self, String> {
        let (at, size) = (header.p_vaddr(endian), header.p_memsz(endian));
        let end = at.checked_add(size).filter(|end| at >= LOWEST && *end <= HIGHEST);
        let Some(end) = end else {
            return Err(format!(
                "segment {number} wants {size:#x} bytes at {at:#x}; it must be between 2 and 512 MiB"
            ));
        };
        let in_file = header.p_filesz(endian);
        if in_file > size {
            return Err(format!(
                "segment {number} has {in_file:#x} bytes in the file and {size:#x} in memory: the file is damaged, so link \
                 it again"
            ));
        }
        let executable = header.p_flags(endian).contains(PF_X);
        Ok(Self { number, range: at..end, in_file, executable })
    }
}

impl Program {
    /// Reads a static ELF program. All headers are checked before a byte is copied.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<Endianness>::parse(bytes)
            .map_err(|error| format!("this is no 64-bit ELF program: {error}"))?;
        let (header, endian) = (file.elf_header(), file.endian());
        if header.e_machine(endian) != EM_X86_64 {
            return Err("it is not for x86-64".into());
        }
        if header.e_type(endian) != ET_EXEC {
            return Err(
                "it is not linked to fixed addresses: link it with `-static -no-pie`".into()
            );
        }
        let headers = header
            .program_headers(endian, bytes)
            .map_err(|error| format!("its program headers cannot be read: {error}"))?;
        let mut segments = Vec::new();
        for (number, header) in headers.iter().enumerate() {
            match header.p_type(endian) {
                PT_INTERP | PT_DYNAMIC => {
                    return Err("it wants a dynamic linker: link it with `-static -no-pie`".into());
                }
                PT_LOAD if header.p_memsz(endian) > 0 || header.p_filesz(endian) > 0 => {
                    segments.push(Segment::of(number, header, endian)?);
                }
                _ => {}
            }
        }
        // Segments that share no address are together no larger than the addresses that they may have.
        segments.sort_by_key(|segment| segment.range.start);
        for pair in segments.windows(2) {
            if pair[1].range.start < pair[0].range.end {
                return Err(format!(
                    "segments {} and {} both want address {:#x}: give each its own addresses",
                    pair[0].number, pair[1].number, pair[1].range.start
                ));
            }
        }
        let entry = file.entry();
        let is_code = |s: &Segment| {
            s.executable && (s.range.start..s.range.start + s.in_file).contains(&entry)
        };
        if !segments.iter().any(is_code) {
            return Err(format!(
                "its entry point {entry:#x} is outside the code of its executable segments: link it with `-e` and the name \
                 of its first function"
            ));
        }
        let part = |segment: &Segment| {
            let data = headers[segment.number].data(endian, bytes).map_err(|()| {
                format!("segment {} is cut off: copy the file again", segment.number)
            })?;
            Ok((segment.range.start, data.to_vec()))
        };
        Ok(Self {
            entry,
            parts: segments.iter().map(part).collect::<Result<_, String>>()?,
            end: segments.last().map_or(LOWEST, |segment| segment.range.end),
        })
    }

    /// A program of these instructions, which do not depend on their address.
    pub(crate) fn of(code: &[u8]) -> Self {
        Self {
            entry: LOWEST,
            parts: vec![(LOWEST, code.to_vec())],
            end: LOWEST + code.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    const EXECUTABLE: u32 = 5;

    /// A loaded segment: flags, offset in the file, address, bytes in the file, bytes in memory.
    type Load = (u32, u64, u64, u64, u64);

    /// A static program with these segments, whose first instruction is at `entry`: the fields of the ELF specification.
    fn elf(entry: u64, loads: &[Load]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        // Type, machine, version, entry, offsets of program headers and of sections, flags.
        bytes.extend(2_u16.to_le_bytes());
        bytes.extend(62_u16.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(entry.to_le_bytes());
        bytes.extend((HEADER as u64).to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        let count = u16::try_from(loads.len()).unwrap();
        // Sizes of this header and of a program header, their number, and no sections.
        for word in [HEADER as u16, SEGMENT as u16, count, 0, 0, 0] {
            bytes.extend(word.to_le_bytes());
        }
        for (flags, offset, at, in_file, in_memory) in loads {
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            for word in [*offset, *at, *at, *in_file, *in_memory, 1] {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        bytes
    }

    #[track_caller]
    fn refused(entry: u64, loads: &[Load], why: &str) {
        let message = Program::parse(&elf(entry, loads)).unwrap_err();
        assert!(message.contains(why), "{message}");
    }

    #[test]
    fn a_program_is_its_segments() {
        let bss = (6, 32, 0x50_0000, 8, 0x2000);
        let program = Program::parse(&elf(
            0x40_0004,
            &[
                // Segments need no order, and an empty one may be anywhere.
                bss,
                (EXECUTABLE, 0, 0x40_0000, 16, 16),
                (4, 0, 0, 0, 0),
            ],
        ))
        .unwrap();
        assert_eq!(program.entry, 0x40_0004);
        let parts: Vec<_> = program.parts.iter().map(|(at, data)| (*at, data.len())).collect();
        assert_eq!(parts, [(0x40_0000, 16), (0x50_0000, 8)]);
        assert_eq!(program.parts[0].1[..4], *b"\x7fELF");
        assert_eq!(program.end, 0x50_2000);
    }

    /// Such a file made the host panic when the last segment's bytes passed the end of the memory, and otherwise wrote
    /// into the heap behind the program.
    #[test]
    fn a_segment_is_no_longer_in_the_file_than_in_memory() {
        let more = (6, 0, 0x50_0000, 17, 16);
        let code = (EXECUTABLE, 0, 0x40_0000, 16, 16);
        refused(
            0x40_0000,
            &[code, more],
            "segment 1 has 0x11 bytes in the file and 0x10 in memory",
        );
        refused(0x40_0000, &[code, (6, 0, 0x50_0000, u64::MAX, 0)], "segment 1 has 0xffff");
    }

    #[test]
    fn a_segment_is_between_2_and_512_mib() {
        let at = |at, size| (EXECUTABLE, 0, at, 0, size);
        for load in [
            at(LOWEST - 1, 16),
            at(0, 16),
            at(HIGHEST - 8, 9),
            at(HIGHEST, 1),
            at(LOWEST, HIGHEST),
            at(u64::MAX, 1),
            at(LOWEST, u64::MAX),
        ] {
            refused(LOWEST, &[load], "segment 0 wants");
        }
    }

    #[test]
    fn segments_share_no_address() {
        let code = (EXECUTABLE, 0, 0x40_0000, 16, 0x1000);
        refused(
            0x40_0000,
            &[code, (6, 0, 0x40_0fff, 1, 1)],
            "segments 0 and 1 both want address 0x400fff",
        );
        refused(0x40_0000, &[(6, 0, 0x3f_0000, 1, 0x20_0000), code], "segments 0 and 1 both");
        Program::parse(&elf(0x40_0000, &[code, (6, 0, 0x40_1000, 1, 1)])).unwrap();
        // Each has the whole file, which would be 20,000 copies of it.
        let many = vec![(EXECUTABLE, 0, LOWEST, 1 << 20, 1 << 20); 20_000];
        refused(LOWEST, &many, "segments 0 and 1 both");
    }

    #[test]
    fn a_segment_is_whole() {
        let code = (EXECUTABLE, 0, 0x40_0000, 16, 16);
        for (offset, in_file) in [(1 << 20, 1), (0, 1 << 20), (u64::MAX, 2), (u64::MAX - 1, 1)] {
            let load = (6, offset, 0x50_0000, in_file, 1 << 20);
            refused(0x40_0000, &[code, load], "segment 1 is cut off");
        }
    }

    #[test]
    fn the_entry_point_is_code_of_the_file() {
        let code = (EXECUTABLE, 0, 0x40_0000, 16, 32);
        let data = (6, 0, 0x50_0000, 16, 16);
        for entry in [0, 0x3f_ffff, 0x40_0010, 0x50_0000, u64::MAX] {
            refused(entry, &[code, data], "is outside the code");
        }
        refused(0x40_0000, &[], "is outside the code");
        Program::parse(&elf(0x40_000f, &[code, data])).unwrap();
    }

    #[test]
    fn headers_are_whole() {
        let whole = elf(0x40_0000, &[(EXECUTABLE, 0, 0x40_0000, 16, 16)]);
        for end in 0..HEADER + SEGMENT {
            Program::parse(&whole[..end]).unwrap_err();
        }
        // Program headers at the end of numbers, and sections behind the file.
        for field in [32, 40] {
            let mut bytes = whole.clone();
            bytes[field..field + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            Program::parse(&bytes).unwrap_err();
        }
    }
}
