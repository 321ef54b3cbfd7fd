//! Which field of a file goes to which column of the table.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use stoa_error::{Error, Place, Result};

use crate::column::Column;
use crate::convert::Conversions;
use crate::{ColumnPolicy, LoadOptions};

/// Where each field goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// For each field of the file the column of the table, or `None` to skip it.
    pub targets: Vec<Option<usize>>,
    /// Columns of the table that no field fills.
    pub missing: Vec<usize>,
}

/// The mapping where the file names no columns: the option `columns`, else position.
pub(crate) fn without_names(
    file: &str,
    target: &SchemaRef,
    options: &LoadOptions,
) -> Result<Mapping> {
    if options.columns.is_empty() {
        let targets = (0..target.fields().len()).map(Some).collect();
        return Ok(Mapping { targets, missing: Vec::new() });
    }
    let targets = options
        .columns
        .iter()
        .map(|name| match name {
            None => Ok(None),
            Some(name) => position(target, name).map(Some).ok_or_else(|| {
                Error::not_found(format!("load option columns: the table has no column \"{name}\""))
                    .with_sqlstate("42703")
                    .with_hint(format!(
                        "it has {}",
                        list(target.fields().iter().map(|f| f.name().as_str()))
                    ))
            }),
        })
        .collect::<Result<Vec<_>>>()?;
    finish(Place::file(file), targets, target, options, &[])
}

/// The mapping of a header at `place` with the columns of `target`: by name where any matches,
/// else by position.
pub(crate) fn match_names(
    place: Place,
    names: &[String],
    target: &SchemaRef,
    options: &LoadOptions,
    conversions: &Conversions,
) -> Result<Mapping> {
    if names.iter().all(String::is_empty) && names.len() > 1 {
        return Err(no_names(place));
    }
    let clean = clean_names(names);
    let targets: Vec<Option<usize>> = names
        .iter()
        .zip(&clean)
        .map(|(raw, clean)| position(target, raw).or_else(|| position(target, clean)))
        .collect();
    if targets.iter().all(Option::is_none) {
        return by_position(place, names, target, options, conversions);
    }
    finish(place, targets, target, options, names)
}

fn by_position(
    place: Place,
    names: &[String],
    target: &SchemaRef,
    options: &LoadOptions,
    conversions: &Conversions,
) -> Result<Mapping> {
    if names.len() != target.fields().len() {
        let error = Error::invalid(format!(
            "the header has {} {} ({}), the table {} ({}), and no name matches",
            names.len(),
            if names.len() == 1 { "column" } else { "columns" },
            list(names.iter().map(String::as_str)),
            target.fields().len(),
            list(target.fields().iter().map(|f| f.name().as_str())),
        ))
        .with_sqlstate("22P04")
        .at(place);
        let other = [';', '\t', '|', ',']
            .into_iter()
            .find(|&c| names.len() == 1 && names.first().is_some_and(|name| name.contains(c)));
        return Err(match other {
            Some('\t') => error.with_hint("set the option delimiter to tab"),
            Some(c) => error.with_hint(format!("set the option delimiter to '{c}'")),
            None => error.with_hint(
                "if lines come before the header, set the option skip_lines; to say which field \
                 is which column, set the option columns",
            ),
        });
    }
    if looks_like_data(names, target, conversions) {
        return Err(Error::invalid(format!(
            "expected a header, found what looks like data ({})",
            list(names.iter().map(String::as_str))
        ))
        .with_sqlstate("22P04")
        .at(place)
        .with_hint("if the file has no header, set the option header to false"));
    }
    let targets = (0..names.len()).map(Some).collect();
    finish(place, targets, target, options, names)
}

/// Whether every name that stands for a column other than text is a value of that column.
fn looks_like_data(names: &[String], target: &SchemaRef, conversions: &Conversions) -> bool {
    let mut fitting = 0;
    for (name, field) in names.iter().zip(target.fields()) {
        if matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
            || name.is_empty()
        {
            continue;
        }
        let Ok(mut column) = Column::new(field, 1) else {
            return false;
        };
        if column.append_field(name.as_bytes(), false, conversions).is_err() {
            return false;
        }
        fitting += 1;
    }
    fitting > 0
}

