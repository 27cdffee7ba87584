//! Clients of a file server, as dbench replays them: each makes its files, reads and writes their pages,
//! and removes them.
//!
//! Below them, a model of the 2.4 kernel takes the five hottest locks of that time and touches the data
//! beside them:
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
//! **Write-back.** A client that makes more than `dirty_limit` pages dirty takes the oldest of them and
//! writes them to the disk before it goes on (`balance_dirty`). So writers pay for the writing, and the
//! disk's choice depends on how many write at a time. Pages on a client's part of the disk follow each other
//! in the order in which they were made.
//!
//! **Source.** dbench (Tridgell, 2001) for the phases; Linux 2.4.10, `mm/filemap.c`, `fs/buffer.c`,
//! `mm/highmem.c`, for which lock protects what. Left out: reading from the disk, `bdflush` and `kupdate`,
//! and all locks after the fifth.

use crate::disk::{DISK, Disk};
use crate::layout::{LayoutOf, Word};
use crate::parameters::parameters;
use crate::queue::Queue;
use crate::{
    Env, Fault, Layout, Load, LockId, LockUse, Mode, Program, Random, Start, WordId, WorkloadInfo,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use overspin_scenario::{Parameters, Picos, defaults, words};

words! {
    Placement, "Where the five locks lie among the kernel's data." {
        Linked = "linked",
            "In the order of their definition, several locks and what they protect in one cache line.";
        Aligned = "aligned",
            "The same order, but each lock is as large as a cache line and begins one.";
    }
}

parameters! {
    Dbench: pub(crate) KEYS at "[domain.workload] with kind = \"dbench\"",
    "Clients of a file server that make files, read and write them, and remove them, over a page \
     cache, five global locks and a disk." {
        clients: u32 = integer(1, 10_000), Required, "N of `dbench N`.";
        files: u32 = integer(1, 1_000_000), Is("100"),
            "Files that each client makes, and then removes.";
        pages: u32 = integer(1, 1_000_000), Is("10"), "Pages of each file, 4 KiB each.";
        operations: u32 = integer(0, u32::MAX as u64), Is("10000"),
            "Reads and writes of each client in between, all in the page cache.";
        user: Picos = COST, Is("10us"), "Mean user time of an operation (exponential).";
        copy: Picos = COST, Is("10us"),
            "Mean kernel time, outside locks, of an operation on a page (exponential).";
        dirty_limit: u32 = integer(0, u32::MAX as u64), Is("10000"),
            "Pages that may be dirty; a client that makes more dirty writes some to the disk, and waits.";
        placement: Placement = Choice(Placement::WORDS), Is("linked"),
            "Where the locks lie among the kernel's data: as linked, or each in its own cache line.";
        sections: Sections = Table(&SECTIONS), Defaults("as below"),
            "Times of critical sections.";
        disk: Disk = Table(&DISK), Defaults("as below"), "The disk.";
    }
}

parameters! {
    Sections: pub(crate) SECTIONS at "[domain.workload.sections]",
    "Mean times of dbench's critical sections (exponential), without waiting for cache lines." {
        directory: Picos = COST, Is("10us"), "`kernel_flag`, to make or remove a file.";
        block: Picos = COST, Is("5us"),
            "`kernel_flag`, to find a place on the disk for a new page.";
        name: Picos = COST, Is("5us"), "`kernel_flag`, to look up a name.";
        pagecache: Picos = COST, Is("1us"), "`pagecache_lock`, to find, add or remove a page.";
        pagemap_lru: Picos = COST, Is("1us"), "`pagemap_lru_lock`, to move a page between lists.";
        lru_list: Picos = COST, Is("2us"), "`lru_list_lock`, to move a buffer between lists.";
        kmap: Picos = COST, Is("500ns"), "`kmap_lock`, to map a page or to unmap it.";
    }
}

// Orders of magnitude for a processor of 700 MHz.
defaults!(Sections {});

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Dbench>(
    "clients of a file server under five global locks, with a page cache and a disk",
    "Tridgell's dbench; Linux 2.4.10 and Doelle's figures of September 2001",
    &KEYS,
);

impl Parameters for Dbench {
    const KIND: &'static str = "dbench";
}

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
/// One operation in this many looks up a name: it opens, closes, or asks for attributes.
const NAME_EVERY: u32 = 8;
/// One operation in this many writes; the others read.
const WRITE_EVERY: u32 = 2;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Most pages that all files of a dbench may have; each takes some bytes here.
const MOST_PAGES: u64 = 100_000_000;

/// State that all clients share: the dirty pages. Their number is in the kernel's memory. `lru_list_lock`
/// protects all of it, so `Relaxed` suffices: the world's lock orders the accesses.
#[derive(Debug)]
struct Buffers {
    /// Pages in the order in which they became dirty, including pages that were removed since.
    oldest: Queue,
    /// Whether each page is dirty.
    is_dirty: Vec<AtomicBool>,
}

impl Buffers {
    /// Each page becomes dirty once.
    fn new(pages: usize) -> Self {
        let is_dirty = (0..pages).map(|_| AtomicBool::new(false)).collect();
        Self { oldest: Queue::new(pages), is_dirty }
    }
}

impl Load for Dbench {
    fn check(&self) -> Result<(), Fault> {
        let pages = u128::from(self.clients) * u128::from(self.files) * u128::from(self.pages);
        if pages > MOST_PAGES.into() {
            let message = format!("{pages} pages in all; at most {MOST_PAGES} are possible");
            return Err(Fault::new("pages", message, "use fewer clients, files or pages"));
        }
        Ok(())
    }

    fn lock_names(&self) -> Vec<String> {
        LOCKS.iter().map(|name| (*name).into()).collect()
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1 + u64::from(self.clients)
    }

    fn disk(&self) -> Option<&Disk> {
        Some(&self.disk)
    }

    fn layout(&self, of: LayoutOf) -> Option<Layout> {
        Some(Layout::globals(of, self.placement == Placement::Aligned))
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let w = Arc::new(self.clone());
        let program: Program = Box::new(move |env| dbench(env, &w));
        vec![Start { name: "dbench".into(), vcpu: None, program }]
    }
}

fn dbench(env: &dyn Env, w: &Arc<Dbench>) {
    let of_client = u64::from(w.files) * u64::from(w.pages);
    let buffers = Arc::new(Buffers::new((of_client * u64::from(w.clients)) as usize));
    let finished = env.semaphore(0);
    for i in 0..w.clients {
        let (w, buffers) = (Arc::clone(w), Arc::clone(&buffers));
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
    buffers: &'a Buffers,
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
                    if buffers.is_dirty[page as usize].swap(false, Relaxed) {
                        count_dirty(env, -1);
                    }
                });
            }
            self.back_to_user();
            self.change_directory(-1);
            self.env.item_done();
        }
    }

    /// Ends a system call: other tasks may take over.
    fn back_to_user(&self) {
        self.env.compute(Picos::ZERO, Mode::User);
    }

    fn pages_of(&self, file: u32) -> core::ops::Range<u64> {
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

    /// Copies between the client and a page, which must be mapped for that.
    fn copy(&mut self) {
        self.section(KMAP, self.w.sections.kmap, |env| {
            add(env, Word::LastMapping, 1);
        });
        let time = self.random.exponential(self.w.copy);
        self.env.compute(time, Mode::Kernel);
        self.section(KMAP, self.w.sections.kmap, |_| ());
    }

    /// Makes a page dirty; returns the number of dirty pages.
    fn dirty(&mut self, page: u64) -> usize {
        let buffers = self.buffers;
        let mut dirty = 0;
        self.section(LRU_LIST, self.w.sections.lru_list, |env| {
            buffers.oldest.push(page as usize);
            buffers.is_dirty[page as usize].store(true, Relaxed);
            dirty = count_dirty(env, 1);
        });
        dirty
    }

    /// Writes the oldest dirty pages to the disk.
    fn balance(&mut self) {
        let buffers = self.buffers;
        let mut batch = Vec::new();
        self.section(LRU_LIST, self.w.sections.lru_list, |env| {
            while batch.len() < BATCH
                && let Some(page) = buffers.oldest.pop()
            {
                if buffers.is_dirty[page].swap(false, Relaxed) {
                    batch.push(page as u64);
                }
            }
            count_dirty(env, -(batch.len() as isize));
        });
        if !batch.is_empty() {
            self.env.write_out(&batch);
        }
    }
}

/// Adds `pages` to the list of dirty buffers, with `lru_list_lock` held. Returns the new length of the list.
fn count_dirty(env: &dyn Env, pages: isize) -> usize {
    add(env, Word::DirtyList, 1);
    add(env, Word::SizeDirty, pages * PAGE as isize);
    add(env, Word::NrDirty, pages)
}

/// Adds to a word under its lock. A list's word stands for a pointer that changes.
fn add(env: &dyn Env, word: Word, change: isize) -> usize {
    let value = env.read(word as WordId).wrapping_add_signed(change);
    env.write(word as WordId, value);
    value
}
