//! Writes an initial file system for Linux: a cpio archive of the kind `newc`.
//!
//! The format is that of `Documentation/driver-api/early-userspace/buffer-format.rst` in Linux: for each file a header of
//! 110 hexadecimal digits, its name, its data, both padded to four bytes.

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
/// Name of the archive's last header.
const TRAILER: &str = "TRAILER!!!";

/// An archive that grows by a file at a time.
#[derive(Clone, Debug, Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    files: u32,
    folders: BTreeSet<String>,
}

impl Initramfs {
    /// Adds a folder and those above it, unless they are there.
    pub fn folder(&mut self, path: &str) {
        let mut whole = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !whole.is_empty() {
                whole.push('/');
            }
            whole.push_str(part);
            if self.folders.insert(whole.clone()) {
                self.entry(&whole, FOLDER, &[]);
            }
        }
    }

    /// Adds a file that everybody may read and execute, and its folder.
    pub fn file(&mut self, path: &str, data: &[u8]) {
        self.above(path);
        self.entry(path.trim_start_matches('/'), PROGRAM, data);
    }

    /// Adds a symbolic link to `target`, and its folder.
    pub fn link(&mut self, path: &str, target: &str) {
        self.above(path);
        self.entry(path.trim_start_matches('/'), LINK, target.as_bytes());
    }

    /// The archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn above(&mut self, path: &str) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.files += 1;
        let links = if mode == FOLDER { 2 } else { 1 };
        // inode, mode, uid, gid, links, mtime, size, four device numbers, length of the name with its zero, checksum
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let fields = [self.files, mode, 0, 0, links, 0, size, 0, 0, 0, 0, length, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn example() -> Vec<u8> {
        let mut archive = Initramfs::default();
        archive.file("/init", b"#!/bin/sh\n");
        archive.file("/lib/modules/a.ko", b"12345");
        archive.file("/lib/modules/b.ko", b"");
        archive.link("/bin/sh", "busybox");
        archive.finish()
    }

    /// Names, modes and data by the format's description, without the writer's code.
    fn read(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let number = |at: usize| {
            u32::from_str_radix(std::str::from_utf8(&archive[at..at + 8]).unwrap(), 16).unwrap()
        };
        let (mut at, mut files) = (0, Vec::new());
        loop {
            assert_eq!(&archive[at..at + 6], b"070701");
            let (mode, size, length) = (number(at + 14), number(at + 54), number(at + 94));
            let name = &archive[at + 110..at + 110 + length as usize - 1];
            let data = (at + 110 + length as usize).next_multiple_of(4);
            let end = data + size as usize;
            let name = String::from_utf8(name.to_vec()).unwrap();
            if name == TRAILER {
                assert_eq!(end.next_multiple_of(4), archive.len());
                return files;
            }
            files.push((name, mode, archive[data..end].to_vec()));
            at = end.next_multiple_of(4);
        }
    }

    #[test]
    fn each_file_is_in_the_archive_after_its_folders() {
        let files = read(&example());
        let names: Vec<&str> = files.iter().map(|(name, ..)| &**name).collect();
        let expected =
            ["init", "lib", "lib/modules", "lib/modules/a.ko", "lib/modules/b.ko", "bin", "bin/sh"];
        assert_eq!(names, expected);
        assert_eq!(files[3].2, b"12345");
        assert_eq!((files[6].1 & 0o170_000, &*files[6].2), (0o120_000, &b"busybox"[..]));
    }

    #[test]
    fn cpio_reads_it() {
        let list = Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut cpio) = list else {
            overspin_testing::skip("there is no cpio");
            return;
        };
        cpio.stdin.take().unwrap().write_all(&example()).unwrap();
        let listed = cpio.wait_with_output().unwrap();
        assert!(listed.status.success());
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().any(|line| line == "lib/modules/a.ko"), "{listed}");
    }
}
