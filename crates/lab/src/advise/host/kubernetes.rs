//! Pods of Kubernetes, as YAML or JSON: a pod, a list of pods, or a controller with its number of replicas.
//!
//! Quantities and what becomes of them: <https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/>.
//! `limits.cpu` is a quota, `requests.cpu` a weight of 1024 for each CPU; a request that is absent equals the limit.

use super::{HostError, HostFound, container, of_shares, scalar, wrong};
use yaml_rust2::Yaml;

pub(super) fn read(document: &Yaml, pcpus: u32, found: &mut HostFound) -> Result<(), HostError> {
    let items = document["items"].as_vec().map_or(std::slice::from_ref(document), Vec::as_slice);
    items.iter().try_for_each(|item| object(item, pcpus, found))
}

/// A pod, or a controller of pods. Other objects, which stand beside them in files, have no containers.
fn object(item: &Yaml, pcpus: u32, found: &mut HostFound) -> Result<(), HostError> {
    let pod_name = scalar(&item["metadata"]["name"]).unwrap_or_else(|| "pod".into());
    // A pod that has ended needs no CPU.
    let phase = scalar(&item["status"]["phase"]);
    if phase.is_some_and(|phase| phase == "Succeeded" || phase == "Failed") {
        return Ok(());
    }
    let template = &item["spec"]["template"]["spec"];
    let spec = if template.is_badvalue() { &item["spec"] } else { template };
    let replicas = match &item["spec"]["replicas"] {
        Yaml::BadValue | Yaml::Null => 1,
        given => given
            .as_i64()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n <= super::MOST_GUESTS)
            .ok_or_else(|| wrong("spec.replicas", given, "0 to 256"))?,
    };
    for _ in 0..replicas {
        for (index, of) in spec["containers"].as_vec().into_iter().flatten().enumerate() {
            let own = scalar(&of["name"]).unwrap_or_else(|| index.to_string());
            let full = format!("{pod_name}-{own}");
            let cpus = |kind: &str| {
                let key = format!("{full}: resources.{kind}.cpu");
                quantity(&of["resources"][kind]["cpu"], &key)
            };
            let (limit, request) = (cpus("limits")?, cpus("requests")?);
            // What asks for nothing has the least weight that the kernel knows.
            let weight = request.or(limit).map_or(1, |cpus| of_shares(1024.0 * cpus));
            container(found, &full, limit, weight, pcpus);
        }
    }
    Ok(())
}

/// CPUs: `2`, `0.5`, `500m`.
fn quantity(value: &Yaml, key: &str) -> Result<Option<f64>, HostError> {
    let Some(text) = scalar(value) else {
        let absent = value.is_badvalue() || value.is_null();
        return if absent { Ok(None) } else { Err(wrong(key, value, LEGAL)) };
    };
    let (digits, unit) = match text.strip_suffix('m') {
        Some(digits) => (digits, 1000.0),
        None => (text.as_str(), 1.0),
    };
    let cpus = digits.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    cpus.map(|n| Some(n / unit)).ok_or_else(|| wrong(key, value, LEGAL))
}

const LEGAL: &str = "a number of CPUs such as `2`, `0.5` or `500m`";
