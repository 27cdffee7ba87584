//! The dbench workload and the disk behind it.

use crate::{MS, NS, Picos, US};
use serde::{Deserialize, Serialize};

/// Clients of a file server that make files, read and write them, and remove them; the kernel under
/// them has a page cache, five global locks, and a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dbench {
    /// Clients.
    pub clients: u32,
    /// Files that each client makes, and removes at the end.
    pub files: u32,
    /// Pages of each file.
    pub pages: u32,
    /// Reads and writes of each client between, all of pages in the cache.
    pub operations: u32,
    /// Mean user time of such an operation (exponential).
    pub user: Picos,
    /// Mean kernel time of an operation on a page outside of locks (exponential).
    pub copy: Picos,
    /// Pages that may be dirty; who makes more of them dirty writes some to the disk, and waits.
    pub dirty_limit: u32,
    /// Where the locks are.
    pub placement: Placement,
    /// Mean times of the critical sections.
    pub sections: Sections,
    /// The disk.
    pub disk: Disk,
}

/// Where the five locks lie among the kernel's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In the order of their definition, several locks and what they protect in one cache line.
    Linked,
    /// The same order, but each lock is as large as a cache line and begins one.
    Aligned,
}

/// Mean times in critical sections (exponential), without waiting for cache lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// `kernel_flag`, to make or remove a file.
    pub directory: Picos,
    /// `kernel_flag`, to find a place on the disk for a new page.
    pub block: Picos,
    /// `kernel_flag`, to look a name up.
    pub name: Picos,
    /// `pagecache_lock`, to find, add or remove a page.
    pub pagecache: Picos,
    /// `pagemap_lru_lock`, to move a page between lists.
    pub pagemap_lru: Picos,
    /// `lru_list_lock`, to move a buffer between lists.
    pub lru_list: Picos,
    /// `kmap_lock`, to map a page or to give the mapping back.
    pub kmap: Picos,
}

impl Default for Sections {
    /// Orders of magnitude for a processor of 700 MHz.
    fn default() -> Self {
        Self {
            directory: 10 * US,
            block: 5 * US,
            name: 5 * US,
            pagecache: US,
            pagemap_lru: US,
            lru_list: 2 * US,
            kmap: 500 * NS,
        }
    }
}

/// A disk with a queue that it serves in one direction, from low to high addresses, and then from the
/// lowest again. Pages that follow each other are written at one go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Time to get to a page that does not follow the last one, rotation included.
    pub seek: Picos,
    /// Time to write a page.
    pub page: Picos,
    /// Most pages that are written at one go.
    pub request: u32,
}

impl Default for Disk {
    /// A SCSI disk of 2001 with 10,000 revolutions a minute: 5 ms to seek and 3 ms to half a
    /// revolution, 20 MB/s; requests of 128 KiB.
    fn default() -> Self {
        Self { seek: 8 * MS, page: 200 * US, request: 32 }
    }
}
