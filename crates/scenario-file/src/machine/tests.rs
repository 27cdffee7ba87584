use super::*;
use overspin_testing::expect_section;
use std::collections::BTreeSet;

#[test]
fn each_machine_has_known_keys_once_and_values_within_their_ranges() {
    let known: BTreeSet<&str> = reference::keys().collect();
    let mut names = BTreeSet::new();
    for m in MACHINES {
        assert!(names.insert(m.name), "{} is there twice", m.name);
        assert!((300..=6000).contains(&m.mhz), "{}", m.name);
        let mut keys = BTreeSet::new();
        for v in m.values {
            let at = format!("{}: {}", m.name, v.key);
            assert!(known.contains(v.key), "{at} is no key of [host.costs]");
            assert!(keys.insert(v.key), "{at} is there twice");
            assert_eq!(v.unit == Unit::Permille, v.key == "smt_permille", "{at}");
            let text = match v.basis {
                Basis::Source(source) => {
                    let year = |w: &str| w.len() == 4 && w.starts_with(['1', '2']);
                    let dated = source.split(|c: char| !c.is_ascii_digit()).any(year);
                    let known = source.contains("https://") || source.contains("Manual");
                    assert!(dated || known, "{at}: neither year nor address nor manual");
                    source
                }
                Basis::Chosen(why) => why,
                Basis::Assumed { low, high, from } => {
                    assert!(low <= v.amount && v.amount <= high && low < high, "{at}");
                    from
                }
            };
            assert!(text.len() > 10 && !text.contains("  "), "{at}: {text}");
        }
    }
}

/// On every machine, a farther line costs at least as much as a nearer one.
#[test]
fn transfers_cost_more_the_farther_they_go() {
    for m in MACHINES {
        let c = m.costs();
        let way = [c.cache_hit, c.same_core, c.cross_core, c.cross_socket];
        assert!(way.is_sorted(), "{}: {way:?}", m.name);
    }
}

#[test]
fn what_a_scenario_gets_without_a_machine_is_as_before() {
    let known: BTreeSet<&str> = DEFAULT.values.iter().map(|v| v.key).collect();
    let missing: Vec<&str> = reference::keys().filter(|k| !known.contains(k)).collect();
    assert!(missing.is_empty(), "generic.rs lacks {missing:?}");
    assert_eq!(DEFAULT.name, overspin_scenario::Host::default().machine);
    assert_eq!(DEFAULT.costs(), Costs::default());
    assert_eq!(DEFAULT.smt_permille(), overspin_scenario::Host::default().smt_permille);
}

/// By hand: 12 cycles of 2.933 GHz are 4.0914 ns, so the 2^15 iterations of Linux 3.12 last 134 us, and
/// 142 cycles of 3 GHz are 47.333 ns.
#[test]
fn cycles_become_time_by_the_clock() {
    let spin = |name| machine(name).unwrap().cost("spin_iteration");
    assert_eq!(spin("xeon-x5570"), Picos(4_091));
    assert_eq!(spin("xeon-x5570") * (1 << 15) / overspin_scenario::US, 134);
    assert_eq!(spin("skylake-sp"), Picos(47_333));
    assert_eq!(machine("xeon-x5570").unwrap().cost("cross_core"), Picos(28_300));
    // A value that a machine leaves out is the default machine's, at the default machine's clock.
    assert_eq!(machine("skylake-sp").unwrap().cost("migration"), DEFAULT.cost("migration"));
    assert!(machine("vax").is_none());
}

/// The data generate `docs/machines.md`. To renew it after a change: `UPDATE_EXPECT=1 cargo test -p
/// overspin-scenario-file machine`.
#[test]
fn published_machines_are_current() {
    let mut blocks = comparison();
    blocks.extend(MACHINES.iter().flat_map(tables));
    let tables = format!("\n{}\n", overspin_report::markdown(&blocks));
    let (begin, end) = ("<!-- machines: begin -->\n", "<!-- machines: end -->");
    expect_section("docs/machines.md", begin, end, &tables);
}
