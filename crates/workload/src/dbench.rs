//! Clients of a file server, as dbench replays them: each makes its files, reads and writes their pages,
//! and removes them.
//!
//! Under them is the code of a 2.4 kernel in so far as it takes the five hottest locks of that time, and
//! touches what lies beside them:
//!
//! | step | lock | writes |
//! |---|---|---|
//! | a file is made or removed | `kernel_flag` | version of the directory, number of inodes |
//! | a new page gets a place on the disk | `kernel_flag` | nothing |
//! | a name is looked up | `kernel_flag` | nothing |
//! | a page is found | `pagecache_lock` | nothing; reads where the hash table is |
//! | a page is added or removed | `pagecache_lock` | size of the cache |
//! | a page is used again | `pagemap_lru_lock` | its list |
//! | a page gets onto a list or leaves it | `pagemap_lru_lock` | the list, its length |
//! | a page is mapped | `kmap_lock` | number of the last mapping |
//! | a mapping is given back | `kmap_lock` | nothing |
//! | a buffer is written again | `lru_list_lock` | the list |
//! | a buffer gets dirty or clean | `lru_list_lock` | the list, its length, the sum of sizes |
//!
//! Each section computes half of its time before it touches the words, and half after.
//!
//! **Write-back.** Who makes more than `dirty_limit` pages dirty takes the oldest of them and
//! writes them to the disk before it goes on (`balance_dirty`). So writers pay for the writing, and how
//! much the disk has to choose from depends on how many write at a time. Pages on a client's part of
//! the disk follow each other in the order in which they were made.
//!
//! **Source.** dbench (Tridgell, 2001) for the phases; Linux 2.4.10, `mm/filemap.c`, `fs/buffer.c`,
//! `mm/highmem.c`, for which lock protects what. Left out: reading from the disk, `bdflush` and `kupdate`,
//! and the locks of the sixth place and beyond.

use crate::layout::Word;
use crate::{Env, LockId, LockUse, Mode, Program, Random, WordId, WorkloadInfo};
use overspin_scenario::{Dbench, Picos};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "dbench",
    brief: "clients of a file server under five global locks, with a page cache and a disk",
    source: "Tridgell's dbench; Linux 2.4.10 and Doelle's figures of September 2001",
};

/// Names of the locks, in the order of the constants below.
pub(crate) const LOCKS: [&str; 5] =
    ["kernel_flag", "pagecache_lock", "pagemap_lru_lock", "lru_list_lock", "kmap_lock"];
const KERNEL_FLAG: LockId = 0;
const PAGECACHE: LockId = 1;
const PAGEMAP_LRU: LockId = 2;
const LRU_LIST: LockId = 3;
const KMAP: LockId = 4;

/// Pages that a writer takes at a time when too many are dirty (`NRSYNC` of 2.4.10).
const BATCH: usize = 32;
/// One operation in so many looks a name up: opens, closes, asks for attributes.
const NAME_EVERY: u32 = 8;
/// One operation in so many writes; the others read.
const WRITE_EVERY: u32 = 2;
/// Bytes of a page.
const PAGE: usize = 4096;

/// What all clients share: the pages that are dirty. Their number is in the kernel's memory.
#[derive(Debug)]
struct Buffers {
    /// In the order in which they got dirty; those that were removed since are still in it.
    oldest: VecDeque<u64>,
    /// By page.
    dirty: Vec<bool>,
}

pub(crate) fn start(w: &Dbench) -> Vec<(String, Option<u32>, Program)> {
    let w = Rc::new(w.clone());
    vec![("dbench".into(), None, Box::new(move |env| dbench(env, &w)))]
}

fn dbench(env: &dyn Env, w: &Rc<Dbench>) {
    let of_client = u64::from(w.files) * u64::from(w.pages);
    let buffers = Rc::new(RefCell::new(Buffers {
        oldest: VecDeque::new(),
        dirty: vec![false; (of_client * u64::from(w.clients)) as usize],
    }));
    let finished = env.semaphore(0);
    for i in 0..w.clients {
        let (w, buffers) = (Rc::clone(w), Rc::clone(&buffers));
        let client: Program = Box::new(move |env| {
            let random = env.random(0);
            let first = of_client * u64::from(i);
            let mut client = Client { env, w: &w, buffers: &buffers, random, first };
            client.make();
            client.operate();
            client.remove();
            env.up(finished);
        });
        env.spawn(format!("client{i}"), None, client);
    }
    for _ in 0..w.clients {
        env.down(finished);
    }
}

struct Client<'a> {
    env: &'a dyn Env,
    w: &'a Dbench,
    buffers: &'a RefCell<Buffers>,
    random: Random,
    /// First of its pages.
    first: u64,
}

