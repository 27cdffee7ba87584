//! dbench: closed forms of its disk, sums that must agree, and the effect of cache lines on lock holders.

use crate::common::{domain, host, run, scenario};
use overspin_scenario::{
    DiskOutcome, DomainOutcome, Ending, Kernel, LineOutcome, MS, NS, Outcome, Picos, SEC, Scenario,
    US,
};
use overspin_workload::{Dbench, Disk, Placement, Sections};

pub fn small(clients: u32) -> Dbench {
    Dbench {
        clients,
        files: 4,
        pages: 25,
        operations: 200,
        user: 5 * US,
        copy: 5 * US,
        dirty_limit: 1_000_000,
        placement: Placement::Linked,
        sections: Sections::default(),
        disk: Disk { seek: 3 * MS, page: 100 * US, request: 32 },
    }
}

fn of(vcpus: u32, work: Dbench) -> Scenario {
    let mut host = host(vcpus, "null");
    (host.costs.context_switch, host.costs.hypercall) = (Picos::ZERO.into(), Picos::ZERO.into());
    let kernel = Kernel { vmstat: Some(MS), ..Kernel::default() };
    let guest = domain(vcpus, "qspinlock-tas", work);
    let guest = overspin_scenario::Domain { kernel, ..guest };
    scenario(host, vec![guest], 60 * SEC)
}

#[track_caller]
fn finished(s: &Scenario) -> DomainOutcome {
    let outcome = run(s, 1);
    assert_eq!(outcome.ending, Ending::Finished);
    outcome.domains[0].clone()
}

fn disk(work: Dbench) -> DiskOutcome {
    finished(&of(1, work)).disk.expect("dbench has a disk")
}

#[test]
fn a_writer_alone_never_seeks() {
    // No page may be dirty, so each of the 100 is written by itself, one behind the other.
    let each = disk(Dbench { dirty_limit: 0, ..small(1) });
    let busy = 100 * 100 * US;
    assert_eq!(each, DiskOutcome { pages: 100, requests: 100, seeks: 0, busy });
    // With a limit of 60, page 61 makes it write 32 pages, and so does page 93 (61 are dirty again). That is
    // two batches, each in order and so one request.
    let batches = disk(Dbench { dirty_limit: 60, ..small(1) });
    assert_eq!(batches, DiskOutcome { pages: 64, requests: 2, seeks: 0, busy: 64 * 100 * US });
    // The same in requests of at most 8 pages: they follow each other without a gap too.
    let short = Disk { request: 8, ..small(1).disk };
    let short = disk(Dbench { dirty_limit: 60, disk: short, ..small(1) });
    assert_eq!(short, DiskOutcome { pages: 64, requests: 8, seeks: 0, busy: 64 * 100 * US });
}

#[test]
fn nobody_writes_below_the_limit() {
    let idle = disk(Dbench { dirty_limit: 300, ..small(3) });
    assert_eq!(idle, DiskOutcome::default());
}

#[test]
fn what_is_written_went_out() {
    for (vcpus, clients, limit) in [(1, 3, 0), (2, 7, 100), (4, 5, 350), (4, 22, 1000)] {
        // So many operations that no client removes pages before all are made: removed pages are not written.
        let work = Dbench { dirty_limit: limit, operations: 5000, ..small(clients) };
        let domain = finished(&of(vcpus, work.clone()));
        let disk = domain.disk.as_ref().expect("dbench has a disk");
        let printed: u64 = domain.vmstat.iter().map(|l| l.pages_out).sum();
        assert_eq!(printed, disk.pages);
        assert_eq!(disk.busy, disk.seeks * work.disk.seek + disk.pages * work.disk.page);
        assert!(disk.seeks <= disk.requests && disk.requests <= disk.pages);
        // Each page is made dirty once, and at most `limit` of them were left.
        let made = u64::from(clients * work.files * work.pages);
        assert!(disk.pages <= made && made - disk.pages <= u64::from(limit), "{disk:?} of {made}");
        // The sums of vmstat are the tasks' charges, and no task is left at the end.
        let charged = |of: fn(&overspin_scenario::TaskOutcome) -> Picos| -> Picos {
            domain.tasks.iter().map(of).sum()
        };
        let lines = |of: fn(&overspin_scenario::VmstatLine) -> Picos| -> Picos {
            domain.vmstat.iter().map(of).sum()
        };
        assert_eq!(lines(|l| l.user), charged(|t| t.user_ticks));
        assert_eq!(lines(|l| l.system), charged(|t| t.system_ticks));
        let last = domain.vmstat.last().expect("a line for the end");
        assert_eq!((last.running, last.blocked), (0, 0));
        assert!(domain.vmstat.iter().all(|l| l.running + l.blocked <= clients + 1));
    }
}

