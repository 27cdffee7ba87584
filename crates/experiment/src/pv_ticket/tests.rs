use super::threads::{Cost, cost};
use super::*;
use crate::claim::{self, judged};
use crate::figure::compared;
use crate::{Grade, Judged};
use overspin_claims::Samples;
use overspin_native::bench::PairedPoint;

const TEXT: &str = include_str!("../../../../experiments/2012-pv-ticketlocks.toml");

/// The part that all kinds have, and the rest.
fn whole(text: &str) -> (Head, PvTicket) {
    let document = Document::parse("e.toml", text).unwrap();
    crate::registry::read_as(&document, text, PvTicket::parse).unwrap_or_else(|e| panic!("{e}"))
}

fn read(text: &str) -> PvTicket {
    whole(text).1
}

#[test]
fn all_published_percentages_follow_from_the_averages() {
    let (head, e) = whole(TEXT);
    assert_eq!((e.averages.len(), head.figures.len()), (3 * 14, 2 * 14));
    let figures = |head: &Head| compared(&head.figures, &Samples::default());
    for figure in figures(&head) {
        assert_eq!(figure.grade, Grade::Good, "{figure:?}");
    }
    // One average loses one digit, and one percentage no longer follows.
    let (head, _) = whole(&TEXT.replace("avg = 3784.4072,", "avg = 3784.407,"));
    let bad: Vec<_> = figures(&head)
        .into_iter()
        .filter(|f| f.grade != Grade::Good)
        .filter_map(|f| f.note)
        .collect();
    assert_eq!(bad, ["printed -3.32422, follows -3.32423"]);
}

#[test]
fn significance_of_a_published_difference_by_hand() {
    // Base and PARAVIRT=y, scale 1, 32 clients, ten runs each: a difference of -218.61 with a standard error
    // of sqrt((202.70556^2 + 180.51304^2) / 10) = 85.83; t of 18 degrees of freedom at 95 % is 2.1009. So:
    // -0.19375 % +/- 0.15982 % of 112830.09, significant.
    let e = read(TEXT);
    let average =
        e.averages.iter().find(|a| a.place() == "patched-paravirt-y, scale 1, 32 clients");
    let test = published::test(&e, average.unwrap()).unwrap();
    assert!((test.margin - 0.15982).abs() < 1e-5, "{test:?}");
    assert!(test.means.p < 0.05 && test.sign() == "-");
}

#[test]
fn variants_run_one_domain_on_so_many_pcpus() {
    let e = read(TEXT);
    let v = e.variant(&e.locks[3], &e.loads[0], 2, 12);
    assert_eq!((v.host.pcpus(), v.limit), (2, e.scenario.limit / 12));
    let [domain] = v.domains.as_slice() else { panic!("one domain") };
    assert_eq!((domain.lock.as_str(), domain.spin_budget), ("pv-ticket-2012", Some(2048)));
    let w = domain.workload.get::<Pgbench>().unwrap();
    assert_eq!(w.clients, 8);
    let v = e.variant(&e.locks[0], &e.loads[2], 8, 1);
    assert_eq!(v.domains[0].workload.get::<Kernbench>().map(|w| w.jobs), Some(32));
    assert_eq!(v.domains[0].spin_budget, None);
}

#[test]
fn the_compile_is_that_of_2008() {
    let of_2008 = crate::kernbench_2008().unwrap().0.scenario.domains[0].workload.clone();
    let of_2008 = of_2008.get::<Kernbench>().unwrap();
    let e = read(TEXT);
    let w = e.scenario.domains[1].workload.get::<Kernbench>().unwrap();
    let same = Kernbench { jobs: w.jobs, units: w.units, ..of_2008 };
    assert_eq!(w, same);
}

#[test]
fn faults_have_a_place() {
    for (from, to, message) in [
        ("lock = \"lock-byte\"", "lock = \"lock-bite\"", "no lock `lock-bite`"),
        ("domain = \"compile\"", "domain = \"compiler\"", "no domain `compiler`"),
        ("tasks = 8", "tasks = 0", "`tasks` is 0"),
        ("pcpus = [8,", "pcpus = [0,", "the number of pCPUs is 0"),
        ("base = \"base\"", "base = \"bass\"", "`bass` has no averages beside base, scale 1, 1 "),
        ("printed = \"-3.32422\"", "printed = \"less\"", "`less` is not a number"),
        ("published(base.1.1", "published(base.1.3", "no `3` at `base.1` among what was published"),
    ] {
        let e = crate::parse("e.toml", &TEXT.replacen(from, to, 1)).expect_err(to);
        assert!(e.message.contains(message) && e.line > 1, "{to}: {e}");
    }
}

