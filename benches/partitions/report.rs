//! Figures as JSON and as tables. A scene that runs again replaces only its own figures.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;

use blockyard::types::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use crate::args::Scene;

/// The figures of one scene.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Section {
    /// What was done.
    pub(crate) about: String,
    /// The headings of the columns of figures.
    pub(crate) columns: Vec<String>,
    /// The figures.
    pub(crate) rows: Vec<Row>,
    /// When it ended.
    #[serde(default)]
    pub(crate) at: String,
    /// The machine's load when it began.
    #[serde(default)]
    pub(crate) load: String,
}

/// A line of figures, one for each column.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The name of the figure, with its unit.
    pub(crate) what: String,
    /// The values; `None` if it was not measured.
    pub(crate) values: Vec<Option<f64>>,
}

impl Section {
    /// Adds a line.
    pub(crate) fn row(&mut self, what: &str, values: &[f64]) {
        eprintln!("  {what}: {}", values.iter().map(|v| short(*v)).collect::<Vec<_>>().join(" | "));
        let values = values.iter().copied().map(Some).collect();
        self.rows.push(Row { what: what.to_owned(), values });
    }
}

/// The results of all scenes.
#[derive(Debug)]
pub(crate) struct Report {
    folder: PathBuf,
    sections: BTreeMap<String, Section>,
}

impl Report {
    /// The results so far.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let file = folder.join("partitions.json");
        let sections = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| e.to_string())?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self { folder: folder.to_owned(), sections })
    }

    /// Replaces a scene's figures.
    pub(crate) fn put(&mut self, scene: Scene, section: Section, load: &str) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = Timestamp::from_unix(now).to_iso();
        let at = at.get(..16).unwrap_or_default().replace('T', " ");
        let section = Section { at, load: load.to_owned(), ..section };
        self.sections.insert(scene.word().to_owned(), section);
    }

    /// Writes both files.
    pub(crate) fn save(&self) -> Result<(), String> {
        let json = serde_json::to_string_pretty(&self.sections).map_err(|e| e.to_string())?;
        fs::create_dir_all(&self.folder).map_err(|e| e.to_string())?;
        fs::write(self.folder.join("partitions.json"), json + "\n").map_err(|e| e.to_string())?;
        fs::write(self.folder.join("partitions.md"), self.markdown()).map_err(|e| e.to_string())
    }

    /// The tables.
    pub(crate) fn markdown(&self) -> String {
        let mut page =
            "# Partitions at scale\n\nWritten by `cargo bench --bench partitions`.\n".to_owned();
        for section in self.sections.values() {
            let columns = section.columns.join(" | ");
            let line = " ---: |".repeat(section.columns.len());
            write!(
                page,
                "\n{}\n\n{} UTC, load average {} at the start.\n\n| what | {columns} |\n| --- \
                 |{line}\n",
                section.about, section.at, section.load
            )
            .expect("a string takes all text");
            for row in &section.rows {
                let values = row.values.iter().map(|v| v.map_or_else(String::new, short));
                let values = values.collect::<Vec<_>>().join(" | ");
                writeln!(page, "| {} | {values} |", row.what).expect("a string takes all text");
            }
        }
        page
    }
}

/// A figure with three significant digits.
fn short(value: f64) -> String {
    match value {
        ..0.0995 if value > 0.0 => format!("{value:.4}"),
        ..0.995 => format!("{value:.3}"),
        ..9.95 => format!("{value:.2}"),
        ..99.5 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The quantile `share` of the values; 0 if there are none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let place = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(0.0)
}
