//! Tables of formulas: a row for each combination of words, and a formula for each column.

use super::points::position;
use super::setup::{Column, Rows, Table};
use crate::file::fail;
use overspin_claims::{Formula, Index, Samples, Vocabulary, place};
use overspin_located::LocatedError;
use overspin_report::{Block, Grid, short};
use overspin_runs::scenario_file::Axis;
use overspin_runs::scenario_file::tree::Document;
use std::sync::Arc;

/// A table whose formulas are read.
#[derive(Clone, Debug)]
pub(super) struct Formulas {
    table: Table,
    /// The words of each row, and its formulas.
    rows: Vec<(Vec<String>, Vec<Formula>)>,
}

impl Formulas {
    pub(super) fn read(
        document: &Document,
        number: usize,
        table: &Table,
        axes: &[Axis],
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Self, LocatedError> {
        // Each word as it is shown, and as formulas write it.
        let mut rows: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (i, each) in table.rows.iter().enumerate() {
            let key = format!("setup.tables.{number}.rows.{i}");
            let words = words(document, &key, each, axes)?;
            let longer = |row: Vec<_>| {
                words.iter().map(move |w| [&row[..], std::slice::from_ref(w)].concat())
            };
            rows = rows.into_iter().flat_map(longer).collect();
        }
        let row = |words: Vec<(String, String)>| {
            let formula = |(i, column): (usize, &Column)| {
                let text = filled(&column.value, &table.rows, &words);
                Formula::parse(&text, vocabulary).or_else(|fault| {
                    let key = format!("setup.tables.{number}.columns.{i}.value");
                    let message = format!("`{text}`: {}", fault.message);
                    fail(document, &key, message, &fault.help)
                })
            };
            let formulas = table.columns.iter().enumerate().map(formula);
            let formulas = formulas.collect::<Result<Vec<_>, _>>()?;
            Ok((words.into_iter().map(|(shown, _)| shown).collect(), formulas))
        };
        let rows = rows.into_iter().map(row).collect::<Result<_, _>>()?;
        Ok(Self { table: table.clone(), rows })
    }

    fn grid(&self, index: &Index<'_>) -> Grid {
        let heads = self.table.rows.iter().map(|r| r.title.as_deref().unwrap_or(&r.each));
        let header: Vec<&str> =
            heads.chain(self.table.columns.iter().map(|c| c.title.as_str())).collect();
        let is_number = |words: &Vec<String>| words.iter().all(|word| word.parse::<f64>().is_ok());
        let texts =
            if self.rows.iter().all(|(w, _)| is_number(w)) { 0 } else { self.table.rows.len() };
        let mut grid = Grid::new(texts, &header);
        for (words, formulas) in &self.rows {
            let cells = self.table.columns.iter().zip(formulas).map(|(c, f)| c.cell(f, index));
            grid.rows.push(words.iter().cloned().chain(cells).collect());
        }
        grid
    }
}

impl Column {
    fn cell(&self, formula: &Formula, index: &Index<'_>) -> String {
        let Ok(value) = formula.compute(index) else { return "-".into() };
        let number = |number: f64| match self.digits {
            Some(digits) => format!("{number:.digits$}"),
            None => short(number),
        };
        let sign = if self.sign && value.mean >= 0.0 { "+" } else { "" };
        let sd = if self.sd && value.n > 1 {
            format!(" ({})", number(value.stddev))
        } else {
            String::new()
        };
        format!("{sign}{}{sd}", number(value.mean))
    }
}

/// The words of a row, each as it is shown and as formulas write it.
fn words(
    document: &Document,
    key: &str,
    rows: &Rows,
    axes: &[Axis],
) -> Result<Vec<(String, String)>, LocatedError> {
    if let Some(words) = &rows.words {
        return Ok(words.iter().map(|word| (word.clone(), word.clone())).collect());
    }
    let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
    let axis = position(document, &format!("{key}.each"), "axis", &rows.each, &names)?;
    Ok(axes[axis].values.iter().map(|label| (label.clone(), place(&[label]))).collect())
}

/// The formula with the words of a row in the place of `$each`.
fn filled(formula: &str, rows: &[Rows], words: &[(String, String)]) -> String {
    let mut parts = formula.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        match rows.iter().position(|r| r.each == name) {
            Some(i) => text += &words[i].1,
            None => text += &format!("${name}"),
        }
        text += rest;
    }
    text
}

/// The tables, each under its heading.
pub(super) fn blocks(tables: &[Formulas], samples: &Samples) -> Vec<Block> {
    let index = Index::new(samples);
    let one = |formulas: &Formulas| {
        let heading = Block::Heading(formulas.table.title.clone());
        let text = formulas.table.text.clone().map(Block::Text);
        let grid = Block::Grid(formulas.grid(&index));
        std::iter::once(heading).chain(text).chain([grid]).collect::<Vec<_>>()
    };
    tables.iter().flat_map(one).collect()
}
