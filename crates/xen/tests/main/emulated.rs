//! Real Xen, emulated: boots it and makes a run under each of two schedulers. This takes a minute, so it runs only
//! in CI, and where the packages are already in the cache.

use overspin_testing::{deep, skip};
use overspin_xen::emulated::{Cache, Clock, Machine, run};
use overspin_xl::{Guest, GuestType, Job, Message, Pool};
use std::collections::BTreeMap;

fn guest(number: usize, work: &str) -> Guest {
    Guest {
        name: format!("overspin-{number}"),
        vcpus: 1,
        memory: 96,
        work: work.split(' ').map(str::to_owned).collect(),
        seed: number as u64,
        kernel_options: String::new(),
    }
}

#[test]
fn two_hogs_share_a_pcpu_under_each_scheduler() {
    if !deep() {
        return skip("emulated Xen, which takes a minute: OVERSPIN_DEEP=1");
    }
    let cache = Cache::of_user().unwrap();
    let Some(unpacked) = cache.unpacked().unwrap() else {
        return skip(&format!(
            "the packages of emulated Xen are not in {}",
            cache.folder().display()
        ));
    };
    let machine = Machine {
        unpacked,
        clock: Clock::Instructions(0),
        scheduler: "credit2".into(),
        watch: false,
        guest_type: GuestType::Pv,
        guest_kernel: None,
    };
    let job = |scheduler: &str| Job {
        name: scheduler.into(),
        pool: Pool { name: "bench".into(), scheduler: Some(scheduler.into()), cpus: vec![1] },
        guests: (0..2).map(|n| guest(n, "burnwait 70 0")).collect(),
        seconds: 2,
    };
    let jobs = [job("credit"), job("credit2"), job("none such")];
    let folder = tempfile::tempdir().unwrap();
    let mut done = BTreeMap::new();
    let mut failed = Vec::new();
    run(
        &machine,
        &jobs,
        folder.path(),
        &|_| Ok(()),
        &mut |message| match message {
            Message::Done { job, reports } => _ = done.insert(job, reports),
            Message::Failed { job, message } => failed.push((job, message)),
            other => println!("{other:?}"),
        },
        &|| false,
    )
    .unwrap();
    for (job, reports) in &done {
        for guest in reports {
            println!("{job}: {guest:?}");
        }
    }
    assert_eq!(done.len(), 2, "{failed:?}");
    // A scheduler that does not exist is an error of its run only, and names the command.
    assert_eq!(failed.len(), 1);
    assert!(failed[0].0 == Some(2) && failed[0].1.contains("cpupool-create"), "{failed:?}");
    for reports in done.values() {
        // Two guests that never wait get half of the pCPU each; a fifth more or less is the length of two time slices.
        for guest in reports {
            let (first, last) = (guest.first().unwrap(), guest.last().unwrap());
            let share = (last.cpu_time - first.cpu_time) as f64 / (last.at - first.at) as f64;
            assert!((0.4..=0.6).contains(&share), "a guest got {share} of the pCPU");
        }
    }
}
