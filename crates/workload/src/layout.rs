//! Where locks and the data beside them lie in a kernel's memory: the offsets of real structs.
//!
//! The five locks are those that were moved to cache lines of their own in September 2001, and the
//! data are what the code under them writes all the time. In the order of linking, `arch/i386/kernel`,
//! `mm`, `fs`, they come from `smp.c`, `filemap.c` with the lists of `page_alloc.c`, `highmem.c` and
//! `buffer.c`. The link map of the published kernel is lost, so this is one that could have been.
//!
//! A line of a Pentium III has 32 bytes, eight of its words. The simulated one has 64 bytes, eight
//! words of a `usize` of today; so a word here stands for a word there, and the lines are the same.
//!
//! | line as linked | contents |
//! |---|---|
//! | 0 | **`kernel_flag`**, the version number of directories, the number of inodes, the rest cold |
//! | 1 | size and table of the page cache, **`pagecache_lock`**, **`pagemap_lru_lock`**, counts and lists of pages |
//! | 2 | **`kmap_lock`**, the last mapping, **`lru_list_lock`**, list, count and size of dirty buffers |

use crate::dbench::LOCKS;
use overspin_scenario::{Placement, Workload};
use std::mem::offset_of;

/// The offsets of locks and words in a region of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the region.
    pub size: usize,
    /// Alignment of the region.
    pub align: usize,
    /// Name and offset of each lock, in the order of [`lock_names`](crate::lock_names).
    pub locks: Vec<(&'static str, usize)>,
    /// Name and offset of each word.
    pub words: Vec<(&'static str, usize)>,
}

/// The layout of a workload's kernel with locks of type `L` and words of type `W`; `None` if its
/// locks are not among other data.
#[must_use]
pub fn layout<L, W>(workload: &Workload) -> Option<Layout> {
    match workload {
        Workload::Dbench(w) => Some(match w.placement {
            Placement::Linked => Globals::<InAWord<L, W>, W>::layout(),
            Placement::Aligned => Globals::<InALine<L>, W>::layout(),
        }),
        _ => None,
    }
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

/// The kernel's variables. `L` is a lock with or without a line around it, and nothing else differs.
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

/// Nothing, at the start of a line.
#[repr(align(64))]
struct Line;

macro_rules! words {
    ($($word:ident: $field:ident),+ $(,)?) => {
        /// The words, in the order of [`Layout::words`].
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Word {
            $($word),+
        }

        impl<L, W> Globals<L, W> {
            fn words() -> Vec<(&'static str, usize)> {
                vec![$((stringify!($field), offset_of!(Self, $field))),+]
            }
        }
    };
}

words! {
    DirectoryVersion: directory_version,
    NrInodes: nr_inodes,
    PageCacheSize: page_cache_size,
    PageHashTable: page_hash_table,
    NrActivePages: nr_active_pages,
    NrInactivePages: nr_inactive_pages,
    ActiveList: active_list,
    InactiveList: inactive_list,
    LastMapping: last_mapping,
    DirtyList: dirty_list,
    NrDirty: nr_dirty,
    SizeDirty: size_dirty,
}

impl<L, W> Globals<L, W> {
    fn layout() -> Layout {
        let offsets = [
            offset_of!(Self, kernel_flag),
            offset_of!(Self, pagecache_lock),
            offset_of!(Self, pagemap_lru_lock),
            offset_of!(Self, lru_list_lock),
            offset_of!(Self, kmap_lock),
        ];
        Layout {
            size: size_of::<Self>(),
            align: align_of::<Self>(),
            locks: LOCKS.into_iter().zip(offsets).collect(),
            words: Self::words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Linked = Globals<InAWord<u32, usize>, usize>;
    type Aligned = Globals<InALine<u32>, usize>;

    /// What lies in each line, in order of addresses.
    fn lines(layout: &Layout) -> Vec<Vec<&'static str>> {
        let mut all: Vec<_> = layout.locks.iter().chain(&layout.words).copied().collect();
        all.sort_by_key(|(_, offset)| *offset);
        let by_line = all.chunk_by(|a, b| a.1 / 64 == b.1 / 64);
        by_line.map(|line| line.iter().map(|(name, _)| *name).collect()).collect()
    }

    #[test]
    fn as_linked_locks_share_lines_with_each_other_and_with_what_they_protect() {
        assert_eq!(
            lines(&Linked::layout()),
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
        let (linked, aligned) = (Linked::layout(), Aligned::layout());
        for (name, offset) in &aligned.locks {
            let line = lines(&aligned).into_iter().find(|line| line.contains(name));
            assert_eq!(line, Some(vec![*name]));
            assert_eq!(offset % 64, 0);
        }
        assert_eq!(lines(&linked).concat(), lines(&aligned).concat());
    }

    #[test]
    fn nothing_overlaps_whatever_the_size_of_a_lock() {
        fn check<L>(layout: &Layout) {
            let locks = layout.locks.iter().map(|(_, offset)| (*offset, size_of::<L>()));
            let words = layout.words.iter().map(|(_, offset)| (*offset, size_of::<usize>()));
            let mut all: Vec<_> = locks.chain(words).collect();
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            assert!(all.last().is_some_and(|(offset, size)| offset + size <= layout.size));
        }
        check::<u8>(&Globals::<InAWord<u8, usize>, usize>::layout());
        check::<[u64; 9]>(&Globals::<InAWord<[u64; 9], usize>, usize>::layout());
        check::<[u64; 9]>(&Globals::<InALine<[u64; 9]>, usize>::layout());
    }
}
