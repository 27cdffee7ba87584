//! A plan's runs on real Xen: what to start there, and what came out in schedbench's form.

use super::file::{BenchFile, Report, Run, WorkerId};
use overspin_located::LocatedError;
use overspin_xl::{Guest, Job, Pool, SCHEDULERS, Sample};
use std::collections::BTreeMap;

/// Name of the pool if the plan gives none.
const POOL: &str = "schedbench";
/// Memory of a guest with one vCPU in MiB, which a kernel of a distribution needs, and for each further vCPU.
const MEMORY: (u32, u32) = (96, 8);
/// Most vCPUs of a paravirtual guest with Xen's usual tools.
const MOST_VCPUS: u32 = 128;
/// Longest command line of a worker, in bytes: Xen passes 1,024 bytes to a paravirtual kernel, and other options are in them.
const MOST_BYTES: usize = 700;

/// The pCPUs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XenCpus {
    /// The plan's.
    OfPlan,
    /// As many as the plan names, from 1 on; one if it names none.
    FromOne,
}

/// The job of a run on real Xen.
///
/// # Errors
/// If the plan names what Xen does not have.
pub fn xen_job(file: &BenchFile, run: &Run, seed: u64, cpus: XenCpus) -> Result<Job, LocatedError> {
    let (label, config) = (&run.label, &run.run_config);
    let scheduler = config.scheduler.clone().filter(|name| !name.is_empty());
    if let Some(name) = scheduler.as_deref().filter(|name| !SCHEDULERS.contains(name)) {
        let message = format!("run `{label}`: Xen has no scheduler `{name}`");
        return Err(file.error(name, message, &format!("Xen's are: {}", SCHEDULERS.join(", "))));
    }
    let pool = config.pool.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| POOL.into());
    if !pool.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) || pool.len() > 64 {
        let message = format!("run `{label}`: `{pool}` cannot be the name of a cpupool");
        let help = "use up to 64 letters, digits, dots, hyphens and underscores";
        return Err(file.error(&pool, message, help));
    }
    let cpus = match (cpus, &config.cpus) {
        (XenCpus::OfPlan, Some(cpus)) => cpus.clone(),
        (XenCpus::OfPlan, None) => {
            let message = format!("run `{label}` does not name the pool's pCPUs");
            return Err(file.error(label, message, "add RunConfig.Cpus, for example [2, 3]"));
        }
        (XenCpus::FromOne, cpus) => {
            (1..=cpus.as_ref().map_or(1, |cpus| cpus.len() as u32)).collect()
        }
    };
    let mut guests = Vec::new();
    for (set, workers) in run.worker_sets.iter().enumerate() {
        let work = &workers.params.args;
        file.worker(label, work)?;
        let vcpus = workers.params.vcpus.unwrap_or(1);
        if vcpus > MOST_VCPUS {
            let message = format!("run `{label}`: a guest of Xen has at most {MOST_VCPUS} vCPUs");
            return Err(file.error("Vcpus", message, "use fewer vCPUs, and more workers"));
        }
        let bytes = work.iter().map(|word| word.len() + 1).sum::<usize>();
        if bytes > MOST_BYTES {
            let message = format!("run `{label}`: a worker's command line has {bytes} bytes");
            let help = format!("a guest's kernel takes {MOST_BYTES} of them: use fewer items");
            return Err(file.error(label, message, &help));
        }
        guests.extend((0..workers.count).map(|id| Guest {
            name: format!("overspin-{set}-{id}"),
            vcpus,
            memory: MEMORY.0 + MEMORY.1 * (vcpus - 1),
            work: work.clone(),
            // Workers of a run differ, and so do runs of different seeds.
            seed: seed.wrapping_mul(1_000_003).wrapping_add((set as u64) << 20 | id),
            kernel_options: String::new(),
        }));
    }
    Ok(Job {
        name: label.clone(),
        pool: Pool { name: pool, scheduler, cpus },
        guests,
        seconds: run.runtime_seconds,
    })
}

/// The run with what its guests reported, in the order of its job's guests.
#[must_use]
pub fn xen_done(run: &Run, guests: &[Vec<Sample>]) -> Run {
    let ids =
        run.worker_sets.iter().enumerate().flat_map(|(set, workers)| {
            (0..workers.count as usize).map(move |id| WorkerId { set, id })
        });
    let mut all: Vec<Report> =
        ids.zip(guests).flat_map(|(id, samples)| sums(id, samples)).collect();
    // The sort is stable: workers that report at once keep their order.
    all.sort_by_key(|report| report.now);
    let mut done = run.clone();
    done.results.raw = Some(all);
    done.completed = true;
    done.origin = None;
    done
}

