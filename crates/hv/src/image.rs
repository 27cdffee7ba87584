//! Lays out the memory of a domain: page tables, the program, and what host and guest share.
//!
//! ```text
//!   0        page tables and the task state segment, which ring 3 cannot touch
//!   2 MiB    the program, where it wants to be
//!            the heap
//!            stacks, one for each vCPU
//!            pages to touch, a part for each vCPU
//!            rings of traced moments, one for each vCPU
//!            statistics of locks and tasks
//!            the argument
//!            the pages of the vCPUs
//!   top      the page of the domain
//! ```

use crate::memory::GuestMemory;
use crate::program::Program;
use overspin_guest_abi::{LOWEST, LockStats, MAGIC, SharedInfo, TaskStats, Traced, VcpuPage};
use std::sync::atomic::Ordering;

/// Bytes that one entry of the lowest page table maps.
const LARGE_PAGE: u64 = 2 << 20;
const PAGE: u64 = 4096;
/// Stack of a vCPU.
const STACK: u64 = 256 << 10;
/// Memory that the program may allocate from. Each of its tasks has [`TASK`] bytes in addition, for its stack and its
/// record.
const HEAP: u64 = 16 << 20;
const TASK: u64 = 72 << 10;
/// Pages to touch of a vCPU. All are taken away at once under the hypervisor's lock, so they are few.
const TOUCHED: u64 = 1 << 20;
/// The most memory that one table of large pages maps.
const MOST: u64 = 512 * LARGE_PAGE;
/// Traced moments in the ring of a vCPU.
const RING: u64 = 1 << 15;

/// What a domain shares with the host, and how much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub vcpus: u32,
    pub locks: u32,
    /// vCPUs and tasks of which it tells what they did at locks.
    pub lockers: u32,
    /// Tasks of which it tells what they did.
    pub tasks: u32,
    /// Most tasks at a time.
    pub live: u32,
    /// Whether it touches pages.
    pub touches: bool,
}

impl Sizes {
    /// A domain without locks, tasks and pages to touch.
    pub(crate) fn bare(vcpus: u32) -> Self {
        Self { vcpus, locks: 0, lockers: 0, tasks: 0, live: 0, touches: false }
    }
}

/// A domain's memory, ready to run. Addresses are the guest's.
#[derive(Debug)]
pub(crate) struct Image {
    pub memory: GuestMemory,
    pub entry: u64,
    pub sizes: Sizes,
    info: u64,
    pages: u64,
    stacks: u64,
    rings: u64,
    lock_stats: u64,
    task_stats: u64,
    touch: u64,
}

/// Address of the top page table.
pub(crate) const PAGE_TABLES: u64 = PAGE;
/// Address of the task state segment: 104 bytes, and a bit for each I/O port, 0 if ring 3 may use it.
pub(crate) const TASK_STATE: u64 = 0x10_0000;
/// Its last byte: the bits are followed by a byte of ones.
pub(crate) const TASK_STATE_LIMIT: u32 = 104 + 8192;

