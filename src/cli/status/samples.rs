//! The samples of `/metrics`.

use std::collections::HashMap;

/// Values by the names of metrics, with their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(HashMap<String, Vec<(String, f64)>>);

impl Samples {
    /// Reads the text format of Prometheus.
    pub(super) fn parse(text: &str) -> Self {
        let mut found: HashMap<String, Vec<(String, f64)>> = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse() else { continue };
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let labels = labels.trim_end_matches('}').to_owned();
            found.entry(name.to_owned()).or_default().push((labels, value));
        }
        Self(found)
    }

    /// The sum over all labels; 0 if there is no sample.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.with(name, "")
    }

    /// The sum over the samples whose labels contain a text.
    pub(super) fn with(&self, name: &str, label: &str) -> f64 {
        let samples = self.0.get(name).into_iter().flatten();
        samples.filter(|(labels, _)| labels.contains(label)).map(|(_, value)| value).sum()
    }

    /// The value of a label of the first sample.
    pub(super) fn label(&self, name: &str, label: &str) -> Option<&str> {
        let (labels, _) = self.0.get(name)?.first()?;
        let (_, rest) = labels.split_once(&format!("{label}=\""))?;
        rest.split('"').next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_over_labels() {
        let text =
            "# HELP a x\n# TYPE a counter\na{b=\"1\",c=\"2 3\"} 4\na{b=\"5\"} 6.5\nd 7\nbad\n";
        let samples = Samples::parse(text);
        assert_eq!((samples.sum("a"), samples.sum("d"), samples.sum("none")), (10.5, 7.0, 0.0));
        assert_eq!(samples.with("a", "b=\"5\""), 6.5);
        assert_eq!(samples.label("a", "c"), Some("2 3"));
        assert_eq!(samples.label("d", "c"), None);
    }
}