#[test]
fn every_section_is_counted_once() {
    let domain = finished(&of(2, small(2)));
    let taken: Vec<(&str, u64)> =
        domain.locks[..5].iter().map(|l| (l.name.as_str(), l.acquisitions)).collect();
    // Two clients with 4 files of 25 pages and 200 operations each, by the table of the workload. Every
    // page is made dirty and removed; every eighth operation looks a name up.
    let (files, pages, operations) = (2 * 4, 2 * 100, 2 * 200);
    assert_eq!(
        taken,
        [
            ("kernel_flag", 2 * files + pages + operations / 8),
            ("pagecache_lock", 2 * pages + operations),
            ("pagemap_lru_lock", 2 * pages + operations),
            ("lru_list_lock", 2 * pages + operations / 2),
            ("kmap_lock", 2 * (pages + operations)),
        ]
    );
}

fn on(vcpus: u32, placement: Placement) -> Outcome {
    // Distant lines and no work outside of locks: the lock always has waiters if there are other vCPUs.
    let mut s =
        of(vcpus, Dbench { placement, user: Picos::ZERO, copy: Picos::ZERO, ..small(2 * vcpus) });
    (s.host.costs.cross_core, s.host.costs.cross_socket) = (300 * NS, 300 * NS);
    run(&s, 1)
}

/// Lines with data that were accessed.
fn used(outcome: &Outcome) -> impl Iterator<Item = &LineOutcome> {
    outcome.domains[0].lines.iter().filter(|l| l.accesses > 0)
}

#[test]
fn alone_a_holder_loses_no_line() {
    for placement in [Placement::Linked, Placement::Aligned] {
        let outcome = on(1, placement);
        // The first access fetches the line; no other vCPU takes it away.
        assert!(used(&outcome).count() >= 3);
        for line in used(&outcome) {
            assert!(line.misses <= 1 && line.lost == 0, "{line:?}");
        }
    }
}

#[test]
fn waiters_take_the_line_of_the_lock_away_and_what_else_is_in_it() {
    let (linked, aligned) = (on(8, Placement::Linked), on(8, Placement::Aligned));
    let accesses = |o: &Outcome| used(o).map(|l| l.accesses).sum::<u64>();
    assert_eq!(accesses(&linked), accesses(&aligned), "both do the same");
    // With aligned data, only the holder of its lock accesses a line of data.
    let lost = |o: &Outcome| used(o).map(|l| l.lost).sum::<u64>();
    assert_eq!(lost(&aligned), 0);
    assert!(lost(&linked) > accesses(&linked) / 10);
    let hold = |o: &Outcome| o.domains[0].locks[..5].iter().map(|l| l.hold_total).sum::<Picos>();
    let stalled = |o: &Outcome| used(o).map(|l| l.stalled).sum::<Picos>();
    let saved = stalled(&linked) - stalled(&aligned);
    assert!(stalled(&linked) > stalled(&aligned));
    // The sections compute for equal times; only the accesses to data and the interrupts differ.
    let shorter = hold(&linked) - hold(&aligned);
    assert!(shorter > saved / 2 && shorter < saved * 2, "{shorter} of {saved} ps");
    assert_eq!(linked.domains[0].lines.len(), 3);
    // Five locks, and five groups of data between them.
    assert_eq!(aligned.domains[0].lines.len(), 10);
}

#[test]
fn equal_runs_are_equal() {
    let s = of(4, Dbench { dirty_limit: 100, ..small(9) });
    let (a, b) = (run(&s, 7), run(&s, 7));
    assert_eq!(a, b);
    assert_ne!(a.trace_hash, run(&s, 8).trace_hash);
}
