//! Unpacks the kernel of a `bzImage`.
//!
//! `xl` would unpack it for each guest anew, which takes seconds of an emulated CPU. The header is described in Linux's
//! `Documentation/arch/x86/boot.rst`.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// The kernel as an ELF file, if it is packed with xz and the program `xz` can unpack it.
pub(crate) fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
    let payload = payload(image)?;
    if !payload.starts_with(b"\xfd7zXZ\0") {
        return None;
    }
    let mut xz = Command::new("xz")
        .args(["--decompress", "--stdout", "--single-stream"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = xz.stdin.take()?;
    let payload = payload.to_vec();
    // xz stops reading at the end of its stream; what follows is padding.
    let feeder = thread::spawn(move || _ = input.write_all(&payload));
    let output = xz.wait_with_output().ok()?;
    let _ = feeder.join();
    output.stdout.starts_with(b"\x7fELF").then_some(output.stdout)
}

/// The packed kernel: it begins at `payload_offset` of the part after the boot sectors.
fn payload(image: &[u8]) -> Option<&[u8]> {
    if image.get(0x202..0x206) != Some(b"HdrS") {
        return None;
    }
    let number = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let sectors = match image.get(0x1f1)? {
        0 => 4,
        n => usize::from(*n),
    };
    // "HdrS" is at 0x202, and the header is known to have these fields from version 2.08 on; older kernels are no guests.
    let begin = ((sectors + 1) * 512).checked_add(number(0x248)?)?;
    image.get(begin..begin.checked_add(number(0x24c)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_where_the_header_says() {
        let mut image = vec![0_u8; 4096];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&5_u32.to_le_bytes());
        image[1024 + 16..1024 + 21].copy_from_slice(b"hello");
        assert_eq!(payload(&image), Some(&b"hello"[..]));
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None, "a length beyond the end");
        assert_eq!(payload(b"MZ"), None);
    }
}