impl Client<'_> {
    fn make(&mut self) {
        for file in 0..self.w.files {
            self.change_directory(1);
            for page in self.pages_of(file) {
                self.add_page();
                self.copy();
                if self.dirty(page) > self.w.dirty_limit as usize {
                    self.balance();
                }
                self.back_to_user();
            }
            self.env.item_done();
        }
    }

    fn operate(&mut self) {
        for i in 0..self.w.operations {
            let user = self.random.exponential(self.w.user);
            self.env.compute(user, Mode::User);
            if i % NAME_EVERY == 0 {
                self.section(KERNEL_FLAG, self.w.sections.name, |_| ());
            }
            self.section(PAGECACHE, self.w.sections.pagecache, |env| {
                env.read(Word::PageHashTable as WordId);
            });
            self.section(PAGEMAP_LRU, self.w.sections.pagemap_lru, |env| {
                add(env, Word::ActiveList, 1);
            });
            self.copy();
            if i % WRITE_EVERY == 0 {
                self.section(LRU_LIST, self.w.sections.lru_list, |env| {
                    add(env, Word::DirtyList, 1);
                });
            }
            self.env.item_done();
        }
    }

    fn remove(&mut self) {
        for file in 0..self.w.files {
            for page in self.pages_of(file) {
                self.section(PAGECACHE, self.w.sections.pagecache, |env| {
                    env.read(Word::PageHashTable as WordId);
                    add(env, Word::PageCacheSize, -1);
                });
                self.section(PAGEMAP_LRU, self.w.sections.pagemap_lru, |env| {
                    add(env, Word::ActiveList, -1);
                    add(env, Word::NrActivePages, -1);
                });
                let buffers = self.buffers;
                self.section(LRU_LIST, self.w.sections.lru_list, |env| {
                    if std::mem::take(&mut buffers.borrow_mut().dirty[page as usize]) {
                        count_dirty(env, -1);
                    }
                });
            }
            self.back_to_user();
            self.change_directory(-1);
            self.env.item_done();
        }
    }

    /// A system call ends: other tasks may take over.
    fn back_to_user(&self) {
        self.env.compute(0, Mode::User);
    }

    fn pages_of(&self, file: u32) -> std::ops::Range<u64> {
        let pages = u64::from(self.w.pages);
        let first = self.first + u64::from(file) * pages;
        first..first + pages
    }

    /// Takes a lock for about `time`, and `touch`es data halfway.
    fn section(&mut self, lock: LockId, time: Picos, touch: impl FnOnce(&dyn Env)) {
        let time = self.random.exponential(time);
        self.env.acquire(lock, LockUse::Plain);
        self.env.compute(time / 2, Mode::Kernel);
        touch(self.env);
        self.env.compute(time - time / 2, Mode::Kernel);
        self.env.release(lock);
    }

    fn change_directory(&mut self, files: isize) {
        self.section(KERNEL_FLAG, self.w.sections.directory, |env| {
            add(env, Word::DirectoryVersion, 1);
            add(env, Word::NrInodes, files);
        });
    }

    fn add_page(&mut self) {
        self.section(KERNEL_FLAG, self.w.sections.block, |_| ());
        self.section(PAGECACHE, self.w.sections.pagecache, |env| {
            env.read(Word::PageHashTable as WordId);
            add(env, Word::PageCacheSize, 1);
        });
        self.section(PAGEMAP_LRU, self.w.sections.pagemap_lru, |env| {
            add(env, Word::InactiveList, 1);
            add(env, Word::NrInactivePages, 1);
        });
    }

    /// Copies between a page, which has to be mapped for that, and the client.
    fn copy(&mut self) {
        self.section(KMAP, self.w.sections.kmap, |env| {
            add(env, Word::LastMapping, 1);
        });
        let time = self.random.exponential(self.w.copy);
        self.env.compute(time, Mode::Kernel);
        self.section(KMAP, self.w.sections.kmap, |_| ());
    }

    /// Makes a page dirty; how many are now.
    fn dirty(&mut self, page: u64) -> usize {
        let buffers = self.buffers;
        let mut dirty = 0;
        self.section(LRU_LIST, self.w.sections.lru_list, |env| {
            let mut buffers = buffers.borrow_mut();
            buffers.oldest.push_back(page);
            buffers.dirty[page as usize] = true;
            drop(buffers);
            dirty = count_dirty(env, 1);
        });
        dirty
    }

    /// Writes the oldest dirty pages to the disk.
    fn balance(&mut self) {
        let buffers = self.buffers;
        let mut batch = Vec::new();
        self.section(LRU_LIST, self.w.sections.lru_list, |env| {
            let mut buffers = buffers.borrow_mut();
            while batch.len() < BATCH
                && let Some(page) = buffers.oldest.pop_front()
            {
                if std::mem::take(&mut buffers.dirty[page as usize]) {
                    batch.push(page);
                }
            }
            drop(buffers);
            count_dirty(env, -(batch.len() as isize));
        });
        if !batch.is_empty() {
            self.env.write_out(&batch);
        }
    }
}

/// The list of dirty buffers got so many more; `lru_list_lock` is held. Returns how many are on it.
fn count_dirty(env: &dyn Env, pages: isize) -> usize {
    add(env, Word::DirtyList, 1);
    add(env, Word::SizeDirty, pages * PAGE as isize);
    add(env, Word::NrDirty, pages)
}

/// Adds to a word under its lock. Words of lists stand for a pointer that gets a new value.
fn add(env: &dyn Env, word: Word, change: isize) -> usize {
    let value = env.read(word as WordId).wrapping_add_signed(change);
    env.write(word as WordId, value);
    value
}