/// One sample of each configuration, at a rate.
fn samples(e: &PvTicket, rate: impl Fn(&Variant, u32) -> f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    for lock in &e.locks {
        for load in &e.loads {
            for &pcpus in &e.pcpus {
                samples.push(Sample {
                    lock: lock.label.clone(),
                    load: load.name.clone(),
                    pcpus,
                    seed: 1,
                    ending: "limit",
                    rate: rate(lock, pcpus),
                    spinning: 0.0,
                    wait_p999_s: 0.0,
                    slow_paths: 0,
                    holder_preempted: 0,
                });
            }
        }
    }
    samples
}

fn judge(e: &PvTicket, samples: &[Sample], id: u32) -> Option<bool> {
    judged_with(e, samples, &paired_report(Vec::new()), id).holds
}

fn judged_with(e: &PvTicket, samples: &[Sample], threads: &PairedReport, id: u32) -> Judged {
    let head = whole(TEXT).0;
    let capacities: Vec<_> = e.capacity.iter().filter_map(|lock| capacity::of(lock)).collect();
    let (samples, _) = assemble(e, &head.figures, samples, threads, &capacities);
    judged(&head.claims, &samples).into_iter().find(|c| c.id == id).unwrap()
}

#[test]
fn holding_up_is_judged_by_the_worst_overcommitted_cell() {
    let e = read(TEXT);
    let published = |v: &Variant| v.spin_budget == Some(2048);
    let rate = |pv: f64, ticket: f64| {
        samples(&e, |v, pcpus| match (v.lock.as_str(), pcpus) {
            // Rates without overcommit do not count.
            (_, 8) => 100.0,
            ("ticket", _) => ticket,
            _ if published(v) => pv,
            ("xen-pv", _) => 100.0,
            _ => 1.0,
        })
    };
    assert_eq!(judge(&e, &rate(75.0, 49.0), 2), Some(true));
    assert_eq!(judge(&e, &rate(74.0, 49.0), 2), Some(false));
    assert_eq!(judge(&e, &rate(75.0, 50.0), 2), Some(false));
    let mut stuck = rate(90.0, 10.0);
    stuck.last_mut().unwrap().ending = "deadlock";
    assert_eq!(judge(&e, &stuck, 2), None);
    assert_eq!(judge(&e, &[], 2), None);
}

/// Points with pairs of these ratios for every situation that claims know. All points have the ratios `first`
/// except the last point, which has the ratios `last`.
fn points(first: &[f64], last: &[f64]) -> Vec<PairedPoint> {
    let plan = Pairs::default();
    let mut points = Vec::new();
    for threads in plan.threads {
        for (section, outside) in &plan.situations {
            let nanos = |time: &std::time::Duration| time.as_nanos() as u64;
            let (section_ns, outside_ns) = (nanos(section), nanos(outside));
            points.push(PairedPoint { threads, section_ns, outside_ns, pairs: pairs(first) });
        }
    }
    points.last_mut().unwrap().pairs = pairs(last);
    points
}

fn pairs(ratios: &[f64]) -> Vec<[f64; 2]> {
    ratios.iter().map(|r| [1e6, 1e6 * r]).collect()
}

fn paired_report(points: Vec<PairedPoint>) -> PairedReport {
    PairedReport { warnings: Vec::new(), patched_branch: false, points }
}

#[test]
fn the_cost_is_the_mean_ratio_of_pairs() {
    // As often faster as slower by the same factor: in logarithms, no difference.
    let even = [1.25, 0.8].repeat(50);
    // 2 % slower, with a spread of 1 %.
    let slower: Vec<f64> = [0.97, 0.98, 0.99].repeat(7);
    let costs = cost(&paired_report(points(&even, &slower)));
    let ratio = |cost: &Cost| cost.ratio.unwrap().middle;
    let (first, last) = (costs.first().unwrap(), costs.last().unwrap());
    assert!((ratio(first) - 1.0).abs() < 1e-12 && (ratio(last) - 0.98).abs() < 1e-3);
    assert!(first.p.unwrap() > 0.99 && last.p.unwrap() < 1e-6);
    let e = read(TEXT);
    let none = samples(&e, |_, _| 1.0);
    let judge = |points| judged_with(&e, &none, &paired_report(points), 1).holds;
    assert_eq!(judge(points(&even, &slower)), Some(false));
    assert_eq!(judge(points(&even, &even)), Some(true));
    assert_eq!(judge(Vec::new()), None);
    // The same with so few pairs that a difference of a fifth would go unnoticed.
    let few = [1.25, 0.8].repeat(2);
    assert!(cost(&paired_report(points(&few, &few)))[0].p.unwrap() > 0.99);
    assert_eq!(judge(points(&few, &few)), None);
    // A proven difference counts, whatever is unknown elsewhere.
    assert_eq!(judge(points(&few, &slower)), Some(false));
}

