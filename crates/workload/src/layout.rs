//! Where locks and the data beside them lie in a kernel's memory: the offsets of real structs.
//!
//! The five locks are those that moved to their own cache lines in September 2001. The data are the words
//! that the code under these locks writes all the time. In link order (`arch/i386/kernel`, `mm`, `fs`) they
//! come from `smp.c`, `filemap.c` with the lists of `page_alloc.c`, `highmem.c` and `buffer.c`. The link map
//! of the published kernel is lost, so this map is a plausible one.
//!
//! A line of a Pentium III has 32 bytes, eight words. The simulated line has 64 bytes, eight words of today's
//! `usize`. So a word here stands for a word there, and the lines are the same.
//!
//! | line as linked | contents |
//! |---|---|
//! | 0 | **`kernel_flag`**, the version number of directories, the number of inodes, the rest cold |
//! | 1 | size and table of the page cache, **`pagecache_lock`**, **`pagemap_lru_lock`**, counts and lists of pages |
//! | 2 | **`kmap_lock`**, the last mapping, **`lru_list_lock`**, list, count and size of dirty buffers |

use crate::dbench::LOCKS;
use alloc::vec::Vec;
use core::alloc as memory;

/// The offsets of locks and words in a region of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the region.
    pub size: usize,
    /// Alignment of the region.
    pub align: usize,
    /// Name and offset of each lock, in the order of [`lock_names`](crate::Load::lock_names).
    pub locks: Vec<(&'static str, usize)>,
    /// Name and offset of each word.
    pub words: Vec<(&'static str, usize)>,
}

/// Size and alignment of the locks and of the words of a world.
#[derive(Clone, Copy, Debug)]
pub struct LayoutOf {
    lock: memory::Layout,
    word: memory::Layout,
}

impl LayoutOf {
    /// The layout of locks of type `L` and words of type `W`.
    #[must_use]
    pub const fn types<L, W>() -> Self {
        Self { lock: memory::Layout::new::<L>(), word: memory::Layout::new::<W>() }
    }
}

/// Bytes of a line.
const LINE: usize = 64;

/// A variable of the kernel.
#[derive(Clone, Copy, Debug)]
enum Field {
    Lock(&'static str),
    Word(Word),
    /// A word that nothing uses.
    Cold,
}

use Field::{Cold, Lock};

/// The kernel's variables, as linked.
const GLOBALS: [Field; 22] = [
    Lock("kernel_flag"),
    Field::Word(Word::DirectoryVersion),
    Field::Word(Word::NrInodes),
    Cold,
    Cold,
    Cold,
    Cold,
    Cold,
    Field::Word(Word::PageCacheSize),
    Field::Word(Word::PageHashTable),
    Lock("pagecache_lock"),
    Lock("pagemap_lru_lock"),
    Field::Word(Word::NrActivePages),
    Field::Word(Word::NrInactivePages),
    Field::Word(Word::ActiveList),
    Field::Word(Word::InactiveList),
    Lock("kmap_lock"),
    Field::Word(Word::LastMapping),
    Lock("lru_list_lock"),
    Field::Word(Word::DirtyList),
    Field::Word(Word::NrDirty),
    Field::Word(Word::SizeDirty),
];

macro_rules! words {
    ($($word:ident: $field:literal),+ $(,)?) => {
        /// The words, in the order of [`Layout::words`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Word {
            $($word),+
        }

        /// Names of the words.
        const WORDS: &[(Word, &str)] = &[$((Word::$word, $field)),+];
    };
}

words! {
    DirectoryVersion: "directory_version",
    NrInodes: "nr_inodes",
    PageCacheSize: "page_cache_size",
    PageHashTable: "page_hash_table",
    NrActivePages: "nr_active_pages",
    NrInactivePages: "nr_inactive_pages",
    ActiveList: "active_list",
    InactiveList: "inactive_list",
    LastMapping: "last_mapping",
    DirtyList: "dirty_list",
    NrDirty: "nr_dirty",
    SizeDirty: "size_dirty",
}

impl Layout {
    /// The kernel's variables, beginning on a line boundary. A lock takes a word, or more if it is larger;
    /// with `aligned` it takes a whole line. The rest is laid out as a C structure.
    pub(crate) fn globals(of: LayoutOf, aligned: bool) -> Self {
        let align = if aligned { LINE } else { of.word.align() };
        let fits = "a lock is far smaller than memory";
        let lock = of.lock.align_to(align).expect(fits).pad_to_align();
        let mut all = memory::Layout::new::<()>().align_to(LINE).expect(fits);
        let mut offsets = [0; GLOBALS.len()];
        for (field, at) in GLOBALS.iter().zip(&mut offsets) {
            let size = if matches!(field, Lock(_)) { lock } else { of.word };
            (all, *at) = all.extend(size).expect(fits);
        }
        let all = all.pad_to_align();
        let find = |is: &dyn Fn(&Field) -> bool| {
            GLOBALS.iter().zip(offsets).find(|(field, _)| is(field)).map_or(0, |(_, at)| at)
        };
        let lock = |name: &&'static str| {
            (*name, find(&|field| matches!(field, Lock(other) if other == name)))
        };
        let word = |(word, name): &(Word, &'static str)| {
            (*name, find(&|field| matches!(field, Field::Word(other) if other == word)))
        };
        Self {
            size: all.size(),
            align: all.align(),
            locks: LOCKS.iter().map(lock).collect(),
            words: WORDS.iter().map(word).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;
    use std::vec;

    fn linked() -> Layout {
        Layout::globals(LayoutOf::types::<u32, usize>(), false)
    }

    fn aligned() -> Layout {
        Layout::globals(LayoutOf::types::<u32, usize>(), true)
    }

    /// A lock that takes a word, or more if it is larger.
    #[repr(C)]
    struct InAWord<L, W> {
        word: [W; 0],
        lock: L,
    }

    /// A lock that takes a whole line.
    #[repr(C, align(64))]
    struct InALine<L> {
        lock: L,
    }

    /// The kernel's variables. `L` is a lock with or without a line around it; nothing else differs.
    #[repr(C)]
    struct Globals<L, W> {
        line: Line,
        kernel_flag: L,
        directory_version: W,
        nr_inodes: W,
        cold: [W; 5],
        page_cache_size: W,
        page_hash_table: W,
        pagecache_lock: L,
        pagemap_lru_lock: L,
        nr_active_pages: W,
        nr_inactive_pages: W,
        active_list: W,
        inactive_list: W,
        kmap_lock: L,
        last_mapping: W,
        lru_list_lock: L,
        dirty_list: W,
        nr_dirty: W,
        size_dirty: W,
    }

    /// An empty structure, aligned to a line.
    #[repr(align(64))]
    struct Line;

    impl<L, W> Globals<L, W> {
        /// Checks that the compiler lays the structure out as computed.
        fn check(layout: &Layout) {
            assert_eq!((layout.size, layout.align), (size_of::<Self>(), align_of::<Self>()));
            let locks = [
                offset_of!(Self, kernel_flag),
                offset_of!(Self, pagecache_lock),
                offset_of!(Self, pagemap_lru_lock),
                offset_of!(Self, lru_list_lock),
                offset_of!(Self, kmap_lock),
            ];
            assert!(layout.locks.iter().map(|(_, at)| *at).eq(locks));
            let words = [
                offset_of!(Self, directory_version),
                offset_of!(Self, nr_inodes),
                offset_of!(Self, page_cache_size),
                offset_of!(Self, page_hash_table),
                offset_of!(Self, nr_active_pages),
                offset_of!(Self, nr_inactive_pages),
                offset_of!(Self, active_list),
                offset_of!(Self, inactive_list),
                offset_of!(Self, last_mapping),
                offset_of!(Self, dirty_list),
                offset_of!(Self, nr_dirty),
                offset_of!(Self, size_dirty),
            ];
            assert!(layout.words.iter().map(|(_, at)| *at).eq(words));
        }
    }

    /// The contents of each line, in order of addresses.
    fn lines(layout: &Layout) -> Vec<Vec<&'static str>> {
        let mut all: Vec<_> = layout.locks.iter().chain(&layout.words).copied().collect();
        all.sort_by_key(|(_, offset)| *offset);
        let by_line = all.chunk_by(|a, b| a.1 / 64 == b.1 / 64);
        by_line.map(|line| line.iter().map(|(name, _)| *name).collect()).collect()
    }

    #[test]
    fn as_linked_locks_share_lines_with_each_other_and_with_what_they_protect() {
        assert_eq!(
            lines(&linked()),
            [
                vec!["kernel_flag", "directory_version", "nr_inodes"],
                vec![
                    "page_cache_size",
                    "page_hash_table",
                    "pagecache_lock",
                    "pagemap_lru_lock",
                    "nr_active_pages",
                    "nr_inactive_pages",
                    "active_list",
                    "inactive_list"
                ],
                vec![
                    "kmap_lock",
                    "last_mapping",
                    "lru_list_lock",
                    "dirty_list",
                    "nr_dirty",
                    "size_dirty"
                ],
            ]
        );
    }

    #[test]
    fn aligned_locks_are_alone_and_all_else_is_in_the_same_order() {
        let (linked, aligned) = (linked(), aligned());
        for (name, offset) in &aligned.locks {
            let line = lines(&aligned).into_iter().find(|line| line.contains(name));
            assert_eq!(line, Some(vec![*name]));
            assert_eq!(offset % 64, 0);
        }
        assert_eq!(lines(&linked).concat(), lines(&aligned).concat());
    }

    /// The offsets hold for any size and alignment of a lock.
    #[test]
    fn the_offsets_are_those_of_structures() {
        fn check<L>() {
            let of = LayoutOf::types::<L, usize>();
            Globals::<InAWord<L, usize>, usize>::check(&Layout::globals(of, false));
            Globals::<InALine<L>, usize>::check(&Layout::globals(of, true));
        }
        check::<u8>();
        check::<u32>();
        check::<[u64; 9]>();
        check::<Line>();
    }
}