/// Applies the policies for columns that only one side has.
fn finish(
    place: Place,
    targets: Vec<Option<usize>>,
    target: &SchemaRef,
    options: &LoadOptions,
    names: &[String],
) -> Result<Mapping> {
    for (at, column) in targets.iter().enumerate() {
        if let Some(column) = column
            && targets[..at].contains(&Some(*column))
        {
            return Err(Error::invalid(format!(
                "two fields are for column \"{}\"",
                target.field(*column).name()
            ))
            .with_sqlstate("42701")
            .at(place)
            .with_hint("say which field is which column with the option columns"));
        }
    }
    let extra: Vec<&str> = names
        .iter()
        .zip(&targets)
        .filter(|(_, target)| target.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !extra.is_empty() && options.extra_columns == ColumnPolicy::Error {
        return Err(Error::invalid(format!("the table has no column for {}", list(extra)))
            .with_sqlstate("42703")
            .at(place)
            .with_detail(table_columns(target))
            .with_hint(
                "set the option extra_columns to ignore, or say which field is which column with \
                 the option columns",
            ));
    }
    let missing: Vec<usize> =
        (0..target.fields().len()).filter(|column| !targets.contains(&Some(*column))).collect();
    if !missing.is_empty() && options.missing_columns == ColumnPolicy::Error {
        let names = list(missing.iter().map(|&column| target.field(column).name().as_str()));
        return Err(Error::invalid(format!("the file has no column for {names}"))
            .with_sqlstate("42703")
            .at(place)
            .with_hint(
                "set the option missing_columns to null, or say which field is which column with \
                 the option columns",
            ));
    }
    if let Some(&column) = missing.iter().find(|&&column| !target.field(column).is_nullable()) {
        return Err(Error::invalid(format!(
            "the file has no column for \"{}\", which must not be NULL",
            target.field(column).name()
        ))
        .with_sqlstate("23502")
        .at(place));
    }
    Ok(Mapping { targets, missing })
}

pub(crate) fn no_names(place: Place) -> Error {
    Error::invalid("expected a header, but no field of it has a name")
        .with_sqlstate("22P04")
        .at(place)
        .with_hint(
            "if lines come before the header, set the option skip_lines to their number; if there \
             is no header, set the option header to false",
        )
}

fn table_columns(target: &Schema) -> String {
    format!("the table has {}", list(target.fields().iter().map(|field| field.name().as_str())))
}

/// The column called `name`: exactly, else whatever the case, else after cleaning both.
fn position(target: &Schema, name: &str) -> Option<usize> {
    let fields = target.fields();
    fields
        .iter()
        .position(|field| field.name() == name)
        .or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)))
        .or_else(|| {
            let name = clean_name(name);
            fields.iter().position(|field| !name.is_empty() && clean_name(field.name()) == name)
        })
}

fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    if names.len() > 20 {
        let more = names.len() - 20;
        names.truncate(20);
        names.push(format!("… and {more} more"));
    }
    names.join(", ")
}

/// Column names out of a header: lower case, letters, digits and `_`; `column_N` for the empty
/// ones (N counts from 1); a repeated name gets `_2`, `_3`.
pub(crate) fn clean_names(names: &[String]) -> Vec<String> {
    let mut clean: Vec<String> = Vec::with_capacity(names.len());
    for (at, name) in names.iter().enumerate() {
        let mut base = clean_name(name);
        if base.is_empty() {
            base = format!("column_{}", at + 1);
        }
        let mut unique = base.clone();
        let mut count = 2;
        while clean.contains(&unique) {
            unique = format!("{base}_{count}");
            count += 1;
        }
        clean.push(unique);
    }
    clean
}

fn clean_name(name: &str) -> String {
    let mut clean = String::with_capacity(name.len());
    for c in name.trim().chars() {
        if c.is_alphanumeric() {
            clean.extend(c.to_lowercase());
        } else if !clean.is_empty() && !clean.ends_with('_') {
            clean.push('_');
        }
    }
    let mut clean = clean.trim_end_matches('_').to_owned();
    if clean.starts_with(|c: char| c.is_ascii_digit()) {
        clean.insert(0, '_');
    }
    clean
}

/// A schema of nullable columns.
pub(crate) fn schema_of(columns: Vec<(String, DataType)>) -> SchemaRef {
    let fields: Vec<Field> =
        columns.into_iter().map(|(name, data_type)| Field::new(name, data_type, true)).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn table() -> SchemaRef {
        schema_of(vec![
            ("base".to_owned(), DataType::Utf8),
            ("day".to_owned(), DataType::Date32),
            ("number_of_trips".to_owned(), DataType::Int64),
        ])
    }

    fn check(
        options: &LoadOptions,
        names: &[&str],
    ) -> std::result::Result<Vec<Option<usize>>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let conversions = Conversions::new(options, Format::Csv).unwrap();
        match_names(Place::file("f.csv line 1"), &names, &table(), options, &conversions)
            .map(|mapping| mapping.targets)
            .map_err(|e| e.message().to_owned())
    }

    #[test]
    fn names_match_without_case_and_marks() {
        let options = LoadOptions::default();
        assert_eq!(
            check(&options, &["Number of Trips", "DAY", "base"]),
            Ok(vec![Some(2), Some(1), Some(0)])
        );
        assert_eq!(check(&options, &["a", "b", "c"]), Ok(vec![Some(0), Some(1), Some(2)]));
        assert!(
            check(&options, &["B1", "2015-01-01", "7"]).unwrap_err().contains("looks like data")
        );
        assert!(check(&options, &["", "", ""]).unwrap_err().contains("no field of it has a name"));
        assert!(check(&options, &["a", "b"]).unwrap_err().contains("2 columns"));
        assert!(
            check(&options, &["base", "day"]).unwrap_err().contains("no column for \"number_of")
        );
        assert!(
            check(&options, &["base", "day", "number_of_trips", "x"])
                .unwrap_err()
                .contains("\"x\"")
        );
        assert!(check(&options, &["base", "base", "day"]).unwrap_err().contains("two fields"));
    }

    #[test]
    fn policies_let_columns_be_missing_or_extra() {
        let options = LoadOptions {
            missing_columns: ColumnPolicy::Ignore,
            extra_columns: ColumnPolicy::Ignore,
            ..LoadOptions::default()
        };
        assert_eq!(check(&options, &["x", "day"]), Ok(vec![None, Some(1)]));
    }

    #[test]
    fn names_are_cleaned() {
        let names =
            ["", "Base Number", "base-number", " Größe (m²) ", "2015", "_"].map(str::to_owned);
        assert_eq!(
            clean_names(&names),
            ["column_1", "base_number", "base_number_2", "größe_m²", "_2015", "column_6"]
        );
    }
}