impl Image {
    /// Makes the memory of a domain that runs `program` with `argument`.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub(crate) fn new(program: &Program, sizes: Sizes, argument: &[u8]) -> Result<Self, String> {
        // Of a domain that is too large, a size is as large as numbers are, and refused below.
        let round = |size: u64| size.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let of = |count: u64, size: usize| round(count.saturating_mul(size as u64));
        let vcpus = u64::from(sizes.vcpus);
        let heap_len = HEAP + u64::from(sizes.live) * TASK;
        let parts = [
            heap_len,
            vcpus * STACK,
            if sizes.touches { vcpus * TOUCHED } else { 0 },
            of(vcpus * RING, size_of::<Traced>()),
            of(u64::from(sizes.lockers) * u64::from(sizes.locks), size_of::<LockStats>()),
            of(sizes.tasks.into(), size_of::<TaskStats>()),
            round(argument.len() as u64 + 1),
            vcpus * size_of::<VcpuPage>() as u64,
            size_of::<SharedInfo>() as u64,
        ];
        let mut at = round(program.end);
        let starts = parts.map(|size| {
            let start = at;
            at = at.saturating_add(size);
            start
        });
        if at > MOST {
            return Err(format!("its memory would be {} MiB; the most is 1 GiB", at >> 20));
        }
        let len = at.next_multiple_of(LARGE_PAGE);
        let memory = usize::try_from(len)
            .map_err(std::io::Error::other)
            .and_then(GuestMemory::new)
            .map_err(|error| format!("there is no memory for it: {error}"))?;
        let [heap, stacks, touch, rings, lock_stats, task_stats, args, pages, info] = starts;
        let image = Self {
            memory,
            entry: program.entry,
            sizes,
            info,
            pages,
            stacks,
            rings,
            lock_stats,
            task_stats,
            touch,
        };
        image.map_pages();
        for (at, bytes) in &program.parts {
            assert!(image.memory.write(*at, bytes), "the program is below the end of the memory");
        }
        assert!(image.memory.write(args, argument));
        let told = image.info();
        let set = |word: &std::sync::atomic::AtomicU64, value| word.store(value, Ordering::Relaxed);
        told.vcpus.store(sizes.vcpus, Ordering::Relaxed);
        told.locks.store(sizes.locks, Ordering::Relaxed);
        told.tasks.store(sizes.tasks, Ordering::Relaxed);
        set(&told.magic, MAGIC);
        set(&told.pages, pages);
        set(&told.argument, args);
        set(&told.argument_len, argument.len() as u64);
        set(&told.heap, heap);
        set(&told.heap_len, heap_len);
        set(&told.touch, touch);
        set(&told.touch_len, if sizes.touches { TOUCHED } else { 0 });
        set(&told.lock_stats, lock_stats);
        set(&told.task_stats, task_stats);
        set(&told.rings, rings);
        set(&told.ring_len, RING);
        for v in 0..sizes.vcpus {
            let page = image.page(v);
            set(&page.this, image.address_of_page(v));
            page.id.store(v, Ordering::Relaxed);
            page.state.store(3, Ordering::Relaxed);
            page.upcalls.store(!overspin_guest_abi::event::KICK, Ordering::Relaxed);
            set(&page.slice_end, overspin_guest_abi::NEVER);
            set(&page.deadline, overspin_guest_abi::NEVER);
        }
        Ok(image)
    }

    /// Virtual addresses are physical ones, in large pages. Ring 3 may use all but the first, where the tables are.
    fn map_pages(&self) {
        const PRESENT: u64 = 1;
        const WRITE: u64 = 1 << 1;
        const USER: u64 = 1 << 2;
        const LARGE: u64 = 1 << 7;
        let tables = [PAGE_TABLES, PAGE_TABLES + PAGE, PAGE_TABLES + 2 * PAGE];
        let put = |at, word| assert!(self.memory.write_word(at, word));
        put(tables[0], tables[1] | PRESENT | WRITE | USER);
        put(tables[1], tables[2] | PRESENT | WRITE | USER);
        for i in 0..self.memory.len() as u64 / LARGE_PAGE {
            let user = if i * LARGE_PAGE < LOWEST { 0 } else { USER };
            put(tables[2] + 8 * i, (i * LARGE_PAGE) | PRESENT | WRITE | user | LARGE);
        }
        // Where the map of ports begins, and the byte that ends it. The map itself is 0: all are permitted.
        assert!(self.memory.write(TASK_STATE + 102, &104_u16.to_le_bytes()));
        assert!(self.memory.write(TASK_STATE + u64::from(TASK_STATE_LIMIT), &[0xff]));
    }

    /// The page of the domain.
    pub(crate) fn info(&self) -> &SharedInfo {
        self.memory.shared(self.info).expect("the layout has a place for it")
    }

    pub(crate) fn address_of_info(&self) -> u64 {
        self.info
    }

    /// The page of a vCPU.
    pub(crate) fn page(&self, vcpu: u32) -> &VcpuPage {
        assert!(vcpu < self.sizes.vcpus);
        self.memory.shared(self.address_of_page(vcpu)).expect("the layout has a place for it")
    }

    pub(crate) fn address_of_page(&self, vcpu: u32) -> u64 {
        self.pages + u64::from(vcpu) * size_of::<VcpuPage>() as u64
    }

    /// The end of the stack of a vCPU.
    pub(crate) fn stack_of(&self, vcpu: u32) -> u64 {
        self.stacks + u64::from(vcpu + 1) * STACK
    }

    /// What a vCPU, or a task in user mode, did at a lock.
    pub(crate) fn lock_stats(&self, locker: u32, lock: u32) -> &LockStats {
        let index = u64::from(locker) * u64::from(self.sizes.locks) + u64::from(lock);
        let at = self.lock_stats + index * size_of::<LockStats>() as u64;
        self.memory.shared(at).expect("the layout has a place for it")
    }

    /// What a task did.
    pub(crate) fn task_stats(&self, task: u32) -> &TaskStats {
        let at = self.task_stats + u64::from(task) * size_of::<TaskStats>() as u64;
        self.memory.shared(at).expect("the layout has a place for it")
    }

    /// Takes the pages that a vCPU has touched away.
    pub(crate) fn forget_touched(&self, vcpu: u32) {
        if self.sizes.touches {
            self.memory.forget(self.touch + u64::from(vcpu) * TOUCHED, TOUCHED);
        }
    }

    /// The traced moments of a vCPU since the last call. The vCPU must not run meanwhile.
    pub(crate) fn take_traced(&self, vcpu: u32) -> impl Iterator<Item = &Traced> {
        // Whatever the guest wrote there, no more than the ring is read.
        let count = self.page(vcpu).traced.swap(0, Ordering::Acquire).min(RING as u32);
        let first = self.rings + u64::from(vcpu) * RING * size_of::<Traced>() as u64;
        (0..u64::from(count)).map(move |i| {
            let at = first + i * size_of::<Traced>() as u64;
            self.memory.shared(at).expect("the layout has a place for it")
        })
    }
}