/// A guest's reports: the sums of its vCPUs, as far as all of them reported.
fn sums(id: WorkerId, samples: &[Sample]) -> Vec<Report> {
    let mut vcpus: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        vcpus.entry(sample.vcpu).or_default().push(sample);
    }
    let all_spoke = vcpus.keys().zip(0..).all(|(vcpu, number)| *vcpu == number);
    let shortest = vcpus.values().map(Vec::len).min().filter(|_| all_spoke).unwrap_or(0);
    let sum = |i: usize| {
        let mut sum = Report { id, ..Report::default() };
        let mut operations = 0_u64;
        // What a guest says is any number.
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        for sample in vcpus.values().map(|own| own[i]) {
            sum.now = sum.now.max(sample.at);
            add(&mut operations, sample.operations);
            sum.max_delta = sum.max_delta.max(sample.max_delta);
            add(&mut sum.cputime, sample.cpu_time);
            add(&mut sum.deadlines, sample.deadlines);
            add(&mut sum.missed, sample.missed);
        }
        sum.kops = operations / 1000;
        sum
    };
    (0..shortest).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{ "Input": { "WorkerPresets": { "B": { "Args": ["burnwait", "10", "300000"], "Vcpus": 2 } },
        "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["P001", "B"], "Count": [2] } },
        "RunConfig": { "Cpus": [12, 13] } }"#;

    fn planned(text: &str) -> BenchFile {
        let mut file = BenchFile::parse("my.bench", text).unwrap();
        file.plan().unwrap();
        file
    }

    #[test]
    fn a_guest_for_each_worker() {
        let file = planned(PLAN);
        // Each worker alone, then two of each.
        let job = xen_job(&file, &file.runs[2], 1, XenCpus::OfPlan).unwrap();
        let names: Vec<(&str, u32)> = job.guests.iter().map(|g| (&*g.name, g.vcpus)).collect();
        let expected =
            [("overspin-0-0", 1), ("overspin-0-1", 1), ("overspin-1-0", 2), ("overspin-1-1", 2)];
        assert_eq!(names, expected);
        assert_eq!(job.guests[0].work, ["burnwait", "70", "200000"]);
        assert_eq!((job.seconds, &*job.pool.name), (10, "schedbench"));
        assert_eq!((job.pool.cpus, job.pool.scheduler.as_deref()), (vec![12, 13], Some("credit2")));
        let mut seeds: Vec<u64> = job.guests.iter().map(|g| g.seed).collect();
        seeds.dedup();
        assert_eq!(seeds.len(), 4);
        let emulated = xen_job(&file, &file.runs[2], 1, XenCpus::FromOne).unwrap();
        assert_eq!(emulated.pool.cpus, [1, 2]);
    }

    #[test]
    fn what_xen_does_not_have_is_refused() {
        let refused = |from: &str, to: &str| {
            let file = planned(&PLAN.replace(from, to));
            xen_job(&file, &file.runs[0], 1, XenCpus::OfPlan).unwrap_err().to_string()
        };
        assert!(refused("\"credit2\"", "\"eevdf\"").contains("Xen has no scheduler `eevdf`"));
        assert!(refused("\"Cpus\": [12, 13]", "").contains("does not name the pool's pCPUs"));
        let pool = refused("\"Cpus\"", "\"Pool\": \"my \\\" pool\", \"Cpus\"");
        assert!(pool.contains("cannot be the name of a cpupool"), "{pool}");
    }

    #[test]
    fn vcpus_are_summed_up() {
        let sample = |vcpu, at, operations, max_delta| Sample {
            vcpu,
            at,
            operations,
            max_delta,
            cpu_time: 100,
            ..Sample::default()
        };
        // The second vCPU reported once only.
        let samples = [sample(0, 10, 1_000, 3), sample(1, 12, 2_500, 9), sample(0, 20, 9_000, 1)];
        let file = planned(PLAN);
        let done = xen_done(&file.runs[1], &[samples.to_vec()]);
        let raw = done.results.raw.unwrap();
        assert_eq!(raw.len(), 1);
        assert_eq!((raw[0].now, raw[0].kops, raw[0].max_delta, raw[0].cputime), (12, 3, 9, 200));
        assert!(done.completed);
        // Whatever a guest says is summed up at once; vCPU 1 is silent here.
        let strange = [sample(0, 1, 1, 1), sample(u32::MAX, 1, 1, 1)];
        let done = xen_done(&file.runs[1], &[strange.to_vec()]);
        assert_eq!(done.results.raw.unwrap(), []);
        let large =
            [0, 1].map(|vcpu| Sample { cpu_time: u64::MAX, ..sample(vcpu, 1, u64::MAX, 1) });
        let done = xen_done(&file.runs[1], &[large.to_vec()]);
        assert_eq!(done.results.raw.unwrap()[0].cputime, u64::MAX);
    }
}
