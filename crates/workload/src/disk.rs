//! The disk of a guest, for workloads that write.

use crate::parameters::parameters;
use overspin_scenario::{Picos, defaults};

parameters! {
    Disk: pub(crate) DISK at "[domain.workload.disk]",
    "The disk of a guest: it serves its queue from low to high addresses, and writes \
consecutive pages in one go. The defaults are a SCSI disk of 2001." {
        seek: Picos = COST, Is("8ms"),
            "Time to reach a page that does not follow the last one, rotation included.";
        page: Picos = time(NS, SEC), Is("200us"), "Time to write a page of 4 KiB.";
        request: u32 = integer(1, 1_000_000), Is("32"),
            "Most pages that it writes in one go.";
    }
}

// A SCSI disk of 2001 with 10,000 revolutions a minute: 5 ms to seek and 3 ms to half a revolution,
// 20 MB/s; requests of 128 KiB.
defaults!(Disk {});