#[test]
fn pairs_without_an_acquisition_do_not_decide() {
    let mut one_in_ten = [0.99, 1.01].repeat(5);
    one_in_ten[0] = 0.0;
    let mut two_in_ten = one_in_ten.clone();
    two_in_ten[1] = 0.0;
    let report = paired_report(points(&one_in_ten, &two_in_ten));
    let costs = cost(&report);
    let (first, last) = (costs.first().unwrap(), costs.last().unwrap());
    assert_eq!((first.void, last.void), (1, 2));
    assert!(first.ratio.is_some() && last.ratio.is_none());
    let e = read(TEXT);
    let none = samples(&e, |_, _| 1.0);
    assert_eq!(judged_with(&e, &none, &report, 1).holds, None);
}

#[test]
fn capacities_are_found_by_construction() {
    // One fewer than there are tickets: 16 bits, and 7 or 15 beside the flag.
    let cpus = |lock| capacity::of(lock).map(|c| c.cpus);
    assert_eq!(cpus("ticket"), Some(65_535));
    assert_eq!(cpus("pv-ticket-2012"), Some(32_767));
    assert_eq!(cpus("pv-ticket-2012-small"), Some(127));
    assert_eq!(cpus("no-such-lock"), None);
    let e = read(TEXT);
    let claim = judged_with(&e, &[], &paired_report(Vec::new()), 3);
    assert_eq!(claim.holds, Some(true), "{}", claim.evidence);
    for words in ["cpus = 127 ==", "cpus = 32767 ==", "one less than announced"] {
        assert!(claim.evidence.contains(words), "{}", claim.evidence);
    }
    // A claim about a lock without a capacity is an error before anything runs.
    let text = TEXT.replace("capacity = [\"pv-ticket-2012-small\", ", "capacity = [");
    let e = crate::parse("e.toml", &text).expect_err("it is not counted");
    assert!(e.message.contains("`pv-ticket-2012-small`"), "{e}");
}

#[test]
fn simulated_runs_work_and_the_report_shows_them_all() {
    // A hundredth of the default length: 50 ms each, one seed. No process of the compile ends in that time.
    let (head, e) = whole(&TEXT.replace("limit = \"60s\"", "limit = \"600ms\""));
    let mut samples = Vec::new();
    for lock in &e.locks {
        for load in &e.loads {
            for &pcpus in &e.pcpus {
                let scenario = e.variant(lock, load, pcpus, 12);
                let outcome = overspin_sim::run(&scenario, 1).unwrap();
                samples.push(Sample::new(&lock.label, &load.name, pcpus, &outcome));
            }
        }
    }
    for s in &samples {
        assert_eq!(s.ending, "limit", "{s:?}");
        // A transaction needs 115 us of work with any lock.
        let most = f64::from(s.pcpus) * 1e6 / 115.0;
        assert!(s.load.starts_with("kernbench") || (0.0..=1.1 * most).contains(&s.rate), "{s:?}");
    }
    let even = [1.0, 1.01, 0.99];
    let points = points(&even, &even);
    let situations = points.len();
    let threads = paired_report(points);
    let capacities: Vec<_> = e.capacity.iter().filter_map(|lock| capacity::of(lock)).collect();
    let (all, details) = assemble(&e, &head.figures, &samples, &threads, &capacities);
    let claims = judged(&head.claims, &all);
    assert_eq!(claims.len(), 3);
    let not_simulated = others(&threads, &capacities).count();
    assert_eq!(not_simulated, situations + e.capacity.len());
    assert_eq!(all.seeds.len(), samples.len() + not_simulated);
    claim::assert_known(&e, &all);
    assert_eq!((claims[0].id, claims[0].holds), (1, Some(true)), "{}", claims[0].evidence);
    let text = overspin_report::text(&details);
    for words in ["-3.32422", "pv-ticket, T = 2^11", "pgbench, 8 clients", "kernbench", "0.975"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
