//! `virsh dumpxml GUEST`: the XML of a libvirt domain, or several one after another.
//!
//! Elements: <https://libvirt.org/formatdomain.html>, "CPU Allocation" and "CPU Tuning". `quota` is microseconds of CPU time
//! that *each* vCPU may use in a `period`, `global_quota` that of the whole guest.

use super::{HostError, HostFound, of_shares};
use roxmltree::{Document, Node};

/// Period of quotas, if the file does not say it, in microseconds.
const PERIOD: f64 = 100_000.0;

pub(super) fn read(text: &str, found: &mut HostFound) -> Result<(), HostError> {
    let mut guests = 0;
    for part in documents(text) {
        let document = Document::parse(part).map_err(|error| {
            HostError::new(
                format!("is not XML: {error}"),
                "write it again with `virsh dumpxml GUEST`",
            )
        })?;
        let is_domain = |n: &Node<'_, '_>| n.has_tag_name("domain");
        for domain in document.descendants().filter(is_domain) {
            guest(domain, found)?;
            guests += 1;
        }
    }
    if guests == 0 {
        return Err(HostError::new("has no <domain>", "write it with `virsh dumpxml GUEST`"));
    }
    Ok(())
}

/// The documents of a text that has several: `for g in ...; do virsh dumpxml $g; done`.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive("</domain>\n").filter(|part| !part.trim().is_empty())
}

fn guest(domain: Node<'_, '_>, found: &mut HostFound) -> Result<(), HostError> {
    let child = |of: Node<'_, '_>, tag: &str| -> Option<String> {
        let node = of.children().find(|n| n.has_tag_name(tag))?;
        Some(node.text().unwrap_or_default().trim().to_owned())
    };
    let name = child(domain, "name").unwrap_or_default();
    let wrong = |key: &str, value: &str, legal: &str| {
        HostError::new(
            format!("guest `{name}`: <{key}> is `{value}`; legal is {legal}"),
            "write the file again with `virsh dumpxml`",
        )
    };
    let vcpu = domain.children().find(|n| n.has_tag_name("vcpu"));
    let all = vcpu.and_then(|n| n.text()).map_or("1", str::trim);
    // `current`: those that are online.
    let online = vcpu.and_then(|n| n.attribute("current")).unwrap_or(all);
    let vcpus: u32 =
        online.parse().map_err(|_| wrong("vcpu", online, "a whole number of vCPUs"))?;
    let tune = domain.children().find(|n| n.has_tag_name("cputune"));
    let value = |key: &str| -> Result<Option<f64>, HostError> {
        let Some(text) = tune.and_then(|tune| child(tune, key)) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| wrong(key, &text, "a whole number"))
    };
    let weight = value("shares")?.map_or(256, of_shares);
    let percent = |quota: Option<f64>, period: Option<f64>, vcpus: f64| {
        // A negative quota is none.
        let quota = quota.filter(|quota| *quota > 0.0)?;
        Some(vcpus * 100.0 * quota / period.unwrap_or(PERIOD).max(1.0))
    };
    let each = percent(value("quota")?, value("period")?, f64::from(vcpus));
    let whole = percent(value("global_quota")?, value("global_period")?, 1.0);
    let cap = each.into_iter().chain(whole).reduce(f64::min);
    found.add(&name, vcpus, weight, cap.map_or(0.0, |cap| cap.round().max(1.0)) as u32);
    let pins = tune.is_some_and(|tune| tune.children().any(|n| n.has_tag_name("vcpupin")));
    if pins || vcpu.is_some_and(|n| n.has_attribute("cpuset")) {
        found.ignore("Guests that are pinned to pCPUs are simulated without pins.");
    }
    Ok(())
}
