//! Functions that follow a path of SQL/JSON: `jsonb_path_query` and its relatives.

use std::cell::RefCell;
use std::rc::Rc;

use arrow::array::{ArrayRef, BooleanArray};
use datafusion::error::Result;

use super::JsonKind::Jsonb;
use super::get::first;
use crate::call::failure;
use crate::declared::{Declared, Row, Type};
use crate::json_path::{Answer, Failure, Path, run};
use crate::json_text::value::{Item, Json};
use crate::json_text::write::normal;
use crate::made_texts::{VALUE_BYTES_MAX, too_large};
use Type::{Boolean, Text, Texts};

/// A value, a path, variables, and whether failures are silent.
const TAKES: &[Type] = &[Text, Text, Text, Boolean];
const OPERANDS: &[Type] = &[Text, Text];

const fn of(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    let json = if matches!(makes, Text) { Some(Jsonb) } else { None };
    Declared { name, called: name, takes, needed: 2, makes, json, compute }
}

pub(crate) const FUNCTIONS: &[Declared] = &[
    of("jsonb_path_exists", TAKES, Boolean, |row| exists(row, false)),
    of("jsonb_path_match", TAKES, Boolean, |row| matched(row, false)),
    of("jsonb_path_query_array", TAKES, Text, array),
    of("jsonb_path_query_first", TAKES, Text, first_item),
    // What rows are made of.
    of("jsonb_path_items", TAKES, Texts, items),
    // The operators `@?` and `@@`.
    of("jsonb_path_exists_opr", OPERANDS, Boolean, |row| exists(row, true)),
    of("jsonb_path_match_opr", OPERANDS, Boolean, |row| matched(row, true)),
];

/// The path of the row before: mostly it is a constant.
#[derive(Default)]
struct Paths(RefCell<Option<(String, Rc<Path>)>>);

impl Paths {
    fn read(&self, text: &str) -> Result<Rc<Path>> {
        let mut last = self.0.borrow_mut();
        if let Some((known, path)) = last.as_ref()
            && known == text
        {
            return Ok(Rc::clone(path));
        }
        let path = Rc::new(Path::parse(text)?);
        *last = Some((text.to_owned(), Rc::clone(&path)));
        Ok(path)
    }
}

/// What a path leads to in a row, as `use_of` makes it; `None` where an operand is NULL.
fn followed<T>(
    row: &Row<'_>,
    paths: &Paths,
    at: usize,
    use_of: impl FnOnce(Answer<'_>, &Path, bool) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let (Some(root), Some(path)) = (first(row, at)?, row.text(1, at)) else { return Ok(None) };
    let path = paths.read(path)?;
    let vars = row.text(2, at).map(Item::parse).transpose()?;
    if vars.as_ref().is_some_and(|vars| !matches!(vars.json, Json::Object(_))) {
        return Err(failure("22023", "\"vars\" argument is not an object"));
    }
    let is_silent = row.boolean(3, at).unwrap_or(false);
    use_of(run(&path, &root, vars.as_ref()), &path, is_silent)
}

/// The failure of a path, unless it is not to be told.
fn told(failure: Option<Failure>, is_silent: bool) -> Result<bool> {
    match failure {
        None => Ok(false),
        Some(Failure::OfValue(_)) if is_silent => Ok(true),
        Some(Failure::OfValue(error) | Failure::Other(error)) => Err(error),
    }
}

fn exists(row: &Row<'_>, silent: bool) -> Result<ArrayRef> {
    let paths = Paths::default();
    row.each::<bool, BooleanArray>(|at| {
        followed(row, &paths, at, |answer, path, is_silent| {
            let found = !answer.items.is_empty();
            // The first is enough, unless the path is strict.
            if found && !path.is_strict() && !matches!(answer.failure, Some(Failure::Other(_))) {
                return Ok(Some(true));
            }
            Ok(match told(answer.failure, silent || is_silent)? {
                true => None,
                false => Some(found),
            })
        })
    })
}

fn matched(row: &Row<'_>, silent: bool) -> Result<ArrayRef> {
    let paths = Paths::default();
    row.each::<bool, BooleanArray>(|at| {
        followed(row, &paths, at, |answer, _, is_silent| {
            let is_silent = silent || is_silent;
            if told(answer.failure, is_silent)? {
                return Ok(None);
            }
            match answer.items.as_slice() {
                [item] if matches!(item.json, Json::Null) => return Ok(None),
                [item] => {
                    if let Json::Bool(truth) = item.json {
                        return Ok(Some(truth));
                    }
                }
                _ => {}
            }
            match is_silent {
                true => Ok(None),
                false => Err(failure("22038", "single boolean result is expected")),
            }
        })
    })
}

fn texts(answer: Answer<'_>, is_silent: bool) -> Result<Vec<Option<String>>> {
    let is_lost = told(answer.failure, is_silent)?;
    let items = if is_lost { Vec::new() } else { answer.items };
    let mut bytes = 0;
    let text = |item: &std::borrow::Cow<'_, Item<'_>>| {
        let text = normal(item)?;
        bytes += text.len();
        match bytes > VALUE_BYTES_MAX {
            true => Err(too_large("jsonb_path_query")),
            false => Ok(Some(text)),
        }
    };
    items.iter().map(text).collect()
}

fn items(row: &Row<'_>) -> Result<ArrayRef> {
    let paths = Paths::default();
    row.each_list(true, |at| {
        followed(row, &paths, at, |answer, _, is_silent| texts(answer, is_silent).map(Some))
    })
}

fn array(row: &Row<'_>) -> Result<ArrayRef> {
    let paths = Paths::default();
    row.each_text(|at| {
        followed(row, &paths, at, |answer, _, is_silent| {
            let items: Vec<String> = texts(answer, is_silent)?.into_iter().flatten().collect();
            Ok(Some(format!("[{}]", items.join(", "))))
        })
    })
}

fn first_item(row: &Row<'_>) -> Result<ArrayRef> {
    let paths = Paths::default();
    row.each_text(|at| {
        followed(row, &paths, at, |answer, _, is_silent| {
            Ok(texts(answer, is_silent)?.into_iter().next().flatten())
        })
    })
}
