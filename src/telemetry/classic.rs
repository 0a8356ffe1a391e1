//! Converts OpenMetrics text to the older text format of Prometheus, version 0.0.4 ("Exposition
//! formats" in its documentation). The samples are the same. The descriptions of families differ:
//!
//! - a counter is described under the name of its samples, with `_total`;
//! - an info is a gauge, described under its name with `_info`;
//! - there are no units and there is no end mark.

/// Converts the text of our registry, which has descriptions before samples, no timestamps and no
/// exemplars.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut classic = String::with_capacity(text.len() + text.len() / 8);
    // HELP precedes TYPE, and TYPE determines the name under which HELP is written.
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|described| described.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                classic.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            classic.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            classic.push_str(line);
            classic.push('\n');
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::Unit;

    use crate::telemetry::Exposition;
    use crate::telemetry::Registry;
    use crate::telemetry::render;

    #[test]
    fn families_are_described_by_the_names_of_their_samples() {
        let mut registry = Registry::with_prefix("it");
        registry.register("things", "Things counted", Counter::<u64>::default());
        registry.register_with_unit("cpu", "Time", Unit::Seconds, Counter::<u64>::default());
        registry.register("now", "Things here", Gauge::<i64>::default());
        registry.register("build", "What runs", Info::new([("version", "1 \"a\"")]));
        let took = Histogram::new([0.5]);
        took.observe(0.1);
        registry.register_with_unit("took", "Time taken", Unit::Seconds, took);
        let text = render(&registry, Exposition::Classic).unwrap();
        let expected = "\
            # HELP it_things_total Things counted.\n\
            # TYPE it_things_total counter\n\
            it_things_total 0\n\
            # HELP it_cpu_seconds_total Time.\n\
            # TYPE it_cpu_seconds_total counter\n\
            it_cpu_seconds_total 0\n\
            # HELP it_now Things here.\n\
            # TYPE it_now gauge\n\
            it_now 0\n\
            # HELP it_build_info What runs.\n\
            # TYPE it_build_info gauge\n\
            it_build_info{version=\"1 \\\"a\\\"\"} 1\n\
            # HELP it_took_seconds Time taken.\n\
            # TYPE it_took_seconds histogram\n\
            it_took_seconds_sum 0.1\n\
            it_took_seconds_count 1\n\
            it_took_seconds_bucket{le=\"0.5\"} 1\n\
            it_took_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn only_who_asks_for_open_metrics_gets_it() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Exposition::accepted(Some(prometheus)), Exposition::OpenMetrics);
        assert_eq!(Exposition::accepted(Some("*/*")), Exposition::Classic);
        assert_eq!(Exposition::accepted(None), Exposition::Classic);
    }
}
